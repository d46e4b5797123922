"""Covering arrays: a few of many trials that still have every pair of values (pairwise testing), or every value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain, combinations

from rnnbench.cases.schema import LEAVES
from rnnbench.cases.selection import texts_of
from rnnbench.cases.trial import Trial

Values = list[tuple[str, str]]
WEIGHT = 0.25
"""What a program covers is divided by this power of its size, so that small programs are preferred. For
`cases/conformance`, 0.25 chooses as many programs as 0, and their sizes add up to 0.6 of the sum at 0. With 0.5 a few
more programs are chosen."""


def every_pair(trials: Sequence[Trial]) -> list[Trial]:
    """A few trials that have every pair of values of different keys that `trials` have; every value of a single key."""
    return _cover(trials, lambda trial, values: set(combinations(values, 2)) or set(values))


def every_pair_between(trials: Sequence[Trial]) -> list[Trial]:
    """A few trials of several targets: together they have every pair of values, and each target has every value."""
    return _cover(trials, lambda trial, values: {*combinations(values, 2), *((trial.target, one) for one in values)})


def every_value(trials: Sequence[Trial]) -> list[Trial]:
    """A few trials that have every value, where there is no time for every pair."""
    return _cover(trials, lambda trial, values: set(values))


def _cover(trials: Sequence[Trial], what: Callable[[Trial, Values], set[Hashable]]) -> list[Trial]:
    """A greedy choice, in the trials' order. `what` says which things one trial covers.

    Each step takes the trial that covers most of what is not covered yet, weighted by the program's size. Then every
    trial is removed, the largest first, whose things the others cover too.
    """
    values = {trial.id: _values(trial) for trial in trials}
    axes = {key for key, texts in _by_key(values.values()).items() if len(texts) > 1}
    covers = {trial.id: what(trial, [value for value in values[trial.id] if value[0] in axes]) for trial in trials}
    cells = {trial.id: _cells(trial) for trial in trials}
    # Without an axis there is nothing to cover, and each target has one trial all the same.
    first = {trial.target: trial.id for trial in reversed(trials)}
    chosen = dict[str, None]() if axes else dict.fromkeys(first.values())
    uncovered = {trial_id: set(things) for trial_id, things in covers.items()}
    while uncovered:
        best = max(uncovered, key=lambda trial_id: len(uncovered[trial_id]) / cells[trial_id] ** WEIGHT)
        if not uncovered[best]:
            break
        chosen[best] = None
        newly_covered = uncovered.pop(best)
        for things in uncovered.values():
            things -= newly_covered
    times_covered = Counter(thing for trial_id in chosen for thing in covers[trial_id])
    for trial_id in sorted(chosen, key=cells.__getitem__, reverse=True):
        if covers[trial_id] and all(times_covered[thing] > 1 for thing in covers[trial_id]):
            del chosen[trial_id]
            times_covered.subtract(covers[trial_id])
    return [trial for trial in trials if trial.id in chosen]


def _values(trial: Trial) -> Values:
    """Every key of a case with the trial's value, and the time of its long-running checks."""
    return [*((leaf, _text(trial, leaf)) for leaf in LEAVES), ("endurance", f"{trial.limits.endurance:g}")]


def _by_key(values: Iterable[Values]) -> dict[str, set[str]]:
    texts: dict[str, set[str]] = {}
    for key, text in chain.from_iterable(values):
        texts.setdefault(key, set()).add(text)
    return texts


def _cells(trial: Trial) -> int:
    """Copies of the cell in its program. The time of a build grows with them."""
    time = trial.strategy.time
    copies = trial.strategy.chunk if time == "unrolled" else int(time.partition(":")[2] or 1)
    return copies * len(trial.model.graph)


def _text(trial: Trial, leaf: str) -> str:
    """The value as a text. A chunk of all steps is `all`, whatever their number."""
    texts = texts_of(trial, leaf)
    return "all" if "all" in texts else texts.pop()
