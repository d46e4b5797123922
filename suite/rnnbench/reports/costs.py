"""The tables of build time, artifact size, memory and metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rnnbench.measure import METRICS, Metric
from rnnbench.reports import units
from rnnbench.reports.tables import Table, by_program, program, strategy
from rnnbench.results import Entry

ENOUGH_CALLS = 1_000
"""Calls from which what 1,000 of them add to memory is shown: of fewer it is a guess."""
MANY_CALLS = 100
"""Calls from which what opening and binding take is shown: a stream with fewer calls pays more for these two."""
ON_DEVICE = {
    "device": ("on device", "of the process, less an empty session."),
    "allocated": ("allocated", "of the program on the device, by the runtime's own count."),
    "allocated_peak": ("allocated at most", "the same at its highest, from the start of the load."),
}
"""Title and meaning of each figure of a device's memory, by its name in a record."""


def build_table(entries: Sequence[Entry]) -> Table:
    """Seconds of a cold build by chunk, for one workload."""
    return _by_chunk(
        entries,
        "Build time (cold)",
        lambda e: e.measured.timing.build_s if e.measured else None,
        units.seconds,
        "Each build is timed once. An unrolled program grows with its chunk; a looped one should not.",
    )


def size_table(entries: Sequence[Entry]) -> Table:
    """Bytes of the artifact by chunk, for one workload."""
    return _by_chunk(
        entries,
        "Artifact size, weights included",
        lambda e: e.artifact.nbytes if e.artifact else None,
        units.nbytes,
    )


def _by_chunk(
    entries: Sequence[Entry],
    title: str,
    figure: Callable[[Entry], float | None],
    shown: Callable[[float | None], str],
    note: str = "",
) -> Table:
    values_by_program = {
        key: {entry.chunk: value for entry in group if (value := figure(entry)) is not None}
        for key, group in by_program(entry for entry in entries if not entry.shares).items()
    }
    chunks = sorted({chunk for values in values_by_program.values() for chunk in values})
    rows = [
        (*key, *(shown(values.get(chunk)) for chunk in chunks)) for key, values in values_by_program.items() if values
    ]
    columns = ("program", "strategy", *(f"chunk {chunk}" for chunk in chunks))
    return Table(title, columns, tuple(rows), text=2, note=note)


def preparation_table(entries: Sequence[Entry]) -> Table:
    """Times of opening, binding and closing in one workload, where the first two take as long as many calls."""
    rows = [
        (
            program(entry),
            strategy(entry),
            entry.chunk_label,
            *(
                units.seconds(seconds)
                for seconds in (timing.open_s, timing.bind_s, timing.first_call_s, timing.close_s)
            ),
            f"{_prepared(entry) / bound.median:,.0f}",
        )
        for entry in entries
        if not entry.shares
        and entry.ranked
        and (bound := entry.bound) is not None
        and (timing := entry.record.timing)
        and _prepared(entry) > MANY_CALLS * bound.median
    ]
    return Table(
        "Opening and binding",
        ("program", "strategy", "chunk", "open", "bind", "first call", "close", "calls"),
        tuple(rows),
        text=2,
        note=f"Programs whose open and bind take as long as more than {MANY_CALLS} bound calls, which the last column "
        "counts. Each is timed once.",
    )


def _prepared(entry: Entry) -> float:
    timing = entry.record.timing
    return (timing.open_s or 0.0) + (timing.bind_s or 0.0)


