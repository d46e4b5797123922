"""Confirming a change that the screen found, by `rnnbench ab` of the versions before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rnnbench.cases import Trial
from rnnbench.history import Change
from rnnbench.pipeline.ab import SideBySide, compare_sides
from rnnbench.pipeline.environments import open_side
from rnnbench.pipeline.made_environments import SideError
from rnnbench.pipeline.record import Observer
from rnnbench.results import COMPARED_PATHS, Judgement, Store
from rnnbench.sampling import PairBudget


@dataclass(frozen=True)
class Confirmation:
    """What `rnnbench ab` says of a change."""

    change: Change
    verdicts: dict[str, Judgement]
    """By trial, of the change's latency path. A trial that failed on a side has none."""
    environments: tuple[str, str]
    """The requirements before and after."""
    runs: tuple[Path, Path]

    @property
    def confirmed(self) -> bool:
        """Whether at least one trial changed in the same direction."""
        expected = "SLOWER" if self.change.ratio > 1 else "FASTER"
        return any(judged.verdict == expected for judged in self.verdicts.values())


def confirm(
    change: Change, trials: Sequence[Trial], budget: PairBudget, store: Store, environments: Path, observer: Observer
) -> Confirmation:
    """Compare the versions before a change with those after it, on the trials that changed.

    `trials` are those of the cases; `trials_of_change` picks. Raises SideError where the change is none of a latency
    or of versions, where no trial is left, or where an environment cannot be made.
    """
    if change.measure not in COMPARED_PATHS:
        raise SideError(f"{change.measure}: only latencies are compared in turn ({', '.join(COMPARED_PATHS)})")
    before, after = map(requirements_of, change.versions)
    if before == after:
        raise SideError(
            f"{change.subject}: its versions did not change ({before or 'none'}), so nothing can be compared"
        )
    selected = trials_of_change(change, trials)
    if not selected:
        raise SideError(f"{change.subject}: none of the trials given is this one, or moved with it; give its case")
    sides = open_side(before, selected, environments), open_side(after, selected, environments)
    both = SideBySide.begin(selected, sides, store)
    comparison = compare_sides(both, budget, observer)
    verdicts = {each.trial: each.judged for each in comparison.latencies if each.path == change.measure}
    return Confirmation(change, verdicts, (before, after), both.runs)


def trials_of_change(change: Change, trials: Sequence[Trial]) -> list[Trial]:
    """The trial that changed, or those of a backend that moved together."""
    wanted = {change.subject} if change.level == "trial" else set(change.together)
    return [trial for trial in trials if trial.id in wanted]


def requirements_of(versions: str) -> str:
    """What pip takes for versions as a row has them: `onnx 1.20.0, onnxruntime 1.24.1`."""
    pairs = (text.split() for text in versions.split(",") if text.strip())
    return " ".join(f"{name}=={version}" for name, version in pairs)
