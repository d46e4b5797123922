"""The tables of how latencies were sampled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rnnbench.measure import PATHS
from rnnbench.reports import units
from rnnbench.reports.reliability import half_width
from rnnbench.reports.tables import Table, program, strategy
from rnnbench.results import ERROR_RATE, Entry, Latency


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
    yield units.MISSING if sampling.drift is None else f"{100 * sampling.drift:+z.1f} %"


def groups_table(entries: Sequence[Entry]) -> Table:
    """Bound latencies as ratios to the anchor's, for a workload whose trials did not fit in memory together."""
    rows = [
        (
            program(entry),
            strategy(entry),
            entry.chunk_label,
            f"{anchor.group + 1} of {anchor.groups}",
            units.seconds(bound.median),
            units.seconds(anchor.bound),
            units.ratio(bound.median / anchor.bound if anchor.bound else None),
        )
        for entry in entries
        if entry.measured and not entry.shares and (anchor := entry.measured.anchor) and (bound := entry.bound)
    ]
    anchors = {entry.measured.anchor.trial for entry in entries if entry.measured and entry.measured.anchor}
    return Table(
        "Sampled in groups",
        ("program", "strategy", "chunk", "group", "bound/call", "anchor", "÷ anchor"),
        tuple(rows),
        text=2,
        note=f"These trials did not fit in memory together, so they were sampled in groups. Each group includes the "
        f"same anchor trial, {', '.join(anchors)}. Compare trials of different groups by the last column. A verdict on "
        f"two of different groups is that of two runs: by Welch's interval, at {100 * (1 - ERROR_RATE):.0f} %.",
    )
