"""The tables of latencies: the ranking, what is struck from it, and strategies head to head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rnnbench.reports import units
from rnnbench.reports.entries import ORIGIN_MEANS, Entry, View
from rnnbench.reports.ranking import CONFIDENCE, Duel, Ranking, duels, rank
from rnnbench.reports.tables import SHARED, Table, p99, per_call_and_step, program, strategy
from rnnbench.results.timing import Latency
from rnnbench.results.verdict import SMALLEST

IMPOSSIBLE = "⚠"


def ranking_tables(entries: Sequence[Entry]) -> Iterator[Table]:
    """Of one workload, a table an origin, sorted by chunk and then by place."""
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
        )


def _spread(latency: Latency | None) -> float | None:
    """Half the range of the process medians over the median; None for a single process."""
    if latency is None or len(latency.process_medians) < 2:
        return None
    return (max(latency.process_medians) - min(latency.process_medians)) / 2 / latency.median


def _ranking_rows(ranking: Ranking) -> Iterator[tuple[str, ...]]:
    for place in ranking.places:
        yield _ranking_row(place.entry, f"{place.number}{'=' if place.tied else ''}")
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
        _above_floor(entry),
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


def _above_floor(entry: Entry) -> str:
    """The ratio with its interval, and a mark where all of it lies under what should be impossible."""
    floor = entry.measured.floor if entry.measured else None
    if floor is None or floor.ratio is None:
        return units.MISSING
    if floor.interval is None:
        return units.ratio(floor.ratio)
    low, high = floor.interval
    impossible = f" {IMPOSSIBLE}" if high < 1 else ""
    return f"{units.ratio(floor.ratio)} ({units.digits(low)} to {units.digits(high)}){impossible}"


def struck_table(view: View) -> Table:
    """Latencies of programs that compute something else."""
    rows = [
        (entry.record.trial, _first_failure(entry), *map(_struck, per_call_and_step(entry.bound, entry.chunk)))
        for entry in view.entries
        if entry.record.outcome == "nonconforming"
    ]
    return Table(
        "Struck from the ranking",
        ("trial", "what failed", "bound/call", "bound/step"),
        tuple(rows),
        text=2,
        note="A number from a program that computes something else is worse than no number.",
    )


def _struck(text: str) -> str:
    return text if text == units.MISSING else f"~~{text}~~"


def _first_failure(entry: Entry) -> str:
    failed = [
        f"{name}: {figure.detail}" for name, figure in entry.record.conformance.items() if figure.verdict == "fail"
    ]
    return failed[0] if failed else entry.record.reason


def duel_table(entries: Sequence[Entry]) -> Table:
    """Of one workload: strategies of one backend that differ in one axis, as ratios of bound latency by chunk."""
    found = duels(entries)
    chunks = sorted({chunk for duel in found for chunk in duel.odds})
    rows = [
        (duel.target, f"{duel.one} ÷ {duel.other}", duel.common, *(_odds(duel, chunk) for chunk in chunks))
        for duel in found
    ]
    return Table(
        "Strategies head to head",
        ("program", "ratio", "both", *(f"chunk {chunk}" for chunk in chunks)),
        tuple(rows),
        text=3,
        note=f"Below 1 the first is faster. In brackets its interval at {CONFIDENCE:.0%}, over processes in which both "
        f"were sampled in turn; the verdict is that of `rnnbench compare`, {SMALLEST:.0%} the smallest effect that "
        "matters. 'same': one program, measured once.",
    )


def _odds(duel: Duel, chunk: int) -> str:
    if chunk not in duel.odds:
        return units.MISSING
    odds = duel.odds[chunk]
    if odds is None:
        return SHARED
    interval = "" if odds.interval is None else " ({} to {})".format(*map(units.digits, odds.interval))
    return f"{units.ratio(odds.ratio)}{interval} {odds.verdict}"
