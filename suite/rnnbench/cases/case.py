"""A case, checked: its points, and the trials they make on the targets that a run names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rnnbench.cases.errors import CaseError, Place
from rnnbench.cases.matrix import MAX_TRIALS
from rnnbench.cases.trial import ENDURANCE_S, Lengths, Limits, Measure, Strategy, Target, Trial
from rnnbench.rnn.spec import Model


@dataclass(frozen=True)
class Point:
    """One point of the matrix: all of a trial that does not depend on its backend."""

    model: Model
    strategy: Strategy
    steps: int
    batch: int
    dtype: str
    device: str
    threads: int
    seed: int
    lengths: Lengths


@dataclass(frozen=True)
class Case:
    """One case file with its overrides. No two points are the same."""

    path: str
    name: str
    description: str
    points: tuple[Point, ...]
    limits: Limits
    measure: Measure
    endurance: float = ENDURANCE_S
    """Seconds for each check that goes on for long, where the trials are only checked."""

    def trials(self, targets: Sequence[Target], max_trials: int = MAX_TRIALS) -> list[Trial]:
        """Every point on every target (no target twice): what is to be compared stands together.

        Raises CaseError, before making any, where there would be more than `max_trials`.
        """
        if (count := len(self.points) * len(targets)) > max_trials:
            raise CaseError.at(
                Place(self.path),
                f"{len(self.points):,} points on {len(targets)} targets make {count:,} trials, and at most "
                f"{max_trials:,} are allowed; name fewer targets, shorten an axis or raise --max-trials",
            )
        return [
            Trial(
                case=self.name,
                target=target,
                model=point.model,
                strategy=point.strategy,
                steps=point.steps,
                batch=point.batch,
                dtype=point.dtype,
                device=point.device,
                threads=point.threads,
                seed=point.seed,
                lengths=point.lengths,
                limits=self.limits,
                measure=self.measure,
            )
            for point in self.points
            for target in targets
        ]
