"""The dispatch floor: what a call of the least program costs that a runtime can be given through its adapter.

That program is a counter of one unit, one step a call: it adds one number, and has no weights. Its call goes the way
that `bound` goes, so that what is left is Python, the runtime's dispatch and the state's way in and out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rnnbench.cases.trial import State, Strategy, Target
from rnnbench.measure.warmup import WarmUp
from rnnbench.rnn.spec import Model
from rnnbench.run.messages import Failure
from rnnbench.run.prepare import Findings, examine, shared_by
from rnnbench.run.seat import Seat

COUNTER = Model(cell="counter", input=1, hidden=1)
TIMES = ("unrolled", "looped")
"""In which its one step is asked for: the first that is supported. A loop of one step may be kept as one."""
LOOKS = 6
"""Blocks in each process of the trials, in their first rounds."""
BLOCK_S = 0.004
WARMUP_S = 0.02


class DispatchFloor:
    """The least program of each target and state in a group, sampled in the same processes and rounds as its trials."""

    def __init__(self, group: Sequence[Findings]) -> None:
        self._least: dict[tuple[Target, State], Findings] = {}
        for findings in group:
            kind = (findings.trial.target, findings.trial.strategy.state)
            if kind not in self._least:
                self._least[kind] = _least(findings)
            findings.least = self._least[kind]

    def beside(self, trials: Sequence[Findings]) -> list[Findings]:
        """What can be sampled in the workers of these trials."""
        asked = {id(findings.least) for findings in trials}
        return [least for least in self._least.values() if id(least) in asked and least.failure is None]

    def warm_up(self, seats: Sequence[Seat]) -> None:
        for seat, least in self._places(seats):
            warmup = WarmUp(WARMUP_S, least.trial.measure.precision)
            least.warmups.setdefault("bound", []).append(warmup)
            least.blocks.setdefault("bound", []).append([])
            seat.warm_up(least, "bound", warmup)

    def look(self, seats: Sequence[Seat]) -> None:
        """A block of each, unless there have been enough."""
        for seat, least in self._places(seats):
            blocks, together = least.blocks["bound"][-1], least.warmups["bound"][0].calls_per_sample
            if len(blocks) < LOOKS:
                block = seat.sample(least, "bound", BLOCK_S, calls_per_sample=together)
                if block is not None:
                    blocks.append(block)

    def _places(self, seats: Sequence[Seat]) -> list[tuple[Seat, Findings]]:
        known = {id(least) for least in self._least.values()}
        return [(seat, findings) for seat in seats for findings in list(seat.trials) if id(findings) in known]


def _least(findings: Findings) -> Findings:
    """The least program of the findings' target and state; with a failure where there is none that may be beside it."""
    trial = findings.trial
    for time in TIMES:
        strategy = Strategy(time, trial.strategy.state, 1)
        least = examine(replace(trial, model=COUNTER, strategy=strategy, steps=1, batch=1, seed=0, lengths="full"))
        least.is_built = False
        if least.failure is None and shared_by(least) != shared_by(findings):
            least.fail("support", Failure("unsupported", "a counter wants another environment than this trial"))
        if least.failure is None:
            break
    return least
