"""What caused a change of level: the program, or the machine, of which the anchors and the other programs tell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

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
        moves = [m for m in self.moves if self.trials.runs_between(members, m.index, step.index) <= NEAR]
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

    def _shift_of_others(self, step: Step, members: Sequence[int], *, must_be_unchanged: bool) -> float:
        """The median shift of programs of other backends at a step; 0 where there are too few."""
        backends = {self.trials.backends[k] for k in members}
        shifts = [
            shift
            for k, shift in self._shifts(step.index)
            if self.trials.backends[k] not in backends
            and not (must_be_unchanged and program_change(self.trials, [k], step.index))
        ]
        return float(np.median(shifts)) if len(shifts) >= LEAST_TRIALS else 0.0

    def _shifts(self, at: int) -> Iterator[tuple[int, float]]:
        """Each program that was measured before and after a run, with the difference of its weeks there."""
        for k in np.flatnonzero(~self.trials.is_anchor):
            values = self._divided[k]
            before, after = (part[np.isfinite(part)] for part in (values[:at], values[at:]))
            if min(len(before), len(after)) >= LEAST_NIGHTS:
                yield int(k), float(np.median(after[:WEEK]) - np.median(before[-WEEK:]))

    @cached_property
    def _divided(self) -> Array:
        return self.trials.divided(self.measure)


def program_change(trials: Trials, members: Sequence[int], at: int) -> tuple[str, str] | None:
    """Versions before and after the change of a program of these trials that is nearest to a run; None: there is none.

    Only the runs count in which a trial was measured.
    """
    nearest: tuple[int, str, str] | None = None
    for k in members:
        measured = np.flatnonzero(trials.program[k])
        place = int(np.searchsorted(measured, at))
        for new in range(max(place - NEAR, 1), min(place + NEAR + 1, len(measured))):
            old_run, new_run = measured[new - 1], measured[new]
            distance = abs(new - place)
            if trials.program[k, old_run] != trials.program[k, new_run] and (not nearest or distance < nearest[0]):
                nearest = distance, trials.versions[k, old_run], trials.versions[k, new_run]
    return nearest and nearest[1:]


def _percent(size: float) -> str:
    return percents(math.exp(size) - 1, "+")
