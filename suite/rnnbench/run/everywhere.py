"""The trials of a check that names no backend: every route of all that are here, each on as few points as will do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rnnbench.backends.registry import find
from rnnbench.cases.thin import every_pair, every_value
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

    def sentences(self) -> Iterator[str]:
        """What a reader must know of what was left out."""
        quick = [target for target in self.supported if target not in self.slow]
        chosen, supported = (sum(counts[target] for target in quick) for counts in (self.chosen, self.supported))
        yield (
            "Each program is checked on as few points as still have every pair of values that it supports: "
            f"{chosen:,} trials of {supported:,}."
        )
        if self.slow:
            few = ", ".join(f"{target} {self.chosen[target]} of {self.supported[target]}" for target in self.slow)
            yield f"Builds are slow for these, which are checked on points that have every value: {few}."


def thinned(trials: Sequence[Trial]) -> Thinned:
    """Of the trials of all cases that a target supports, those with every pair of values; of a slow one's, those with
    every value."""
    by_target: dict[Target, list[Findings]] = {}
    for trial in trials:
        by_target.setdefault(trial.target, []).append(examine(trial))
    slow = tuple(target for target in by_target if target.route in find(target.backend).probe().slow)
    kept, supported, chosen = set[str](), dict[Target, int](), dict[Target, int]()
    for target, findings in by_target.items():
        able = [found.trial for found in findings if found.failure is None]
        left = (every_value if target in slow else every_pair)(able)
        refused = {found.failure: found.trial for found in findings if found.failure is not None}
        kept |= {trial.id for trial in (*left, *refused.values())}
        supported[target], chosen[target] = len(able), len(left)
    return Thinned([trial for trial in trials if trial.id in kept], supported, chosen, slow)
