"""Rankings by bound latency, and verdicts on two trials.

Programs of different origins are never ranked together, nor are different chunks (a longer chunk waits for its
samples), nor streams and whole sequences.

A place is a verdict. In the order of latencies, a program that is SLOWER than the first one of the place before opens
the next place, and any other shares that place: SAME and UNDECIDED do. Programs are compared with the first one of a
place alone, so a row of small differences does not become one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from rnnbench.results.verdict import Judgement, judge_apart, judge_once
from rnnbench.results.views import ORIGINS, Entry

RATIO_CONFIDENCE = 0.95
"""Confidence of the interval of the ratio of two trials that were sampled in turn."""


@dataclass(frozen=True)
class Place:
    """A program's place in a ranking."""

    number: int
    """One more than the number of programs at the places above."""
    tied: bool
    """Whether other programs have this place too."""
    entry: Entry
    sharing: tuple[Entry, ...]
    """Trials of the same program, called the same way. They share this measurement and this place."""

    def __str__(self) -> str:
        return f"{self.number}{'=' if self.tied else ''}"


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


def judge_bound(first: Entry, second: Entry) -> Judgement:
    """The ratio of the bound latencies first / second of two trials of one machine.

    Two trials that were sampled in turn are compared in pairs of processes. If one has more processes, the further ones
    are left out. Other trials are compared as those of two runs: a drift of the machine is then part of the ratio.
    """
    medians = first.ranked_bound.process_medians, second.ranked_bound.process_medians
    if _sitting(first) != _sitting(second):
        return judge_apart(base=medians[1], new=medians[0])
    return judge_once([a / b for a, b in zip(*medians, strict=False)], confidence=RATIO_CONFIDENCE)


def _sitting(entry: Entry) -> tuple[object, ...]:
    """What trials have in common that were sampled in turn: the run or shard, the workload and the sampling group."""
    common = entry.measured.common_trial if entry.measured else None
    return entry.run, entry.workload, common.group if common else 0


def _places(entries: Iterable[Entry]) -> Iterator[Place]:
    programs: dict[tuple[str, str], list[Entry]] = {}
    for entry in sorted(entries, key=lambda e: (e.ranked_bound.median, e.shares, e.record.trial)):
        programs.setdefault((entry.run, entry.record.same_as or entry.record.trial), []).append(entry)
    numbers: list[int] = []
    leader: Entry | None = None
    for first, *_ in programs.values():
        tied = leader is not None and judge_bound(first, leader).verdict != "SLOWER"
        leader = leader if tied else first
        numbers.append(numbers[-1] if tied else len(numbers) + 1)
    for number, (first, *sharing) in zip(numbers, programs.values(), strict=True):
        yield Place(number, numbers.count(number) > 1, first, tuple(sharing))
