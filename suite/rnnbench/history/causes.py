"""What caused a change of level: the program, or the machine, of which the anchors and the other programs tell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rnnbench.history.change_points import LEAST_NIGHTS, WEEK, Array, Step
from rnnbench.history.measures import Measure
from rnnbench.history.series import LEAST_TRIALS, Trials
from rnnbench.spelling import percents

NEAR = 3
"""Runs by which a change may be dated wrongly: the noise of a few runs at its edge."""
MACHINE_SHARE = 0.5
"""A move of the machine changes programs by different amounts, with a standard deviation of some 15 % of the move. So
after the division, a step of up to three deviations is still taken for the machine's."""


@dataclass(frozen=True)
class Causes:
    """Causes of the steps in one measure of one machine's trials."""

    trials: Trials
    measure: Measure
    moves: Sequence[Step]
    """Steps of the anchors."""

    def environment(self, step: Step, members: Sequence[int]) -> str:
        """Why the program did not cause a step of these trials; empty where it may have."""
        moves = self._moves_near(step, members)
        for move in moves:
            if abs(step.size) < MACHINE_SHARE * abs(move.size):
                return f"the machine moved by {_percent(move.size)} at that time, and programs differ in how much"
        if not self.measure.anchored_by:
            return ""
        if program_change(self.trials, members, step.index) is None:
            return "the same program with the same versions: digest, packages, rnnbench and Python did not change"
        others = self._shift_of_others(step, members, must_be_unchanged=True)
        if others * step.size > 0 and abs(step.size) < (1 + MACHINE_SHARE) * abs(others):
            return f"programs that did not change moved by {_percent(others)} at that time, and the anchors did not"
        for move in moves:
            shifts = (step.size, self._shift_of_others(step, members, must_be_unchanged=False))
            if all(abs(shift + move.size) < MACHINE_SHARE * abs(move.size) for shift in shifts):
                return f"the anchors alone moved by {_percent(move.size)} at that time: no backend did"
        return ""

    def is_of_anchors_or_program(self, step: Step, members: Sequence[int]) -> bool:
        """Whether the program stayed as it was while the anchors moved, and too few other programs say which did."""
        moves = self._moves_near(step, members) if self.measure.anchored_by else []
        undone = [m for m in moves if abs(step.size + m.size) < MACHINE_SHARE * abs(m.size)]
        return bool(undone) and len(list(self._shifts_of_others(step, members))) < LEAST_TRIALS

    def _moves_near(self, step: Step, members: Sequence[int]) -> list[Step]:
        return [m for m in self.moves if self.trials.runs_between(members, m.index, step.index) <= NEAR]

    def _shift_of_others(self, step: Step, members: Sequence[int], *, must_be_unchanged: bool) -> float:
        """The median shift of programs of other backends at a step; 0 where there are too few."""
        shifts = [
            shift
            for k, shift in self._shifts_of_others(step, members)
            if not (must_be_unchanged and program_change(self.trials, [k], step.index))
        ]
        return float(np.median(shifts)) if len(shifts) >= LEAST_TRIALS else 0.0

    def _shifts_of_others(self, step: Step, members: Sequence[int]) -> Iterator[tuple[int, float]]:
        backends = {self.trials.backends[k] for k in members}
        return ((k, shift) for k, shift in self._shifts(step.index) if self.trials.backends[k] not in backends)

    def _shifts(self, at: int) -> Iterator[tuple[int, float]]:
        """Each program that was measured before and after a run, with the difference of its weeks there."""
        for k in np.flatnonzero(~self.trials.is_anchor):
            if (shift := weeks_shift(self._divided[k], at)) is not None:
                yield int(k), shift

    @cached_property
    def _divided(self) -> Array:
        return self.trials.divided(self.measure)


def weeks_shift(values: Array, at: int) -> float | None:
    """The difference of the weeks at either side of a run; None where too few of their runs have a value."""
    before, after = (part[np.isfinite(part)] for part in (values[:at], values[at:]))
    if min(len(before), len(after)) < LEAST_NIGHTS:
        return None
    return float(np.median(after[:WEEK]) - np.median(before[-WEEK:]))


def program_change(
    trials: Trials, members: Sequence[int], at: int, between: tuple[int, int] | None = None
) -> tuple[str, str] | None:
    """Versions before and after the change of a program of these trials that is nearest to a run; None: there is none.

    Of the changes `between` two runs, they are the versions before the first one and after the last one, unless these
    are equal. Only the runs count in which a trial was measured.
    """
    nearest: tuple[int, int, int] | None = None
    for k in members:
        measured = np.flatnonzero(trials.program[k])
        place = int(np.searchsorted(measured, at))
        for new in range(max(place - NEAR, 1), min(place + NEAR + 1, len(measured))):
            distance = abs(new - place)
            if _is_changed(trials, k, measured, new) and (not nearest or distance < nearest[0]):
                nearest = distance, k, new
    if nearest is None:
        return None
    _, k, new = nearest
    measured = np.flatnonzero(trials.program[k])
    first, last = between or (at, at)
    inside = range(max(1, int(np.searchsorted(measured, first))), int(np.searchsorted(measured, last, side="right")))
    changes = [new, *(other for other in inside if _is_changed(trials, k, measured, other))]
    all_versions = trials.versions[k, measured[min(changes) - 1]], trials.versions[k, measured[max(changes)]]
    if all_versions[0] != all_versions[1]:
        return all_versions
    return trials.versions[k, measured[new - 1]], trials.versions[k, measured[new]]


def _is_changed(trials: Trials, k: int, measured: npt.NDArray[np.intp], new: int) -> bool:
    """Whether the program of a trial is another one than in the run before in which it was measured."""
    return bool(trials.program[k, measured[new - 1]] != trials.program[k, measured[new]])


def _percent(size: float) -> str:
    return percents(math.exp(size) - 1, "+")
