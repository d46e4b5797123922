"""The tables of figures: ranking, strategies head to head, conformance, compile time, memory. Data; pages render it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rnnbench.reports import units
from rnnbench.reports.entries import ORIGIN_MEANS, Entry, View
from rnnbench.reports.ranking import Odds, Ranking, duels, rank
from rnnbench.results.record import Latency, Record

APPROXIMATE = "≈"
EMULATED = "†"
IMPOSSIBLE = "⚠"
SHARED = "same"
MARKS = (
    f"{APPROXIMATE} computes its activations approximately. {EMULATED} emulated: the runtime has no such notion, and "
    f"something stands in for it. Place '{SHARED}': the same program called the same way as the row above, measured "
    "once. '=': process medians overlap, so the place is shared."
)


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: int = 1
    """How many columns, from the left, hold text; the others hold figures and are set flush right."""
    note: str = ""


def program(entry: Entry) -> str:
    return f"{entry.target}{' ' + APPROXIMATE if entry.approximate else ''}"


def strategy(entry: Entry) -> str:
    return f"{entry.strategy}{' ' + EMULATED if entry.record.support.level == 'emulated' else ''}"


def by_program(entries: Iterable[Entry]) -> dict[tuple[str, str], list[Entry]]:
    """Entries by program and strategy, as tables show them; sorted by those, and in each by chunk."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in sorted(entries, key=lambda e: (program(e), strategy(e), e.chunk)):
        groups.setdefault((program(entry), strategy(entry)), []).append(entry)
    return groups


def spread(latency: Latency | None) -> float | None:
    """Half the range of the process medians over the median; None for a single process."""
    if latency is None or len(latency.process_medians) < 2:
        return None
    return (max(latency.process_medians) - min(latency.process_medians)) / 2 / latency.median


def per_call_and_step(latency: Latency | None, chunk: int) -> tuple[str, str]:
    if latency is None:
        return units.MISSING, units.MISSING
    return units.seconds(latency.median), units.seconds(latency.median / chunk)


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
        units.percent(spread(bound)),
        _above_floor(entry),
        units.seconds(bound.p99 if bound else None),
        units.seconds(bound.p99 / entry.chunk if bound else None),
        *per_call_and_step(entry.public, entry.chunk),
        units.seconds(build),
    )


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
        (duel.target, f"{duel.one} ÷ {duel.other}", duel.common, *(_odds(duel.odds.get(chunk)) for chunk in chunks))
        for duel in found
    ]
    return Table(
        "Strategies head to head",
        ("program", "ratio", "both", *(f"chunk {chunk}" for chunk in chunks)),
        tuple(rows),
        text=3,
        note="Below 1 the first is faster. 'level': their process medians overlap. 'same': one program, measured once.",
    )


def _odds(odds: Odds | None) -> str:
    if odds is None:
        return units.MISSING
    if odds.same:
        return "same"
    return units.ratio(odds.ratio) + (" level" if odds.level else "")


def conformance_table(view: View) -> Table:
    """Backend × strategy × check; a cell gives the worst of its trials, as a multiple of the expected rounding."""
    checks = list(dict.fromkeys(name for entry in view.entries for name in entry.record.conformance))
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in view.entries:
        if entry.record.conformance:
            groups.setdefault((entry.target, entry.strategy), []).append(entry)
    rows = [
        (
            *key,
            str(len(entries)),
            *(_check_cell(check, [e.record for e in entries]) for check in checks),
        )
        for key, entries in sorted(groups.items())
    ]
    return Table(
        "Conformance",
        ("program", "strategy", "trials", *checks),
        tuple(rows),
        text=2,
        note="✓ passed in every trial that got to it, with the largest error as a multiple of the rounding expected at "
        "that step (no number where bits are compared); until chaos: as far as the reference itself does not diverge. "
        "✗ failed in so many of its trials; xfail: all of those were known to; XPASS: passed although it was known to "
        "fail. n/a: has no meaning for the strategy. —: not reached.",
    )


