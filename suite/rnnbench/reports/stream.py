"""What only some cases ask for: calls with cold caches, calls at a stream's pace, and steps in a second of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from rnnbench.reports import units
from rnnbench.reports.entries import Entry
from rnnbench.reports.tables import Table, p99, program, strategy
from rnnbench.results.timing import PacedLatency, Timing

Columns = Mapping[str, Callable[[Timing], str]]


def stream_table(entries: Sequence[Entry]) -> Table:
    """Of one workload: what of these its trials were asked for; empty where it is nothing."""
    columns: Columns = {
        "cold/call": lambda t: units.seconds(t.cold.median) if t.cold else "",
        "cold ÷ warm": _cold_ratio,
        "period": lambda t: units.seconds(t.paced.period) if t.paced else "",
        "paced/call": lambda t: units.seconds(t.paced.median) if t.paced else "",
        "paced ÷ warm": _paced_ratio,
        "paced p99": lambda t: units.seconds(p99(t.paced)) if t.paced else "",
        "real-time factor": _real_time_factor,
        "deadline misses": lambda t: _misses(t.paced) if t.paced else "",
        "steps/s": _steps_per_s,
    }
    return _table(
        entries,
        columns,
        "All bound. Warm: the bound latency of the ranking. Cold: every cache was evicted before each call. "
        "Paced: calls begin one period apart, and the processor sleeps in between. Real-time factor: the paced median "
        "over the period; below 1 the program keeps up. A deadline is missed where a call is not complete as the next "
        "is due. Steps/s: of all streams of the batch.",
    )


def narrow_stream_table(entries: Sequence[Entry]) -> Table:
    """The ratios of `stream_table`, for a terminal of 80 columns."""
    columns: Columns = {
        "cold\n÷ warm": _cold_ratio,
        "paced\n÷ warm": _paced_ratio,
        "real\ntime": _real_time_factor,
        "missed\n": lambda t: f"{t.paced.deadline_misses / t.paced.count:.2%}" if t.paced else "",
        "steps/s\n": _steps_per_s,
    }
    return _table(entries, columns, "")


def _table(entries: Sequence[Entry], columns: Columns, note: str) -> Table:
    timed = _timed(entries)
    cells = {name: [shown(timing) for _, timing in timed] for name, shown in columns.items()}
    present = {name: column for name, column in cells.items() if any(column)}
    rows = [
        (
            program(entry),
            strategy(entry),
            entry.chunk_label,
            *(column[row] or units.MISSING for column in present.values()),
        )
        for row, (entry, _) in enumerate(timed)
    ]
    shown = tuple(rows) if present else ()
    return Table("Cold, paced and batched", ("program", "strategy", "chunk", *present), shown, text=2, note=note)


def _cold_ratio(timing: Timing) -> str:
    return units.ratio(timing.cold.median / timing.bound.median) if timing.cold and timing.bound else ""


def _paced_ratio(timing: Timing) -> str:
    return units.ratio(timing.paced.median / timing.bound.median) if timing.paced and timing.bound else ""


def _real_time_factor(timing: Timing) -> str:
    return units.digits(timing.paced.real_time_factor) if timing.paced else ""


def _steps_per_s(timing: Timing) -> str:
    return units.number(timing.bound.steps_per_s) if timing.bound and timing.bound.steps_per_s else ""


def stream_answer(entries: Sequence[Entry]) -> str:
    """Of one workload, in sentences: who keeps up, who misses most, and what cold caches cost; or nothing."""
    timed = _timed(entries)
    return " ".join((*_pace(timed), *_cold(timed), *_batch(timed)))


def _timed(entries: Sequence[Entry]) -> list[tuple[Entry, Timing]]:
    return [(entry, entry.measured.timing) for entry in entries if entry.measured and entry.conforming]


def _pace(timed: Sequence[tuple[Entry, Timing]]) -> Iterator[str]:
    paced = [(entry, timing.paced) for entry, timing in timed if timing.paced and not entry.shares]
    if not paced:
        return
    fast = sum(latency.real_time_factor < 1 for _, latency in paced)
    kept = f"all {len(paced)}" if fast == len(paced) else f"{fast} of {len(paced)}"
    worst, most = max(paced, key=lambda item: item[1].deadline_misses / item[1].count)
    clean = sum(latency.deadline_misses == 0 for _, latency in paced)
    missed = f"{clean} missed no deadline, {_named(worst)} the most: {_misses(most)}"
    yield (
        f"Of the programs called every {units.seconds(most.period)}, {kept} keep up by their median; "
        f"{missed if most.deadline_misses else 'no deadline was missed'}."
    )


def _cold(timed: Sequence[tuple[Entry, Timing]]) -> Iterator[str]:
    ratios = [(t.cold.median / t.bound.median, entry) for entry, t in timed if t.cold and t.bound and not entry.shares]
    if ratios:
        (least, low), (most, high) = (choose(ratios, key=lambda item: item[0]) for choose in (min, max))
        yield (
            f"With cold caches a call takes {units.ratio(least)} ({_named(low)}) to {units.ratio(most)} "
            f"({_named(high)}) as long as with warm ones."
        )


def _batch(timed: Sequence[tuple[Entry, Timing]]) -> Iterator[str]:
    rates = [(t.bound.steps_per_s, entry) for entry, t in timed if t.bound and t.bound.steps_per_s]
    if rates:
        most, entry = max(rates, key=lambda item: item[0])
        yield f"{_named(entry)} advances most, by {units.number(most)} steps a second, all streams together."


def _named(entry: Entry) -> str:
    return f"`{entry.target}` {entry.strategy} at chunk {entry.chunk_label}"


def _misses(paced: PacedLatency) -> str:
    share = f" ({paced.deadline_misses / paced.count:.2%})" if paced.deadline_misses else ""
    return f"{paced.deadline_misses} of {paced.count:,}{share}"
