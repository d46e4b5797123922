"""Covering arrays: a few of many trials that still have every pair of values (pairwise testing), or every value.

The trials may be of several targets, which then share the pairs, or the values, out among them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import reduce
from heapq import heapify, heappop, heapreplace
from itertools import chain, combinations
from operator import or_
from random import Random

from rnnbench.cases.schema import LEAVES
from rnnbench.cases.selection import texts_of
from rnnbench.cases.trial import Target, Trial

Values = list[tuple[str, str]]
TURNS = "endurance"
"""The time of the long-running checks, and after which of it they have enough turns, as a key with values."""
IN_EACH = ("cell", "time", "state", "chunk", TURNS)
"""Keys whose values each target has, also where targets share the values of all others."""
BUILD = 4
"""A program's build takes as long as this many copies of a layer, however few it has."""

ROUNDS, KEPT = 30, 0.7
"""How often a choice is made again, and the share of it that is kept. For `cases/conformance`, 30 rounds choose 3 %
fewer trials than the greedy choice alone and take 1 s more."""


def every_pair(trials: Sequence[Trial]) -> list[Trial]:
    """A few trials: together they have every pair of values of different keys, and each target has every value."""
    return _cover(trials, lambda trial, values: {*combinations(values, 2), *_in(trial.target, values)})


def every_value(trials: Sequence[Trial]) -> list[Trial]:
    """A few trials: together they have every value, and each target has every value of the keys `IN_EACH`.

    For targets where there is no time for every pair.
    """
    return _cover(
        trials, lambda trial, values: {*values, *_in(trial.target, [value for value in values if value[0] in IN_EACH])}
    )


def _in(target: Target, values: Values) -> Iterable[Hashable]:
    """The target, and the values in it."""
    return target, *((target, value) for value in values)


def _cover(trials: Sequence[Trial], what: Callable[[Trial, Values], set[Hashable]]) -> list[Trial]:
    """A cheap choice, in the trials' order. `what` says which things one trial covers, given its values of the axes.

    The greedy choice, and then the cheapest of some that keep a part of the one before them. Equal trials give the same
    choice on every machine.
    """
    values = [_values(trial) for trial in trials]
    axes = {key for key, texts in _by_key(values).items() if len(texts) > 1}
    things = [
        what(trial, [value for value in of_trial if value[0] in axes])
        for trial, of_trial in zip(trials, values, strict=True)
    ]
    bits = {thing: 1 << number for number, thing in enumerate(dict.fromkeys(chain.from_iterable(things)))}
    covers, costs = [sum(bits[thing] for thing in of_trial) for of_trial in things], [cost(trial) for trial in trials]
    best, draw = _greedy(covers, costs, []), Random(0)
    for _ in range(ROUNDS):
        other = _greedy(covers, costs, [index for index in best if draw.random() < KEPT])
        best = min(other, best, key=lambda chosen: sum(costs[index] for index in chosen))
    return [trials[index] for index in sorted(best)]


def _greedy(covers: Sequence[int], costs: Sequence[int], given: Sequence[int]) -> list[int]:
    """The numbers of trials that cover all: those given, and others. `covers` has a bit for each thing.

    Each step takes the trial that covers most of what is not covered yet, for what it costs. Then every trial is
    removed, the dearest first, whose things the others cover too.
    """
    chosen = list(given)
    uncovered = reduce(or_, covers, 0) & ~reduce(or_, (covers[index] for index in chosen), 0)

    def gain(index: int) -> float:
        return (covers[index] & uncovered).bit_count() / costs[index]

    # What a trial gains only falls. So one that still gains as much as the next was said to gain is the best.
    said = [(-gain(index), index) for index in range(len(covers))]
    heapify(said)
    while uncovered:
        now = (-gain(said[0][1]), said[0][1])
        if now == said[0]:
            heappop(said)
            chosen.append(now[1])
            uncovered &= ~covers[now[1]]
        else:
            heapreplace(said, now)
    once = _covered_once(covers[index] for index in chosen)
    for index in sorted(chosen, key=costs.__getitem__, reverse=True):
        if not covers[index] & once:
            chosen.remove(index)
            once = _covered_once(covers[other] for other in chosen)
    return chosen


def _covered_once(covers: Iterable[int]) -> int:
    """A bit for each thing that exactly one of them covers."""
    any_, several = 0, 0
    for each in covers:
        several |= any_ & each
        any_ |= each
    return any_ & ~several


def cost(trial: Trial) -> int:
    """What a check builds, in copies of a layer: the program, and that of one step for the rest of a call."""
    strategy, layers = trial.strategy, len(trial.model.graph)
    copies = strategy.chunk if strategy.time == "unrolled" else int(strategy.time.partition(":")[2] or 1)
    has_rest = strategy.state != "none" and strategy.chunk > 1
    return BUILD + copies * layers + (BUILD + layers if has_rest else 0)


def _values(trial: Trial) -> Values:
    """Every key of a case with the trial's value, and the time of its long-running checks."""
    turns = f"{trial.limits.endurance:g}, enough after {trial.limits.enough}"
    return [*((leaf, _text(trial, leaf)) for leaf in LEAVES), (TURNS, turns)]


def _by_key(values: Iterable[Values]) -> dict[str, set[str]]:
    texts: dict[str, set[str]] = {}
    for key, text in chain.from_iterable(values):
        texts.setdefault(key, set()).add(text)
    return texts


def _text(trial: Trial, leaf: str) -> str:
    """The value as a text. A chunk of all steps is `all`, whatever their number."""
    texts = texts_of(trial, leaf)
    return "all" if "all" in texts else texts.pop()
