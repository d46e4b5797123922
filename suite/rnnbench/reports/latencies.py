"""The tables of latencies: the rankings, programs that failed a check, and strategy pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rnnbench.reports import units
from rnnbench.reports.escape import Markdown
from rnnbench.reports.tables import IMPOSSIBLE, SHARED, Table, p99, per_call_and_step, program, strategy
from rnnbench.results import (
    ORIGIN_MEANS,
    RATIO_CONFIDENCE,
    SMALLEST,
    Entry,
    Latency,
    Ranking,
    StrategyPair,
    View,
    rank,
    strategy_pairs,
)

PLACES = "The first program of a place is SLOWER, by verdict, than the first one of the place above."


def places(entries: Sequence[Entry]) -> str:
    """What a place means for these programs."""
    single = any(e.ranked and e.bound is not None and len(e.bound.process_medians) < 2 for e in entries)
    return f"{PLACES} A single process has no verdict." if single else PLACES


def ranking_tables(entries: Sequence[Entry]) -> Iterator[Table]:
    """The rankings of one workload: a table for each origin, sorted by chunk and then by place."""
    rankings = rank(entries)
    for origin in dict.fromkeys(r.origin for r in rankings):
        rows = [row for r in rankings if r.origin == origin for row in _ranking_rows(r)]
        yield Table(
            f"{origin}: {ORIGIN_MEANS.get(origin, 'their records do not say')}",
            (
                "chunk",
                "place",
                "program",
                "strategy",
                "lowered to",
                "bound/call",
                "bound/step",
                "± processes",
                "× of floor",
                "p99/call",
                "p99/step",
                "public/call",
                "public/step",
                "cold build",
            ),
            tuple(rows),
            text=5,
            note=f"{places(entries)} ± processes: half the range of the process medians, relative to the median. × of "
            "floor: bound latency over the latency floor, with its 95 % interval. p99 in brackets: several calls were "
            "timed as one sample.",
        )


def _spread(latency: Latency | None) -> float | None:
    """Half the range of the process medians over the median; None for a single process."""
    if latency is None or len(latency.process_medians) < 2:
        return None
    return (max(latency.process_medians) - min(latency.process_medians)) / 2 / latency.median


def _ranking_rows(ranking: Ranking) -> Iterator[tuple[str, ...]]:
    for place in ranking.places:
        yield _ranking_row(place.entry, str(place))
        for entry in place.sharing:
            yield _ranking_row(entry, SHARED)


def _ranking_row(entry: Entry, place: str) -> tuple[str, ...]:
    bound, build = entry.bound, entry.measured.timing.build_s if entry.measured else None
    return (
        entry.chunk_label,
        place,
        program(entry),
        strategy(entry),
        entry.artifact.lowered if entry.artifact else units.MISSING,
        *per_call_and_step(bound, entry.chunk),
        units.percent(_spread(bound)),
        above_floor(entry),
        *_p99(bound, entry.chunk),
        *per_call_and_step(entry.public, entry.chunk),
        units.seconds(build),
    )


def _p99(bound: Latency | None, chunk: int) -> tuple[str, str]:
    """Per call and per step; in brackets where calls were timed several at once, and none of too few samples."""
    if bound is None or (shown := p99(bound)) is None:
        return units.MISSING, units.MISSING
    per_call, per_step = units.seconds(shown), units.seconds(shown / chunk)
    return (per_call, per_step) if bound.sampling.calls_per_sample == 1 else (f"({per_call})", f"({per_step})")


def above_floor(entry: Entry) -> str:
    """The ratio with its interval, and a sign where the whole interval is below 1."""
    floor = entry.measured.floor if entry.measured else None
    if floor is None or floor.ratio is None:
        return units.MISSING
    impossible = f" {IMPOSSIBLE}" if floor.interval and floor.interval[1] < 1 else ""
    return f"{_with_interval(floor.ratio, floor.interval)}{impossible}"


def failed_check_table(view: View) -> Table:
    """Latencies of programs that failed a conformance check."""
    rows = [
        (entry.record.trial, _first_failure(entry), *map(_struck, per_call_and_step(entry.bound, entry.chunk)))
        for entry in view.entries
        if entry.record.outcome == "nonconforming"
    ]
    return Table(
        "Not ranked: a check failed",
        ("trial", "what failed", "bound/call", "bound/step"),
        tuple(rows),
        text=2,
        note="These programs compute wrong numbers, so their latencies have no place in the ranking.",
    )


def software_device_table(entries: Sequence[Entry]) -> Table:
    """Latencies of one workload on software devices, of programs that passed their checks."""
    timed = [entry for entry in entries if entry.on_software_device and entry.conforming and entry.bound is not None]
    rows = [
        (
            program(entry),
            strategy(entry),
            entry.chunk_label,
            *per_call_and_step(entry.bound, entry.chunk),
            *per_call_and_step(entry.public, entry.chunk),
        )
        for entry in timed
    ]
    names = ", ".join(dict.fromkeys(entry.record.device.name for entry in timed if entry.record.device))
    return Table(
        f"Not ranked: software device {names}",
        ("program", "strategy", "chunk", "bound/call", "bound/step", "public/call", "public/step"),
        tuple(rows),
        text=2,
        note="The processor emulates this device. It shows that a program is right on such a driver. Its times say "
        "nothing of a real device, and get no place, verdict or floor.",
    )


def _struck(text: str) -> str:
    return text if text == units.MISSING else Markdown("~~{}~~").format(text)


def _first_failure(entry: Entry) -> str:
    record = entry.record
    return next((f"{name}: {record.conformance[name].detail}" for name in record.failed_checks), record.reason)


def strategy_pair_table(entries: Sequence[Entry]) -> Table:
    """For one workload, the ratios of bound latency of strategies that differ in one axis, by chunk."""
    pairs = strategy_pairs(entries)
    chunks = sorted({chunk for pair in pairs for chunk in pair.ratios})
    rows = [
        (pair.target, f"{pair.first} ÷ {pair.second}", pair.common, *(_ratio(pair, chunk) for chunk in chunks))
        for pair in pairs
    ]
    return Table(
        "Strategy pairs",
        ("program", "ratio", "in common", *(f"chunk {chunk}" for chunk in chunks)),
        tuple(rows),
        text=3,
        note=Markdown(
            f"The ratio of the two strategies' bound latencies. Below 1 the first one is faster. In brackets: the "
            f"{100 * RATIO_CONFIDENCE:.0f} % interval over processes, in which both were sampled in turn. Verdicts are "
            f"those of `rnnbench compare`; the smallest change that matters is {100 * SMALLEST:.0f} %."
        ),
    )


def _ratio(pair: StrategyPair, chunk: int) -> str:
    if chunk not in pair.ratios:
        return units.MISSING
    judged = pair.ratios[chunk]
    if judged is None:
        return SHARED
    return f"{_with_interval(judged.ratio, judged.interval)} {judged.verdict}"


def _with_interval(ratio: float, interval: tuple[float, float] | None) -> str:
    """`1.02× (0.980 to 1.06)`."""
    if interval is None:
        return units.ratio(ratio)
    low, high = (units.end_of_interval(end, ratio) for end in interval)
    return f"{units.ratio(ratio)} ({low} to {high})"


def without_steps_of_one(content: Table) -> Table:
    """Without the columns of a step where every call is one step: they would repeat those of the call."""
    chunk = content.columns.index("chunk")
    if {row[chunk] for row in content.rows} != {"1"}:
        return content
    kept = [index for index, name in enumerate(content.columns) if not name.endswith("/step")]
    rows = tuple(tuple(row[index] for index in kept) for row in content.rows)
    return replace(content, columns=tuple(content.columns[index] for index in kept), rows=rows)
