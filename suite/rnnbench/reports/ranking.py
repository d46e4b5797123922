"""Who is fastest: places within an origin and a chunk, and strategies head to head on one backend.

Programs of different origins, of different chunks (a longer chunk waits for its samples) and streaming or not are never
ranked against each other. Programs whose process medians overlap those of the first at a place share that place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rnnbench.reports.entries import ORIGINS, Entry
from rnnbench.results.timing import Latency
from rnnbench.results.verdict import Judgement, judge_pairs

LAYOUT = 0.02
"""What a process's address layout alone moves a latency by: the range given to a median of a single process."""
CONFIDENCE = 0.95
"""Of the interval of a ratio of two strategies, which is looked at once."""


@dataclass(frozen=True)
class Place:
    number: int
    tied: bool
    entry: Entry
    sharing: tuple[Entry, ...]
    """Trials that are the same program called the same way, and so have this measurement and no place of their own."""


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
class Duel:
    """Two strategies of one backend on one workload that differ in one axis."""

    target: str
    one: str
    other: str
    common: str
    """The axis in which they do not differ."""
    odds: dict[int, Judgement | None]
    """By chunk: the one's bound latency over the other's; None where both are one program, measured once."""


def rank(entries: Iterable[Entry]) -> list[Ranking]:
    """Rankings of one workload, in the order library, imported, authored, then by chunk."""

    def key(entry: Entry) -> tuple[int, int, bool]:
        return (ORIGINS.index(entry.origin) if entry.origin else len(ORIGINS), entry.chunk, not entry.streams)

    ranked = sorted((e for e in entries if e.ranked), key=key)
    rankings = []
    for (origin, chunk, whole), group in groupby(ranked, key):
        name = ORIGINS[origin] if origin < len(ORIGINS) else "not recorded"
        rankings.append(Ranking(name, chunk, not whole, tuple(_places(list(group)))))
    return rankings


def duels(entries: Sequence[Entry]) -> list[Duel]:
    """Of one workload: each way of advancing time against `looped`, and `stateful` against `stitched`."""
    ranked = {(e.target, e.record.params.time, e.record.params.state, e.chunk): e for e in entries if e.ranked}
    found: dict[tuple[str, str, str, str], dict[int, Judgement | None]] = {}
    for (target, time, state, chunk), entry in ranked.items():
        rivals = []
        if time != "looped":
            rivals.append((("looped", state), (time, "looped", state)))
        if state == "stateful":
            rivals.append(((time, "stitched"), (state, "stitched", time)))
        for strategy, names in rivals:
            if rival := ranked.get((target, *strategy, chunk)):
                found.setdefault((target, *names), {})[chunk] = _odds(entry, rival)
    return [Duel(*key, odds) for key, odds in sorted(found.items())]


def _odds(one: Entry, other: Entry) -> Judgement | None:
    """From process to process, in which both were sampled in turn; the last ones of the longer are left out."""
    if one.measured == other.measured:
        return None
    pairs = zip(_bound(one).process_medians, _bound(other).process_medians, strict=False)
    return judge_pairs([a / b for a, b in pairs], confidence=CONFIDENCE)


def overlap(a: Latency, b: Latency) -> bool:
    """Whether the ranges of two sets of process medians meet: then neither is called faster."""
    (low, high), (least, most) = _range(a), _range(b)
    return low <= most and least <= high


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
        tied = leader is not None and overlap(_bound(leader), _bound(first))
        leader = leader if tied else first
        numbers.append(numbers[-1] if tied else len(numbers) + 1)
    for number, (first, *sharing) in zip(numbers, programs.values(), strict=True):
        yield Place(number, numbers.count(number) > 1, first, tuple(sharing))


def _bound(entry: Entry) -> Latency:
    assert entry.bound is not None, "ranked entries have a bound latency"
    return entry.bound
