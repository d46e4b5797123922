"""A few of many trials: every pair of values that any of them has, or every value, once at least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain, combinations

from rnnbench.cases.schema import LEAVES
from rnnbench.cases.select import texts_of
from rnnbench.cases.trial import Trial

Values = list[tuple[str, str]]
WEIGHT = 0.25
"""By this power of its size a program counts for less. Of `cases/conformance` as many are chosen as with 0, and their
sizes add up to 0.6 of that; with 0.5 it is a few programs more."""


def every_pair(trials: Sequence[Trial]) -> list[Trial]:
    """Few that still have every two values of different keys that stand together in one of them."""
    return _cover(trials, lambda trial, values: set(combinations(values, 2)))


def every_pair_between(trials: Sequence[Trial]) -> list[Trial]:
    """Few, of several targets, that have every pair of values between them, and every value on each target."""
    return _cover(trials, lambda trial, values: {*combinations(values, 2), *((trial.target, one) for one in values)})


def every_value(trials: Sequence[Trial]) -> list[Trial]:
    """Few that still have every value, where there is no time for every pair."""
    return _cover(trials, lambda trial, values: set(values))


def _cover(trials: Sequence[Trial], what: Callable[[Trial, Values], set[Hashable]]) -> list[Trial]:
    """A greedy choice, in the trials' order: each brings the most of what is not yet there, small programs before large
    ones. Then those go, the largest first, that the others have made superfluous."""
    values = {trial.id: _values(trial) for trial in trials}
    axes = {key for key, texts in _by_key(values.values()).items() if len(texts) > 1}
    has = {trial.id: what(trial, [value for value in values[trial.id] if value[0] in axes]) for trial in trials}
    cells = {trial.id: _cells(trial) for trial in trials}
    chosen = {trial.id: None for trial in trials[:1]} if not axes else dict[str, None]()
    brings = {name: set(own) for name, own in has.items()}
    while brings:
        best = max(brings, key=lambda name: len(brings[name]) / cells[name] ** WEIGHT)
        if not brings[best]:
            break
        chosen[best] = None
        new = brings.pop(best)
        for left in brings.values():
            left -= new
    times = Counter(one for name in chosen for one in has[name])
    for name in sorted(chosen, key=cells.__getitem__, reverse=True):
        if has[name] and all(times[one] > 1 for one in has[name]):
            del chosen[name]
            times.subtract(has[name])
    return [trial for trial in trials if trial.id in chosen]


def _values(trial: Trial) -> Values:
    """What a case can say of a trial, and what it gives the checks that go on for long."""
    return [*((leaf, _text(trial, leaf)) for leaf in LEAVES), ("endurance", f"{trial.limits.endurance:g}")]


def _by_key(values: Iterable[Values]) -> dict[str, set[str]]:
    texts: dict[str, set[str]] = {}
    for key, text in chain.from_iterable(values):
        texts.setdefault(key, set()).add(text)
    return texts


def _cells(trial: Trial) -> int:
    """Copies of the cell that its program has: what compilers take their time by."""
    time = trial.strategy.time
    copies = trial.strategy.chunk if time == "unrolled" else int(time.partition(":")[2] or 1)
    return copies * trial.model.layers * trial.model.directions


def _text(trial: Trial, leaf: str) -> str:
    """The value; for calls of all the steps `all`, whatever their number."""
    texts = texts_of(trial, leaf)
    return "all" if "all" in texts else texts.pop()
