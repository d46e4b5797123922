"""The tables of how latencies were sampled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rnnbench.measure import PATHS
from rnnbench.reports import units
from rnnbench.reports.reliability import half_width
from rnnbench.reports.tables import Table, program, strategy
from rnnbench.results import ERROR_RATE, Entry, Latency
from rnnbench.spelling import percents


def sampling_table(entries: Sequence[Entry]) -> Table:
    """For one workload, the interval of each latency, why sampling stopped, and what was sampled."""
    rows = [
        (program(entry), strategy(entry), path, entry.chunk_label, *_sampled(latency))
        for entry in entries
        for path, latency in _latencies(entry)
        if latency.sampling.blocks
    ]
    return Table(
        "How latencies were sampled",
        (
            "program",
            "strategy",
            "latency",
            "chunk",
            "median/call",
            "95 %",
            "stopped by",
            "processes",
            "samples",
            "calls/sample",
            "warm-up",
            "stationary",
            "disturbed",
            "drift",
        ),
        tuple(rows),
        text=3,
        note="95 %: half the 95 % interval of the median between processes. Stopped by: whether the requested "
        "precision was reached, or the time budget was spent first. Stationary: processes whose latencies became "
        "stationary before the time for warm-up was spent. Disturbed: blocks during which another process, or the "
        "machine's host, used the core. Drift: the relative change from the first block to the last.",
    )


def _latencies(entry: Entry) -> Iterator[tuple[str, Latency]]:
    if entry.measured is None or entry.shares or not entry.conforming:
        return
    for path in PATHS:
        if (latency := entry.latency(path)) is not None:
            yield path, latency


def _sampled(latency: Latency) -> Iterator[str]:
    processes, sampling, warmup = len(latency.process_medians), latency.sampling, latency.sampling.warmup
    yield units.seconds(latency.median)
    yield units.percent(half_width(latency))
    yield sampling.stopped_by or units.MISSING
    yield str(processes)
    yield str(latency.count)
    yield str(sampling.calls_per_sample)
    yield units.seconds(warmup.seconds) if warmup else units.MISSING
    yield f"{warmup.stationary} of {processes}" if warmup else units.MISSING
    yield units.MISSING if sampling.disturbed_blocks is None else f"{sampling.disturbed_blocks} of {sampling.blocks}"
    yield units.MISSING if sampling.drift is None else percents(sampling.drift, "+")


def groups_table(entries: Sequence[Entry]) -> Table:
    """Bound latencies as ratios to the common trial's, for a workload whose trials did not fit in memory together."""
    rows = [
        (
            program(entry),
            strategy(entry),
            entry.chunk_label,
            f"{common.group + 1} of {common.groups}",
            units.seconds(bound.median),
            units.seconds(common.bound),
            units.ratio(bound.median / common.bound if common.bound else None),
        )
        for entry in entries
        if entry.measured and not entry.shares and (common := entry.measured.common_trial) and (bound := entry.bound)
    ]
    common_trials = {
        entry.measured.common_trial.trial for entry in entries if entry.measured and entry.measured.common_trial
    }
    return Table(
        "Sampled in groups",
        ("program", "strategy", "chunk", "group", "bound/call", "common trial", "÷ common"),
        tuple(rows),
        text=2,
        note=f"These trials did not fit in memory together, so they were sampled in groups. Each group includes the "
        f"same trial, the common trial: {', '.join(common_trials)}. Compare trials of different groups by the last "
        f"column. A verdict on two of different groups is that of two runs: by Welch's interval, at "
        f"{100 * (1 - ERROR_RATE):.0f} %.",
    )
