"""A covering set of trials for each target: what is checked where all points of the cases would be too many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rnnbench.cases import Target, Trial, every_pair, every_pair_between, every_value
from rnnbench.plan.examination import examine_all
from rnnbench.stages import Examined


@dataclass(frozen=True)
class CoveringTrials:
    """A selection in which each target has no more of its supported trials than it needs."""

    trials: list[Trial]
    """In their order. Of those that a target does not support, one for each reason."""
    supported: dict[Target, int]
    """Trials that each target supports."""
    chosen: dict[Target, int]
    """Trials of these that were chosen."""
    slow: tuple[Target, ...]
    """Targets whose builds are slow: each value of each axis is in their selection once."""
    shared: tuple[Target, ...]
    """Targets that share a compiler: each pair of values is in one of their selections, each value in every one."""

    def sentences(self) -> Iterator[str]:
        """What a reader must know of what was left out."""
        quick = [target for target in self.supported if target not in (*self.slow, *self.shared)]
        chosen, supported = (sum(counts[target] for target in quick) for counts in (self.chosen, self.supported))
        yield (
            "Each target is checked on points that together have every pair of values it supports: "
            f"{chosen:,} of {supported:,} trials."
        )
        if self.shared:
            yield (
                "Routes into one compiler have every pair of values between them, and every value each: "
                f"{self._counts(self.shared)}."
            )
        if self.slow:
            yield f"Targets with slow builds have every value once: {self._counts(self.slow)}."

    def _counts(self, targets: Sequence[Target]) -> str:
        return ", ".join(f"{target} {self.chosen[target]} of {self.supported[target]}" for target in targets)


def covering_trials(trials: Sequence[Trial]) -> CoveringTrials:
    """Choose among the trials of all cases that each target supports (pairwise testing), as it is installed here."""
    return covering_of(examine_all(trials))


def covering_of(trials: Sequence[Examined]) -> CoveringTrials:
    """Choose among trials that an environment has examined.

    Every pair of values of two axes is chosen: for each target; between them for targets that share a compiler. For
    targets with slow builds every value is.
    """
    by_target: dict[Target, list[Examined]] = {}
    for examined in trials:
        by_target.setdefault(examined.trial.target, []).append(examined)
    probes = {target: of_target[0].probe for target, of_target in by_target.items()}
    slow = tuple(target for target, probe in probes.items() if target.route in probe.slow)
    shared = tuple(target for target, probe in probes.items() if target.route in probe.shared)
    supported = {
        target: [examined.trial for examined in of_target if examined.failure is None]
        for target, of_target in by_target.items()
    }
    chosen = _choose(supported, slow, shared)
    one_per_reason = {
        (target, examined.failure): examined.trial
        for target, of_target in by_target.items()
        for examined in of_target
        if examined.failure
    }
    ids, counts = {trial.id for trial in (*chosen, *one_per_reason.values())}, Counter(t.target for t in chosen)
    return CoveringTrials(
        trials=[examined.trial for examined in trials if examined.trial.id in ids],
        supported={target: len(of_target) for target, of_target in supported.items()},
        chosen={target: counts[target] for target in by_target},
        slow=slow,
        shared=shared,
    )


def _choose(supported: dict[Target, list[Trial]], slow: Sequence[Target], shared: Sequence[Target]) -> list[Trial]:
    chosen = [trial for target in slow for trial in every_value(supported[target])]
    for backend in dict.fromkeys(target.backend for target in shared):
        chosen += every_pair_between([t for target in shared if target.backend == backend for t in supported[target]])
    quick = [target for target in supported if target not in (*slow, *shared)]
    return chosen + [trial for target in quick for trial in every_pair(supported[target])]
