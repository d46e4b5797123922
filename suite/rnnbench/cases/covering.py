"""Covering arrays: a few of many trials that still have every pair of values (pairwise testing), or every value.

If the trials have several targets, the pairs or values are divided among the targets.
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
"""The key for the times of the long-running checks (`limits.endurance` and `limits.enough`)."""
IN_EACH = ("cell", "time", "state", "chunk", TURNS)
"""Keys of which each target gets every value, even if targets divide the values of all other keys."""
BUILD = 4
"""The fixed cost of a build, in copies of a layer."""

ROUNDS, KEPT = 30, 0.7
"""How often the choice is repeated, and the share of it that each repetition keeps. For `cases/conformance`, 30 rounds
choose 3 % fewer trials than one greedy choice, and take 1 s more."""


def every_pair(trials: Sequence[Trial]) -> list[Trial]:
    """Choose a few trials that together have every pair of values of different keys. Each target has every value."""
    return _cover(trials, lambda trial, values: {*combinations(values, 2), *_on_target(trial.target, values)})


def every_value(trials: Sequence[Trial]) -> list[Trial]:
    """Choose a few trials that together have every value. Each target has every value of the keys `IN_EACH`.

    Use it for targets with slow builds.
    """
    return _cover(
        trials,
        lambda trial, values: {*values, *_on_target(trial.target, [value for value in values if value[0] in IN_EACH])},
    )


def _on_target(target: Target, values: Values) -> Iterable[Hashable]:
    """The things that a trial covers for its own target: the target, and each value on it."""
    return target, *((target, value) for value in values)


def _cover(trials: Sequence[Trial], what: Callable[[Trial, Values], set[Hashable]]) -> list[Trial]:
    """Choose cheap trials that together cover everything, in the trials' order.

    `what` returns the things that a trial covers, given its values of the axes. The first choice is greedy. Each of
    ROUNDS further choices keeps a part of the best one and is completed greedily; the cheapest choice wins. The result
    depends only on the trials.
    """
    values = [_values(trial) for trial in trials]
    axes = {key for key, texts in _by_key(values).items() if len(texts) > 1}
    things = [
        what(trial, [value for value in of_trial if value[0] in axes])
        for trial, of_trial in zip(trials, values, strict=True)
    ]
    bits = {thing: 1 << number for number, thing in enumerate(dict.fromkeys(chain.from_iterable(things)))}
    covers, costs = [sum(bits[thing] for thing in of_trial) for of_trial in things], [cost(trial) for trial in trials]
    best, draw = greedy(covers, costs, []), Random(0)
    for _ in range(ROUNDS):
        other = greedy(covers, costs, [index for index in best if draw.random() < KEPT])
        best = min(other, best, key=lambda chosen: sum(costs[index] for index in chosen))
    return [trials[index] for index in sorted(best)]


def greedy(covers: Sequence[int], costs: Sequence[int], given: Sequence[int]) -> list[int]:
    """Complete the trials `given` until all things are covered. Returns indices of trials.

    `covers` has a bit for each thing. Each step adds the trial that covers the most uncovered things per cost. At the
    end, trials whose things the others cover too are removed, the most expensive first.
    """
    chosen = list(given)
    uncovered = reduce(or_, covers, 0) & ~reduce(or_, (covers[index] for index in chosen), 0)

    def gain(index: int) -> float:
        return (covers[index] & uncovered).bit_count() / costs[index]

    # Gains only fall, so an entry of the heap is an upper bound. If the first entry is up to date, it is the best.
    bounds = [(-gain(index), index) for index in range(len(covers))]
    heapify(bounds)
    while uncovered:
        best = bounds[0][1]
        now = (-gain(best), best)
        if now == bounds[0]:
            heappop(bounds)
            chosen.append(best)
            uncovered &= ~covers[best]
        else:
            heapreplace(bounds, now)
    once = _covered_once(covers[index] for index in chosen)
    for index in sorted(chosen, key=costs.__getitem__, reverse=True):
        if not covers[index] & once:
            chosen.remove(index)
            once = _covered_once(covers[other] for other in chosen)
    return chosen


def _covered_once(covers: Iterable[int]) -> int:
    """The bits of the things that exactly one of `covers` has."""
    seen, several = 0, 0
    for cover in covers:
        several |= seen & cover
        seen |= cover
    return seen & ~several


def cost(trial: Trial) -> int:
    """The cost of a trial's check, in copies of a layer: its program, and the program of one step for ragged rests."""
    strategy, layers = trial.strategy, len(trial.model.graph)
    copies = strategy.chunk if strategy.time == "unrolled" else int(strategy.time.partition(":")[2] or 1)
    has_rest = strategy.state != "none" and strategy.chunk > 1
    return BUILD + copies * layers + (BUILD + layers if has_rest else 0)


def _values(trial: Trial) -> Values:
    """Every key of a case with the trial's value, and TURNS with the times of its long-running checks."""
    turns = f"{trial.limits.endurance:g}, enough after {trial.limits.enough}"
    return [*((leaf, _text(trial, leaf)) for leaf in LEAVES), (TURNS, turns)]


def _by_key(values: Iterable[Values]) -> dict[str, set[str]]:
    texts: dict[str, set[str]] = {}
    for key, text in chain.from_iterable(values):
        texts.setdefault(key, set()).add(text)
    return texts


def _text(trial: Trial, leaf: str) -> str:
    """The value as a text. A chunk of all steps is `all`."""
    texts = texts_of(trial, leaf)
    return "all" if "all" in texts else texts.pop()