def _check_cell(check: str, records: Sequence[Record]) -> str:
    figures = [record.conformance.get(check) for record in records]
    ran = [figure for figure in figures if figure is not None and figure.verdict != "not-applicable"]
    if not ran:
        return "n/a" if any(figures) else units.MISSING
    failed = [figure for figure in ran if figure.verdict == "fail"]
    shown = [figure.rounding for figure in failed or ran if figure.rounding is not None]
    worst = max(shown, key=lambda value: math.inf if math.isnan(value) else value, default=None)
    chaotic = any(figure.verdict == "chaotic" for figure in ran)
    known = sum(f.what == check and f.verdict == "failed" for record in records for f in record.expected)
    mark = "xfail" if known == len(failed) else "✗"
    text = f"{mark} {len(failed)} of {len(ran)}" if failed else "✓ until chaos" if chaotic else "✓"
    if any(f.what == check and f.verdict == "passed" for record in records for f in record.expected):
        text += " XPASS"
    return text if worst is None else f"{text} {units.multiple(worst)}×"


def build_table(entries: Sequence[Entry]) -> Table:
    """Of one workload: seconds of a cold build by chunk, and the exponent with which they grow."""
    return _by_chunk(
        entries,
        "Compile time (cold)",
        lambda e: e.measured.timing.build_s if e.measured else None,
        units.seconds,
        "Each build is timed once. Growth: the exponent p of chunk^p that fits best, from three chunks up; an unrolled "
        "program grows with its chunk, a looped one should not.",
    )


def size_table(entries: Sequence[Entry]) -> Table:
    """Of one workload: bytes of the artifact by chunk."""
    return _by_chunk(
        entries,
        "Artifact size, weights included",
        lambda e: e.artifact.nbytes if e.artifact else None,
        units.nbytes,
        "Growth as above.",
    )


def _by_chunk(
    entries: Sequence[Entry],
    title: str,
    figure: Callable[[Entry], float | None],
    shown: Callable[[float | None], str],
    note: str,
) -> Table:
    found = {
        key: {entry.chunk: value for entry in group if (value := figure(entry)) is not None}
        for key, group in by_program(entry for entry in entries if not entry.shares).items()
    }
    chunks = sorted({chunk for values in found.values() for chunk in values})
    rows = [
        (*key, *(shown(values.get(chunk)) for chunk in chunks), _growth(values))
        for key, values in found.items()
        if values
    ]
    columns = ("program", "strategy", *(f"chunk {chunk}" for chunk in chunks), "growth")
    return Table(title, columns, tuple(rows), text=2, note=note)


def _growth(values: dict[int, float]) -> str:
    if len(values) < 3:
        return units.MISSING
    x = [math.log(chunk) for chunk in values]
    y = [math.log(value) for value in values.values()]
    centre_x, centre_y = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - centre_x) * (b - centre_y) for a, b in zip(x, y, strict=True)) / sum(
        (a - centre_x) ** 2 for a in x
    )
    return f"chunk^{slope:.2f}"


def memory_table(entries: Sequence[Entry]) -> Table:
    """Of one workload: for each program and strategy the largest of its trials, with the chunk it was seen at."""
    figures = ("run_peak", "steady", "build_peak", "imported")
    measured = (
        entry
        for entry in entries
        if not entry.shares and any(getattr(entry.record.memory, name) is not None for name in figures)
    )
    rows = [
        (*key, *(_largest(group, name) for name in figures), _weights_share(group), _growth_of_memory(group))
        for key, group in by_program(measured).items()
    ]
    return Table(
        "Memory",
        ("program", "strategy", "run peak", "steady", "build peak", "after import", "weights", "growth/1,000 calls"),
        tuple(rows),
        text=2,
        note="Resident bytes of the trial's own process, framework included; the build peak counts the compiler's "
        "processes too. Each is the largest over the chunks, at the chunk in brackets. Weights: their bytes, and their "
        "share of what loading and calling added to the import (steady). Growth: of bound calls, by the median slope "
        "between readings. All of it is the host's memory: programs that ran on the CPU have none of a device's.",
    )


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
    return f"{units.nbytes(weights)}, {min(shares):.0%}" if shares else units.MISSING


def _growth_of_memory(entries: Sequence[Entry]) -> str:
    found = [entry.record.memory.growth for entry in entries if entry.record.memory.growth is not None]
    return units.nbytes(max(0.0, *found, 0.0)) if found else units.MISSING


def _largest(entries: Sequence[Entry], name: str) -> str:
    values = [(getattr(e.record.memory, name), -e.chunk) for e in entries if getattr(e.record.memory, name) is not None]
    if not values:
        return units.MISSING
    value, chunk = max(values)
    return f"{units.nbytes(value)} ({-chunk})" if len({v for v, _ in values}) > 1 else units.nbytes(value)
