"""Rankings by bound latency, and pairs of strategies of one backend.

Programs of different origins are never ranked together, nor are different chunks (a longer chunk waits for its
samples), nor streams and whole sequences. Programs whose process medians overlap share a place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rnnbench.results.timing import Latency
from rnnbench.results.verdict import Judgement, judge_once
from rnnbench.results.views import ORIGINS, Entry

LAYOUT = 0.02
"""Relative change that a process's address layout alone causes: the range of the median of a single process."""
RATIO_CONFIDENCE = 0.95
"""Confidence of the interval of a strategy pair's ratio."""


@dataclass(frozen=True)
class Place:
    """A program's place in a ranking."""

    number: int
    tied: bool
    entry: Entry
    sharing: tuple[Entry, ...]
    """Trials of the same program, called the same way. They share this measurement and this place."""


@dataclass(frozen=True)
class Ranking:
    """The programs of one workload, one origin and one chunk, fastest first by bound latency."""

    origin: str
    chunk: int
    streams: bool
    places: tuple[Place, ...]

    @property
    def leaders(self) -> tuple[Place, ...]:
        return tuple(place for place in self.places if place.number == 1)


@dataclass(frozen=True)
class StrategyPair:
    """Two strategies of one backend on one workload that differ in one axis."""

    target: str
    first: str
    second: str
    common: str
    """The values of the axes in which they are equal."""
    ratios: dict[int, Judgement | None]
    """By chunk: the first's bound latency over the second's; None where both are one program, measured once."""


def rank(entries: Iterable[Entry]) -> list[Ranking]:
    """Rankings of one workload: by origin, in the order of ORIGINS, then by chunk."""

    def key(entry: Entry) -> tuple[int, int, bool]:
        return (ORIGINS.index(entry.origin) if entry.origin else len(ORIGINS), entry.chunk, not entry.streams)

    ranked = sorted((e for e in entries if e.ranked), key=key)
    rankings = []
    for (origin, chunk, whole), group in groupby(ranked, key):
        name = ORIGINS[origin] if origin < len(ORIGINS) else "not recorded"
        rankings.append(Ranking(name, chunk, not whole, tuple(_places(list(group)))))
    return rankings


def strategy_pairs(entries: Sequence[Entry]) -> list[StrategyPair]:
    """Pairs of one workload: each time against `looped`, `stateful` against `stitched`, `graph` against `stream`."""
    ranked = {(e.target, *_axes(e), e.chunk): e for e in entries if e.ranked}
    pairs: dict[tuple[str, str, str, str], dict[int, Judgement | None]] = {}
    for (target, time, state, launch, chunk), entry in ranked.items():
        partners = []
        graph = "" if launch == "stream" else f"-{launch}"
        if time != "looped":
            partners.append((("looped", state, launch), (time, "looped", f"{state}{graph}")))
        if state == "stateful":
            partners.append(((time, "stitched", launch), (state, "stitched", f"{time}{graph}")))
        if graph:
            partners.append(((time, state, "stream"), (launch, "stream", f"{time}-{state}")))
        for strategy, names in partners:
            if partner := ranked.get((target, *strategy, chunk)):
                pairs.setdefault((target, *names), {})[chunk] = _ratio(entry, partner)
    return [StrategyPair(*key, ratios) for key, ratios in sorted(pairs.items())]


def _axes(entry: Entry) -> tuple[str, str, str]:
    """Time, state and launch."""
    params = entry.record.params
    return params.time, params.state, params.launch


def judge_bound(first: Entry, second: Entry) -> Judgement:
    """The ratio of the bound latencies first / second of two trials of one run, process by process.

    Both were sampled in turn in each process. Further processes of one of them are left out.
    """
    pairs = zip(_bound(first).process_medians, _bound(second).process_medians, strict=False)
    return judge_once([a / b for a, b in pairs], confidence=RATIO_CONFIDENCE)


def _ratio(first: Entry, second: Entry) -> Judgement | None:
    """None where both are one program, measured once."""
    return None if first.measured == second.measured else judge_bound(first, second)


def _overlap(a: Latency, b: Latency) -> bool:
    """Whether the ranges of the process medians overlap. Then neither latency counts as smaller."""
    (low_a, high_a), (low_b, high_b) = _range(a), _range(b)
    return low_a <= high_b and low_b <= high_a


def _range(latency: Latency) -> tuple[float, float]:
    medians = latency.process_medians
    if len(medians) < 2:
        return latency.median / (1 + LAYOUT), latency.median * (1 + LAYOUT)
    return min(medians), max(medians)


def _places(entries: list[Entry]) -> Iterator[Place]:
    programs: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda e: (_bound(e).median, e.shares, e.record.trial)):
        programs.setdefault(entry.record.same_as or entry.record.trial, []).append(entry)
    numbers: list[int] = []
    leader: Entry | None = None
    for first, *_ in programs.values():
        tied = leader is not None and _overlap(_bound(leader), _bound(first))
        leader = leader if tied else first
        numbers.append(numbers[-1] if tied else len(numbers) + 1)
    for number, (first, *sharing) in zip(numbers, programs.values(), strict=True):
        yield Place(number, numbers.count(number) > 1, first, tuple(sharing))


def _bound(entry: Entry) -> Latency:
    assert entry.bound is not None, "ranked entries have a bound latency"
    return entry.bound
