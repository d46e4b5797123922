"""Adapters that are wrong in what follows a long call, an odd number of calls, a second close, or a wrong call."""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np
from honest_adapter import HonestBound, HonestSession
from planted import fault, timed

from rnnbench.backends.base import ArrayError


@fault("chunks")
class ALongCallLeavesTheStateOfItsEighthChunk(HonestSession):
    """Its y is right. It shows in the next call, and in calls of whole chunks alone."""

    def _in_chunks(self, x):
        most = 8 * self._chunk
        if len(x) <= most or len(x) % self._chunk:
            return super()._in_chunks(x)
        y = super()._in_chunks(x[:most])
        left = self.get_state()
        y = np.concatenate([y, super()._in_chunks(x[most:])])
        self._write_state(left)
        return y


@fault("chunks")
class TheSixtyFifthStepOfACallIsNotComputed(HonestSession):
    """Of a long call, whose buffer is too short."""

    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        y[64:65] = y[63:64]
        return y


@fault("chunks")
class ACallWithARestLeavesAnOldC(HonestSession):
    """After five chunks or more and a rest."""

    def _in_chunks(self, x):
        c = self.state["c"]
        y = super()._in_chunks(x)
        if len(x) > 5 * self._chunk and len(x) % self._chunk == 2:
            self.state["c"] = c
        return y


@fault("chunks")
class ABoundCallReadsTheOtherBuffer(HonestSession):
    """After an odd number of public calls in a row, five or more."""

    in_a_row = 0
    older: dict[str, np.ndarray]

    def _advance(self, x):
        self.older, self.in_a_row = self.state, self.in_a_row + 1
        return super()._advance(x)

    def _write_state(self, state):
        self.in_a_row = 0
        super()._write_state(state)

    def _bind(self, ring):
        session = self

        class Bound(HonestBound):
            def __call__(self):
                if session.in_a_row > 4 and session.in_a_row % 2:
                    session.state = session.older
                session.in_a_row = 0
                super().__call__()

        return Bound(self, ring)


@fault("closing")
class ASecondCloseResetsTheNewestSession(HonestSession):
    """The first close gives its slot back, which the newest session has got since."""

    opened: ClassVar[list[HonestSession]] = []

    def __init__(self, program):
        super().__init__(program)
        self.opened.append(self)

    def close(self):
        if self in self.opened:
            self.opened.remove(self)
        elif self.opened:
            self.opened[-1].reset()
        super().close()


@fault("reset")
class AResetTakesSmallNumbersForZeros(HonestSession):
    """A state whose h is near zero is taken for one that was reset."""

    def reset(self):
        if not self.state or np.abs(self.state["h"]).max() > 0.01:
            super().reset()


@fault("reset")
class AResetLooksAtOneArray(HonestSession):
    """Where c is zero, nothing is reset."""

    def reset(self):
        if not self.state or self.state["c"].any():
            super().reset()


@fault("rewind")
class AStateIsKnownByItsFirstArray(HonestSession):
    """The program of one step has its state still, where the session is given the h that this program left."""

    left: dict[str, np.ndarray] | None = None

    def _in_chunks(self, x):
        if self.left is not None and len(x) < self._chunk and np.array_equal(self.left["h"], self.state["h"]):
            self._write_state(self.left)
        y = super()._in_chunks(x)
        self.left = self.get_state()
        return y


@fault("resets")
class EverySixtyFourthStateIsNotTaken(HonestSession):
    sets = 0

    def set_state(self, state):
        self.sets += 1
        if self.sets % 64:
            super().set_state(state)


@timed("owned")
class TheLastChunkOfARingIsNotCopied(HonestBound):
    @staticmethod
    def copied(ring):
        return [*(x.copy() for x in ring[:-1]), ring[-1]]


@fault("refusal")
class AStateAmongTheInputsIsLeftOut(HonestSession):
    def step(self, inputs):
        return super().step({name: array for name, array in inputs.items() if name not in self.state})


@fault("refusal")
class LengthsThatItDoesNotTakeAreLeftOut(HonestSession):
    def step(self, inputs):
        return super().step({name: array for name, array in inputs.items() if name != "lengths"})


@fault("refusal")
class ARefusedRingTurnsTheOneBeforeBack(HonestSession):
    """It begins anew with its first chunk."""

    bound: HonestBound | None = None

    def bind(self, ring):
        try:
            return super().bind(ring)
        except ArrayError:
            if self.bound is not None:
                self.bound._next = itertools.cycle(self.bound.ring).__next__
            raise

    def _bind(self, ring):
        self.bound = HonestBound(self, [x.copy() for x in ring])
        return self.bound


@fault("owned")
class ZerosThatAreSetAreNotCopied(HonestSession):
    def _write_state(self, state):
        super()._write_state(state)
        if not any(array.any() for array in state.values()):
            self.state = dict(state)
