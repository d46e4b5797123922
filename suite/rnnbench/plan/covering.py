"""A covering set of trials for each target, for cases whose points are too many to be checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rnnbench.cases import Target, Trial, every_pair, every_value
from rnnbench.plan.examination import examine_all
from rnnbench.stages import Examined


@dataclass(frozen=True)
class Sharing:
    """Targets that share a compiler, or a single target. Together their selections cover the pairs of values."""

    compiler: str
    """Its name; empty for a single target that shares none."""
    slow: bool
    """Whether builds take tens of seconds. The selections then cover every value, and not every pair of values."""
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class CoveringTrials:
    """A selection in which each target has no more of its supported trials than it needs."""

    trials: list[Trial]
    """The chosen trials, in their order, and for each target one unsupported trial per reason."""
    supported: dict[Target, int]
    """The number of trials that each target supports."""
    chosen: dict[Target, int]
    """The number of these that were chosen."""
    sharing: tuple[Sharing, ...]

    def sentences(self) -> Iterator[str]:
        """Sentences for the user about the trials that were left out."""
        alone = [sharing.targets[0] for sharing in self.sharing if len(sharing.targets) == 1 and not sharing.slow]
        if alone:
            chosen, supported = (sum(counts[target] for target in alone) for counts in (self.chosen, self.supported))
            yield (
                "Each target is checked on points that together have every pair of values it supports: "
                f"{chosen:,} of {supported:,} trials."
            )
        for sharing in self.sharing:
            counts = ", ".join(
                f"{target} {self.chosen[target]} of {self.supported[target]}" for target in sharing.targets
            )
            if sharing.slow:
                yield f"Targets with slow builds have every value between them: {counts}."
            elif len(sharing.targets) > 1:
                yield (
                    f"Routes into {sharing.compiler} have every pair of values between them, and every value each: "
                    f"{counts}."
                )


def covering_trials(trials: Sequence[Trial]) -> CoveringTrials:
    """Choose among the trials that each target supports as it is installed here (pairwise testing)."""
    return covering_of(examine_all(trials))


def covering_of(trials: Sequence[Examined]) -> CoveringTrials:
    """Choose among trials that an environment has examined.

    Each target gets every pair of values of two axes. Targets that share a compiler get these pairs between them.
    Targets with slow builds get every value between them.
    """
    by_target: dict[Target, list[Examined]] = {}
    for examined in trials:
        by_target.setdefault(examined.trial.target, []).append(examined)
    supported = {
        target: [examined.trial for examined in of_target if examined.failure is None]
        for target, of_target in by_target.items()
    }
    all_sharing = tuple(_sharing({target: of_target[0] for target, of_target in by_target.items()}))
    chosen = list[Trial]()
    for sharing in all_sharing:
        of_all = [trial for target in sharing.targets for trial in supported[target]]
        chosen += every_value(of_all) if sharing.slow else every_pair(of_all)
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
        sharing=all_sharing,
    )


def _sharing(examined: dict[Target, Examined]) -> Iterator[Sharing]:
    """The targets in groups, in their order. Slow routes and others make groups of their own."""
    groups: dict[tuple[str, str, bool], list[Target]] = {}
    for target, one in examined.items():
        compiler, slow = one.probe.compilers.get(target.route, ""), target.route in one.probe.slow
        groups.setdefault((target.backend, compiler or f":{target.route}", slow), []).append(target)
    for (_, compiler, slow), targets in groups.items():
        yield Sharing("" if compiler.startswith(":") else compiler, slow, tuple(targets))