def memory_table(entries: Sequence[Entry]) -> Table:
    """For each program and strategy of one workload the largest of its trials, with the chunk it was seen at."""
    on_device = [name for name in ON_DEVICE if any(getattr(entry.record.memory, name) is not None for entry in entries)]
    figures = ("run_peak", "steady", "build_peak", "imported", *on_device)
    measured = (
        entry
        for entry in entries
        if not entry.shares and any(getattr(entry.record.memory, name) is not None for name in figures)
    )
    rows = [
        (*key, *(_largest(group, name) for name in figures), _weights_share(group), *_growth_of_memory(group))
        for key, group in by_program(measured).items()
    ]
    return Table(
        "Memory",
        (
            "program",
            "strategy",
            "run peak",
            "steady",
            "build peak",
            "after import",
            *(ON_DEVICE[name][0] for name in on_device),
            "weights",
            "growth/1,000 bound",
            "growth/1,000 public",
        ),
        tuple(rows),
        text=2,
        note="Resident bytes of the trial's own process, framework included. The build peak includes the compiler's "
        "processes. Each figure is the largest over the chunks; the chunk is in brackets. Weights: their bytes, and "
        "their share of what loading and calling added after the import (steady). Growth: what 1,000 calls add, seen "
        f"over the calls in brackets; the largest over the chunks with {ENOUGH_CALLS:,} calls or more. "
        + "".join(f"{ON_DEVICE[name][0].capitalize()}: {ON_DEVICE[name][1]} " for name in on_device)
        + ("All others are" if on_device else "All figures are")
        + " of the host's memory.",
    )


def metrics_table(entries: Sequence[Entry]) -> Table:
    """For each program and strategy of one workload the metrics of its records, the largest over the chunks."""
    of_process = {name: metric for name, metric in METRICS.items() if metric.when}
    present = [metric for name, metric in of_process.items() if any(name in entry.record.metrics for entry in entries)]
    measured = (entry for entry in entries if not entry.shares and entry.record.metrics.keys() & of_process.keys())
    rows = [(*key, *(_metric(group, metric) for metric in present)) for key, group in by_program(measured).items()]
    return Table(
        "Metrics",
        ("program", "strategy", *(metric.title for metric in present)),
        tuple(rows) if present else (),
        text=2,
        note=" ".join(f"{metric.title.capitalize()}: {metric.meaning}" for metric in present)
        + " Each is the largest over the chunks.",
    )


def _metric(entries: Sequence[Entry], metric: Metric) -> str:
    values = [entry.record.metrics[metric.name] for entry in entries if metric.name in entry.record.metrics]
    if not values:
        return units.MISSING
    shown = {"seconds": units.seconds, "bytes": units.nbytes, "count": "{:,.0f}".format}
    return shown[metric.unit](max(values))


def _weights_share(entries: Sequence[Entry]) -> str:
    """The weights' bytes, and the least share over the chunks that they are of what a loaded program occupies."""
    shares = []
    weights = 0
    for entry in entries:
        floor, memory = entry.record.floor, entry.record.memory
        if floor is None or memory.steady is None or memory.imported is None:
            continue
        weights = floor.weights
        if (added := memory.steady - memory.imported) > 0:
            shares.append(min(1.0, weights / added))
    return f"{units.nbytes(weights)}, {100 * min(shares):.0f} %" if shares else units.MISSING


def _growth_of_memory(entries: Sequence[Entry]) -> tuple[str, str]:
    """The growth of bound calls, and that of public calls."""
    memories = [entry.record.memory for entry in entries]
    return (
        _growth_over([(memory.growth, memory.growth_calls) for memory in memories]),
        _growth_over([(memory.public_growth, memory.public_growth_calls) for memory in memories]),
    )


def _growth_over(figures: Sequence[tuple[float | None, int | None]]) -> str:
    """The largest, with the calls it was seen over; where they were too few for any, the most that there were."""
    shown = [(growth, calls) for growth, calls in figures if growth is not None and (calls or 0) >= ENOUGH_CALLS]
    if shown:
        growth, calls = max(shown)
        return f"{units.nbytes(max(0.0, growth))} ({calls:,})"
    most = max((calls or 0 for _, calls in figures), default=0)
    return f"too few calls ({most:,})" if most else units.MISSING


def _largest(entries: Sequence[Entry], name: str) -> str:
    values = [(getattr(e.record.memory, name), -e.chunk) for e in entries if getattr(e.record.memory, name) is not None]
    if not values:
        return units.MISSING
    value, chunk = max(values)
    return f"{units.nbytes(value)} ({-chunk})" if len({v for v, _ in values}) > 1 else units.nbytes(value)
