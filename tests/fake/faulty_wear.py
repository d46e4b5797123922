"""Adapters that are wrong now and then, after some calls, at one length, on the timed path alone, or in two threads."""

from __future__ import annotations

import mmap

import numpy as np
from honest_adapter import HonestBound, HonestSession
from planted import BATCH, fault, let_others_run, timed

# Kept: thousands of calls of both paths are one stream.


class CountsItsCalls(HonestSession):
    """Of both paths, together."""

    made = 0

    def _advance(self, x):
        return self.worn(super()._advance(x))

    def _bind(self, ring):
        class Bound(HonestBound):
            def __call__(self):
                super().__call__()
                self.y = self.session.worn(self.y)

        return Bound(self, ring)

    def worn(self, y):
        self.made += 1
        return y * np.float32(1.001) if self.is_wrong() else y


@fault("kept")
class EveryHundredAndTwentiethCallIsWrong(CountsItsCalls):
    """And the state is right, so that nothing later shows it."""

    def is_wrong(self):
        return self.made % 120 == 0


@fault("kept")
class ASessionWearsOut(CountsItsCalls):
    def is_wrong(self):
        return self.made > 110


@timed("kept")
class TheSeventeenthBoundCallIsWrong(HonestBound):
    """Long before a stream from any other state repeats itself."""

    def __call__(self):
        super().__call__()
        if self.calls == 17:
            self.y = self.y * np.float32(1.001)


@timed("kept")
class BoundCallsWearOut(HonestBound):
    def __call__(self):
        super().__call__()
        if self.calls > 60:
            self.y = self.y * np.float32(1.001)


# Chunks: one length.


class OfALength(HonestSession):
    length = 0

    def step(self, inputs):
        y = super().step(inputs)["y"]
        return {"y": y * np.float32(1.001) if len(y) == self.length else y}


@fault("chunks", chunk=8)
class ACallOfThreeStepsIsWrong(OfALength):
    length = 3


@fault("chunks", chunk=8)
class ACallOfFourStepsIsWrong(OfALength):
    length = 4


# NaN: on the timed path.


@fault("nan")
class ARingKeepsWhatIsNoNumber(HonestSession):
    """Its scratch is multiplied by zero, and a reset does not clear it."""

    def _bind(self, ring):
        class Bound(HonestBound):
            scratch = np.float32(0)

            def __call__(self):
                super().__call__()
                self.y = self.y + 0 * self.scratch
                self.scratch = self.y.sum()

        return Bound(self, ring)


@fault("nan")
class ARingSeesThatThePublicPathHadNoNumber(HonestSession):
    poisoned = False

    def _advance(self, x):
        y = super()._advance(x)
        self.poisoned |= not np.isfinite(y).all()
        return y

    def _bind(self, ring):
        class Bound(HonestBound):
            def __call__(self):
                super().__call__()
                self.y = self.y * np.float32(np.nan) if self.session.poisoned else self.y

        return Bound(self, ring)


@timed("nan", **BATCH)
class NanOfARingSpreadsOverTheBatch(HonestBound):
    def __call__(self):
        super().__call__()
        if not np.isfinite(self.y).all():
            self.y = self.y * np.float32(np.nan)


# Threads: what is shared elsewhere than in a public call.


@fault("threads")
class RingsOfTwoThreadsShareTheirInput(HonestSession):
    def _bind(self, ring):
        class Bound(HonestBound):
            def __call__(self):
                self.calls += 1
                self.session._program.__dict__["input"] = self._next()
                let_others_run()
                self.y = self.session.compute(self.session._program.input)

        return Bound(self, ring)


@fault("threads")
class StatesOfTwoThreadsAreReadInOnePlace(HonestSession):
    def _read_state(self):
        self._program.__dict__["read"] = self.state
        let_others_run()
        return {name: array.copy() for name, array in self._program.read.items()}


@fault("threads")
class StatesOfTwoThreadsAreSetInOnePlace(HonestSession):
    def _write_state(self, state):
        self._program.__dict__["given"] = state
        let_others_run()
        super()._write_state(self._program.given)


@fault("threads")
class RestsOfTwoThreadsShareTheirInput(HonestSession):
    def _in_chunks(self, x):
        self._program.__dict__["rest"] = x
        let_others_run()
        return super()._in_chunks(self._program.rest)


# Memory: what is no call of a whole chunk.


class Leaks(HonestSession):
    def leak(self):
        """A page of its own. An array of its size may fit into pages that what earlier tests left keeps there."""
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        page[0] = 1
        self._program.__dict__.setdefault("leaked", []).append(page)


@fault("memory")
class EveryLookLeaks(Leaks):
    def get_state(self):
        self.leak()
        return super().get_state()


@fault("memory")
class EveryStateThatIsSetLeaks(Leaks):
    def set_state(self, state):
        self.leak()
        super().set_state(state)


@fault("memory")
class EveryRestLeaks(Leaks):
    def _in_chunks(self, x):
        self.leak()
        return super()._in_chunks(x)


@fault("memory")
class EveryRefusalLeaks(Leaks):
    def step(self, inputs):
        try:
            return super().step(inputs)
        except Exception:
            self.leak()
            raise
