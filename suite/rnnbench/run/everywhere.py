"""The trials of a check that names no backend: every route of all that are here, each on as few points as will do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rnnbench.backends.registry import find
from rnnbench.cases import every_pair, every_pair_between, every_value
from rnnbench.cases.trial import Target, Trial
from rnnbench.run.prepare import Findings, examine


@dataclass(frozen=True)
class Thinned:
    """What is left of trials where no target has more of those that it supports than it needs."""

    trials: list[Trial]
    """In their order. Of those that a target does not support, one for each reason that it gives."""
    supported: dict[Target, int]
    """How many trials each target supports."""
    chosen: dict[Target, int]
    """How many of them are left."""
    slow: tuple[Target, ...]
    """Targets whose builds are slow: what is left has every value once, and not every pair of values."""
    shared: tuple[Target, ...]
    """Targets that share a compiler: what is left has every pair of values on one of them, and every value on each."""

    def sentences(self) -> Iterator[str]:
        """What a reader must know of what was left out."""
        quick = [target for target in self.supported if target not in (*self.slow, *self.shared)]
        chosen, supported = (sum(counts[target] for target in quick) for counts in (self.chosen, self.supported))
        yield (
            "Each program is checked on as few points as still have every pair of values that it supports: "
            f"{chosen:,} trials of {supported:,}."
        )
        if self.shared:
            yield f"Those of one compiler have every pair between them, and every value each: {self._few(self.shared)}."
        if self.slow:
            yield f"Builds are slow for these, which have every value: {self._few(self.slow)}."

    def _few(self, targets: Sequence[Target]) -> str:
        return ", ".join(f"{target} {self.chosen[target]} of {self.supported[target]}" for target in targets)


def thinned(trials: Sequence[Trial]) -> Thinned:
    """Of the trials of all cases that a target supports, those with every pair of values; of targets that share a
    compiler, between them; of a slow one's, those with every value."""
    by_target: dict[Target, list[Findings]] = {}
    for trial in trials:
        by_target.setdefault(trial.target, []).append(examine(trial))
    slow = tuple(target for target in by_target if target.route in find(target.backend).probe().slow)
    shared = tuple(target for target in by_target if target.route in find(target.backend).probe().shared)
    able = {target: [found.trial for found in all_ if found.failure is None] for target, all_ in by_target.items()}
    left = [trial for target in slow for trial in every_value(able[target])]
    for backend in dict.fromkeys(target.backend for target in shared):
        left += every_pair_between([t for target in shared if target.backend == backend for t in able[target]])
    left += [trial for target in by_target if target not in (*slow, *shared) for trial in every_pair(able[target])]
    told = {(t, found.failure): found.trial for t, all_ in by_target.items() for found in all_ if found.failure}
    kept, counts = {trial.id for trial in (*left, *told.values())}, Counter(trial.target for trial in left)
    return Thinned(
        trials=[trial for trial in trials if trial.id in kept],
        supported={target: len(trials) for target, trials in able.items()},
        chosen={target: counts[target] for target in by_target},
        slow=slow,
        shared=shared,
    )
