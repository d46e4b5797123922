"""Adapters that are wrong at one count or length alone, for numbers that are not ordinary, or in how y is stored."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from honest_adapter import HonestBound, HonestSession
from planted import BATCH, fault, timed

from rnnbench.rnn.reference import run_in

# One length, one count.


@fault("chunks", chunk=1)
class OnlyCallsOfElevenStepsEndWrongly(HonestSession):
    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        if len(x) == 11:
            y[-1] *= np.float32(0.9)
        return y


@fault("chunks")
class OnlyCallsOfTwentyNineStepsLeaveAnotherState(HonestSession):
    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        if len(x) == 29:
            self.state = {name: array * np.float32(0.9) for name, array in self.state.items()}
        return y


@fault("chunks")
class YIsOfFloat64AfterARestOfThree(HonestSession):
    """Its numbers are right."""

    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        return y.astype(np.float64) if len(x) % self._chunk == 3 else y


@fault("resets")
class The257thResetIsLost(HonestSession):
    """It is counted in a byte."""

    resets = 0

    def reset(self):
        self.resets += 1
        if self.resets % 257:
            super().reset()


@fault("mixed")
class TheStateIsLostAtThe25thLook(HonestSession):
    looks = 0

    def _read_state(self):
        self.looks += 1
        state = super()._read_state()
        if self.looks == 25:
            self.state = {name: np.zeros_like(array) for name, array in self.state.items()}
        return state


@timed("drift")
class OnlyThe70thCallIsWrong(HonestBound):
    """It comes before the network has forgotten the state from which it began."""

    def __call__(self):
        super().__call__()
        if self.calls == 70:
            self.y = self.y * np.float32(1.01)


class _Leaks(HonestSession):
    """Leaks 1 KiB at a time: less than what an allocator takes in so few calls."""

    kept: ClassVar[list[bytearray]] = []


@fault("memory")
class EveryCallLeaksAKibibyte(_Leaks):
    def compute(self, x):
        self.kept.append(bytearray(1024))
        return super().compute(x)


@fault("memory")
class EveryResetLeaksAKibibyte(_Leaks):
    def reset(self):
        self.kept.append(bytearray(1024))
        super().reset()


# Sequences that follow each other.


@fault("repeat", state="none")
class ASequenceContinuesWhereTheLastOneEnds(HonestSession):
    """Where its first step is the last one's last: a stream that was cut, as the program takes it."""

    ended: np.ndarray | None = None
    left: dict[str, np.ndarray] | None = None

    def compute(self, x):
        continues = self.ended is not None and np.array_equal(self.ended, x[0])
        run = run_in(self.arithmetic(self.dtype), self.model, self.weights, x, self.left if continues else None)
        self.ended, self.left = x[-1].copy(), dict(run.final)
        return run.y


@timed("repeat", state="none")
class ASequenceOfARingContinuesWhereTheLastOneEnds(HonestBound):
    def __call__(self):
        x, before = self._next(), getattr(self, "x", None)
        run_from = self.left if before is not None and np.array_equal(before[-1], x[0]) else None
        session = self.session
        run = run_in(session.arithmetic(session.dtype), session.model, session.weights, x, run_from)
        self.x, self.left, self.y = x, dict(run.final), run.y


# NaN, huge and tiny numbers.


@fault("nan")
class AStateHasZerosForNan(HonestSession):
    """The y of the same step is NaN."""

    def compute(self, x):
        y = super().compute(x)
        self.state = {name: np.where(np.isnan(array), np.float32(0), array) for name, array in self.state.items()}
        return y


@fault("nan", **BATCH)
class ARowThatHasSeenNanBeginsAnew(HonestSession):
    def compute(self, x):
        y = super().compute(x)
        seen = np.isnan(x).any(axis=(0, 2))[:, None]
        self.state = {name: np.where(seen, np.float32(0), array) for name, array in self.state.items()}
        return y


@fault("nan")
class AStateOfNanIsTakenForANewOne(HonestSession):
    """When a call begins. A state that is read is right."""

    def compute(self, x):
        if all(np.isnan(array).all() for array in self.state.values()):
            self.reset()
        return super().compute(x)


@fault("saturation", dtype="float16")
class ALargeStateIsClippedBetweenCalls(HonestSession):
    def compute(self, x):
        y = super().compute(x)
        self.state = {name: np.clip(array, -2048, 2048) for name, array in self.state.items()}
        return y


@fault("saturation")
class ALargeXIsClippedInPlace(HonestSession):
    """So that whoever computes with x later computes with what was written."""

    def _advance(self, x):
        if x.flags.writeable:
            np.clip(x, -1e5, 1e5, out=x)
        return super()._advance(x)


@fault("saturation")
class ARingIsClippedToThirty(HonestSession):
    def _bind(self, ring):
        return super()._bind([np.clip(x, -30, 30) for x in ring])


@fault("denormals")
class ATinyNumberOfARingIsOne(HonestSession):
    def _bind(self, ring):
        tiny = np.finfo(np.float32).tiny
        return super()._bind([np.where((np.abs(x) < tiny) & (x != 0), np.float32(1), x) for x in ring])


@fault("denormals")
class TinyNumbersAreFlushedInTheCallersRing(HonestSession):
    def _bind(self, ring):
        bound = super()._bind(ring)
        for x in ring:
            if x.flags.writeable:
                x[np.abs(x) < np.finfo(np.float32).tiny] = 0
        return bound


@fault("contents")
class NegativeZerosOfXAreWrittenAsZeros(HonestSession):
    def _advance(self, x):
        if x.flags.writeable:
            x += np.float32(0)
        return super()._advance(x)


# How y is stored.


@fault("contents", **BATCH)
class EqualRowsAreOneInMemory(HonestSession):
    """Who writes to one of them writes to all."""

    def _advance(self, x):
        y = super()._advance(x)
        if (y != y[:, :1]).any():
            return y
        return np.lib.stride_tricks.as_strided(y, y.shape, (y.strides[0], 0, y.strides[2]))
