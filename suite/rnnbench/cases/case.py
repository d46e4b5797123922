"""A validated case: its points, and the trials that they make on the targets of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rnnbench.cases.errors import CaseError, Place
from rnnbench.cases.matrix import MAX_TRIALS
from rnnbench.cases.trial import ENDURANCE_S, Lengths, Limits, Measure, Strategy, Target, Trial
from rnnbench.devices import KINDS
from rnnbench.measure import ENERGY, PATHS
from rnnbench.rnn import Network
from rnnbench.spelling import count


@dataclass(frozen=True)
class Point:
    """One point of the matrix: everything of a trial that does not depend on its backend."""

    model: Network
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
    """One case with its overrides, from a file or from Python. No two points are the same."""

    name: str
    description: str
    points: tuple[Point, ...]
    limits: Limits
    measure: Measure
    endurance: float = ENDURANCE_S
    """Seconds for each long-running check in `rnnbench check`."""
    thresholds: Mapping[str, float] = field(default_factory=dict, hash=False)
    """From `compare:`, the smallest change that matters in a comparison, by kind of measure."""
    pinned: Mapping[str, str] = field(default_factory=dict, hash=False)
    """From `pinned:`, the requirements of each target's own environment. The trials of such a case are anchors."""
    path: str | None = None
    """The case file, as the user named it; None for a case made in Python."""
    expected_failures_file: Path | None = None
    """The file of expected failures for this case, if there is one."""

    @property
    def file_formats(self) -> frozenset[str]:
        """The formats of the model files that it runs, which only some routes read."""
        return frozenset(point.model.file_format for point in self.points) - {""}

    def trials(self, targets: Sequence[Target], max_trials: int = MAX_TRIALS, endurance: float = 0.0) -> list[Trial]:
        """Make a trial of every point on every target (no target twice). Trials of one point are consecutive.

        A case of anchors has its own targets, and ignores `targets`.

        `endurance` is the time in seconds of each long-running check; 0 leaves these checks out. If it differs from the
        case's own, `limits.enough` is ignored. Raises CaseError if there would be more than `max_trials`.
        """
        if self.pinned:
            targets = [Target(*name.split(":")) for name in self.pinned]
        if (trials := len(self.points) * len(targets)) > max_trials:
            raise CaseError.at(
                Place(self.path or self.name),
                f"{count(len(self.points), 'point')} on {count(len(targets), 'target')} make {trials:,} trials, and "
                f"at most {max_trials:,} are allowed; name fewer targets, shorten an axis or raise --max-trials",
            )
        enough = self.limits.enough if endurance == self.endurance else None
        limits = replace(self.limits, endurance=endurance, enough=enough)
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
                limits=limits,
                measure=_measure_on(point.device, self.measure),
                thresholds=self.thresholds,
                pinned=self.pinned.get(str(target), ""),
            )
            for point in self.points
            for target in targets
        ]


def _measure_on(device: str, measure: Measure) -> Measure:
    """Drop the settings that no device of this kind can measure. The record of a trial has the reasons."""
    without = KINDS[device].unmeasured
    unmeasured = {path.setting.key for name, path in PATHS.items() if name in without and path.setting}
    unmeasured |= {ENERGY.key} & {*without}
    settings = {key: value for key, value in measure.settings.items() if key not in unmeasured}
    return replace(measure, settings=settings)


def check_case_names(cases: Iterable[Case]) -> None:
    """Raise CaseError if two cases have the same name: their trials would have the same ids."""
    places: dict[str, str] = {}
    for case in cases:
        place = case.path or "a case made in Python"
        if (other := places.setdefault(case.name, place)) != place:
            raise CaseError.at(
                Place(place), f"{other} has the same name, '{case.name}', so their trials would have the same ids"
            )
