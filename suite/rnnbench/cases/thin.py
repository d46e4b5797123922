"""A few of many trials: every pair of values that any of them has, or every value, once at least."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import combinations

from rnnbench.cases.schema import LEAVES
from rnnbench.cases.select import texts_of
from rnnbench.cases.trial import Trial

Thin = Callable[[Sequence[Trial]], list[Trial]]


def every_pair(trials: Sequence[Trial]) -> list[Trial]:
    """As few as still have every two values of different keys that stand together in one of them."""
    return _cover(trials, lambda values: set(combinations(values, 2)))


def every_value(trials: Sequence[Trial]) -> list[Trial]:
    """As few as still have every value, where there is no time for every pair."""
    return _cover(trials, set)


def _cover(trials: Sequence[Trial], what: Callable[[list[tuple[str, str]]], set[Hashable]]) -> list[Trial]:
    """The fewest that a greedy choice finds, in their order: each brings the most of what is not yet there."""
    values = {trial.id: [(leaf, _text(trial, leaf)) for leaf in LEAVES] for trial in trials}
    axes = {leaf for leaf in LEAVES if len({text for own in values.values() for key, text in own if key == leaf}) > 1}
    brings = {name: what([value for value in own if value[0] in axes]) for name, own in values.items()}
    chosen = {trial.id for trial in trials[:1]} if not axes else set[str]()
    while brings and (best := max(brings, key=lambda name: len(brings[name]))) and brings[best]:
        chosen.add(best)
        new = brings.pop(best)
        for left in brings.values():
            left -= new
    return [trial for trial in trials if trial.id in chosen]


def _text(trial: Trial, leaf: str) -> str:
    """The value; for calls of all the steps `all`, whatever their number."""
    texts = texts_of(trial, leaf)
    return "all" if "all" in texts else texts.pop()
