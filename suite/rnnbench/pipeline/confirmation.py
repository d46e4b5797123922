"""Confirming an alert of the history: the versions before and after it are compared as `rnnbench ab` does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rnnbench.cases import Trial
from rnnbench.history import Detection, Measured
from rnnbench.pipeline.ab import SideBySide, compare_sides
from rnnbench.pipeline.environments import Side, open_side
from rnnbench.pipeline.made_environments import SideError
from rnnbench.pipeline.record import Observer
from rnnbench.results import COMPARED_PATHS, SMALLEST, Judgement, Store
from rnnbench.sampling import PairBudget

MOST_TRIALS = 5
"""The most trials of one alert that are compared. They are spread over its members. An odd number has a middle one."""

LEAST_CHANGE = 0.005
"""The smallest relative change that is looked for: a smaller one gets no verdict within minutes."""


@dataclass(frozen=True)
class Confirmation:
    """The verdicts of a comparison for an alert."""

    detection: Detection
    verdicts: dict[str, Judgement]
    """The verdict of each trial on the alert's latency path. A trial that failed on a side has none."""
    environments: tuple[str, str]
    """The requirements before and after."""
    runs: tuple[Path, Path]

    @property
    def answer(self) -> Literal["confirmed", "refuted", "undecided"]:
        """`confirmed` if more than half of the trials changed in the alert's direction, `refuted` if more than half
        did not."""
        expected = "SLOWER" if (self.detection.ratio or 1.0) > 1 else "FASTER"
        decided = [judged.verdict for judged in self.verdicts.values() if judged.verdict != "UNDECIDED"]
        same_way = sum(verdict == expected for verdict in decided)
        if 2 * same_way > len(self.verdicts):
            return "confirmed"
        return "refuted" if 2 * (len(decided) - same_way) > len(self.verdicts) else "undecided"

    def measured(self, day: str) -> Measured | None:
        """The trial with the median ratio, among those with an interval; None if no trial has one."""
        measured = [(judged.ratio, judged.interval) for judged in self.verdicts.values() if judged.interval is not None]
        if not measured:
            return None
        ratio, (low, high) = sorted(measured)[(len(measured) - 1) // 2]
        interval = (round(low, 4), round(high, 4))
        return Measured(ratio=round(ratio, 4), interval=interval, versions=self.detection.versions, on=day)


def confirm(
    detection: Detection, trials: Sequence[Trial], seconds: float, store: Store, environments: Path, observer: Observer
) -> Confirmation:
    """Compare the versions before and after an alert on some of its trials, at most `seconds` for each.

    `trials` are those of the cases; `trials_of_alert` selects among them. The threshold is half of the alert's change,
    so that a change of 2 % is not called SAME. Raises SideError if the alert is `not_comparable`, if no trial is left,
    or if an environment cannot be made.
    """
    if problem := not_comparable(detection):
        raise SideError(problem)
    selected = trials_of_alert(detection, trials)
    if not selected:
        raise SideError("none of the trials of these cases is one of its trials; give the case that has them")
    before, after = map(requirements_of, detection.versions)
    sides = open_side(before, selected, environments), open_side(after, selected, environments)
    (confirmation,) = confirm_sides([detection], sides, seconds, store, observer)
    return confirmation


def confirm_sides(
    detections: Sequence[Detection], sides: tuple[Side, Side], seconds: float, store: Store, observer: Observer
) -> list[Confirmation]:
    """As `confirm`, for several alerts of the same versions at once. `sides` are the environments before and after."""
    side_trials = [one.trial for one in sides[0].facts.trials]
    trials_of = [{trial.id: trial for trial in trials_of_alert(detection, side_trials)} for detection in detections]
    trials = {name: trial for of_alert in trials_of for name, trial in of_alert.items()}
    before, after = (side.only(list(trials.values())) for side in sides)
    both = SideBySide.begin([one.trial for one in before.facts.trials], (before, after), store)
    budget = PairBudget(seconds, min(map(smallest_change, detections)))
    comparison = compare_sides(both, budget, observer)
    return [
        Confirmation(
            detection,
            {c.trial: c.judged for c in comparison.latencies if c.path == detection.what and c.trial in of_alert},
            (before.text, after.text),
            both.runs,
        )
        for detection, of_alert in zip(detections, trials_of, strict=True)
    ]


def smallest_change(detection: Detection) -> float:
    """The smallest relative change of latency that a comparison for this alert looks for."""
    return min(max(abs(math.log(detection.ratio or 1.0)) / 2, LEAST_CHANGE), SMALLEST)


def not_comparable(detection: Detection) -> str:
    """Why an alert cannot be confirmed by a comparison; empty if it can."""
    if detection.what not in COMPARED_PATHS:
        return f"it is about {detection.what}; only latencies are compared in turn ({', '.join(COMPARED_PATHS)})"
    try:
        before, after = map(requirements_of, detection.versions)
    except SideError as error:
        return str(error)
    if before == after:
        return f"its versions did not change ({before or 'none'}), so nothing can be compared"
    return ""


def trials_of_alert(detection: Detection, trials: Sequence[Trial]) -> list[Trial]:
    """At most MOST_TRIALS of these trials that are members of the alert, spread evenly over them."""
    members = set(detection.members)
    mine = [trial for trial in trials if trial.id in members]
    count = min(len(mine), MOST_TRIALS)
    return [mine[(2 * k + 1) * len(mine) // (2 * count)] for k in range(count)]


def requirements_of(versions: str) -> str:
    """pip's requirements for the versions of a row: `onnx==1.20.0` for `onnx 1.20.0`.

    Raises SideError if the text has another form.
    """
    pairs = [text.split() for text in versions.split(",") if text.strip()]
    if any(len(pair) != 2 for pair in pairs):
        raise SideError(f"'{versions}': expected packages with their versions, such as onnx 1.20.0, onnxruntime 1.24.1")
    return " ".join(f"{name}=={version}" for name, version in pairs)
