"""Heat maps of the overview: programs × strategies of a workload and chunk, against the fastest of each origin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rnnbench.measure import half_width
from rnnbench.reports import EMULATED, percent, program, ratio, seconds
from rnnbench.results import ORIGIN_MEANS, Ranking, judge_bound, rank
from rnnbench.site.content import Content, Machine, Shown, workload_name

STEPS = (1.03, 1.25, 2.0, 4.0, 10.0)
"""Ratios to the fastest at which the colour of a cell changes. The first is the smallest change that matters."""
WORDS = {"SAME": "same", "SLOWER": "slower", "FASTER": "faster", "UNDECIDED": "undecided"}
"""Verdicts as a cell shows them."""
NOT_OK = {
    "unsupported": ("–", "unsupported"),
    "unavailable": ("–", "not installed"),
    "nonconforming": ("✗", "wrong numbers"),
    "build-failed": ("!", "build failed"),
    "run-failed": ("!", "run failed"),
    "crashed": ("!", "crashed"),
    "timed-out": ("!", "timed out"),
    "out-of-memory": ("!", "out of memory"),
}
"""Sign and words of a cell by outcome."""


@dataclass(frozen=True)
class Cell:
    """One program and strategy."""

    page: str
    level: int
    """Colour: 0 for the fastest; -1 for none."""
    figure: str
    """Latency per step with its interval; or the sign of why there is none."""
    words: str
    """The verdict against the fastest of its origin."""
    interval: str = ""
    """Interval of the ratio to the fastest."""


@dataclass(frozen=True)
class Line:
    """A program with a cell for each strategy."""

    program: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class Group:
    """The programs of one origin."""

    origin: str
    means: str
    answer: str
    """The fastest, in words."""
    page: str
    lines: tuple[Line, ...]

    @property
    def cells(self) -> list[Cell]:
        """The cells with a latency."""
        return [cell for line in self.lines for cell in line.cells if cell and cell.level >= 0]


@dataclass(frozen=True)
class HeatMap:
    """One workload at one chunk on one machine."""

    machine: str
    model: str
    """For people."""
    key: str
    """The model and machine in addresses."""
    chunk: str
    strategies: tuple[str, ...]
    groups: tuple[Group, ...]


def heat_maps(content: Content) -> list[HeatMap]:
    """By machine, workload and chunk; the workload that most was measured of comes first."""
    maps = [
        _heat_map(machine, str(workload), workload_name(machine, workload), chunk, of_chunk)
        for machine in content.machines
        for workload, shown in machine.workloads.items()
        for chunk, of_chunk in _by_chunk(shown).items()
    ]
    measured = Counter(found.key for found in maps for group in found.groups for _ in group.cells)
    return sorted((found for found in maps if found.groups), key=lambda found: -measured[found.key])


def level(times: float) -> int:
    """The colour of a ratio."""
    return sum(times >= step for step in STEPS)


def _by_chunk(shown: Sequence[Shown]) -> dict[str, list[Shown]]:
    groups: dict[str, list[Shown]] = {}
    for shown_trial in shown:
        groups.setdefault(shown_trial.entry.chunk_label, []).append(shown_trial)
    return groups


def _heat_map(machine: Machine, model: str, key: str, chunk: str, shown: Sequence[Shown]) -> HeatMap:
    tried = [
        shown_trial for shown_trial in shown if shown_trial.entry.record.outcome not in ("unsupported", "unavailable")
    ]
    strategies = tuple(sorted({shown_trial.entry.strategy for shown_trial in tried}))
    rankings = {ranking.origin: ranking for ranking in rank(shown_trial.entry for shown_trial in shown)}
    by_origin: dict[str, list[Shown]] = {}
    for each, origin in zip(shown, _origins(shown), strict=True):
        by_origin.setdefault(origin, []).append(each)
    by_trial = {shown_trial.trial: shown_trial for shown_trial in shown}
    groups = [
        _group(origin, rankings.get(origin), by_origin[origin], strategies, by_trial)
        for origin in (*ORIGIN_MEANS, "")
        if origin in by_origin
    ]
    return HeatMap(machine.name, model, key, chunk, strategies, tuple(filter(None, groups)))


def _origins(shown: Sequence[Shown]) -> list[str]:
    """One for each. Where no program was built: as the target's programs that advance alike, or as any of them."""
    of_time: dict[tuple[str, str], str] = {}
    of_target: dict[str, str] = {}
    entries = [shown_trial.entry for shown_trial in shown]
    for entry in entries:
        if entry.origin:
            of_target[entry.target] = of_time[entry.target, entry.record.params.time] = entry.origin
    return [
        entry.origin or of_time.get((entry.target, entry.record.params.time), of_target.get(entry.target, ""))
        for entry in entries
    ]


def _group(
    origin: str,
    ranking: Ranking | None,
    shown: Sequence[Shown],
    strategies: Sequence[str],
    by_trial: dict[str, Shown],
) -> Group | None:
    fastest = by_trial[ranking.places[0].entry.record.trial] if ranking else None
    lines = []
    for target in sorted({shown_trial.entry.target for shown_trial in shown}):
        cells = {
            shown_trial.entry.strategy: _cell(shown_trial, fastest)
            for shown_trial in shown
            if shown_trial.entry.target == target
        }
        line = tuple(cells.get(strategy) for strategy in strategies)
        if any(line):
            name = max(
                (program(shown_trial.entry) for shown_trial in shown if shown_trial.entry.target == target), key=len
            )
            lines.append(Line(name, line))
    if not lines:
        return None
    answer = _answer(ranking) if ranking else "nothing was measured"
    means = ORIGIN_MEANS.get(origin, "no program was built")
    return Group(origin or "not built", means, answer, fastest.page if fastest else "", tuple(lines))


def _answer(ranking: Ranking) -> str:
    first, *sharing = ranking.leaders
    names = [f"{place.entry.target} {place.entry.strategy}" for place in (first, *sharing)]
    bound = first.entry.ranked_bound
    figure = _per_step(bound.median, bound.interval, first.entry.chunk)
    tied = f"; same place: {', '.join(names[1:])}" if sharing else ""
    return f"{names[0]}, {figure} a step{tied}"


def _cell(shown: Shown, fastest: Shown | None) -> Cell:
    entry = shown.entry
    outcome = entry.record.outcome
    if outcome != "ok":
        sign, words = NOT_OK[outcome]
        expected = ", as expected" if entry.record.fails_as_expected else ""
        return Cell(shown.page, -1, sign, words + expected)
    if entry.not_believed:
        return Cell(shown.page, -1, "?", "not believed")
    if entry.bound is None or fastest is None or fastest.entry.bound is None:
        return Cell(shown.page, -1, "·", "not timed")
    emulated = f" {EMULATED}" if entry.record.support.level == "emulated" else ""
    figure = _per_step(entry.bound.median, entry.bound.interval, entry.chunk) + emulated
    if entry.measured == fastest.entry.measured:
        return Cell(shown.page, 0, figure, "fastest" if shown.trial == fastest.trial else "same program")
    judged = judge_bound(entry, fastest.entry)
    interval = "" if judged.interval is None else "{} to {}".format(*map(ratio, judged.interval))
    words = f"{ratio(judged.ratio)} {WORDS[judged.verdict]}{'' if shown.run is fastest.run else ', another run'}"
    return Cell(shown.page, level(judged.ratio), figure, words, interval)


def _per_step(median: float, interval: tuple[float, float] | None, chunk: int) -> str:
    """`10.8 µs ±1.8 %`."""
    return f"{seconds(median / chunk)}{' ' + percent(half_width(interval)) if interval else ''}"
