"""Adapters that are wrong where calls wait, where a session is left alone, and beside other sessions and threads."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod

import numpy as np
from faulty_streams import Counted
from honest_adapter import HonestBound, HonestSession
from planted import fault, timed

from rnnbench.rnn.arithmetic import Arithmetic


class Queueing(HonestBound):
    """Calls wait until `sync`, or until something that `settles_before` names is asked of the session."""

    settles_before: tuple[str, ...] = ("_read_state", "_advance", "_write_state", "_bind")
    waiting = 0

    def __init__(self, session, ring):
        super().__init__(session, ring)
        rings = session.__dict__.setdefault("rings", [])
        rings.append(self)
        if len(rings) == 1:
            for name in self.settles_before:
                setattr(session, name, self._settled(rings, getattr(session, name)))

    @staticmethod
    def _settled(rings, method):
        def settled(*given):
            for ring in rings:
                ring.sync()
            return method(*given)

        return settled

    def __call__(self):
        for other in self.session.rings:
            if other is not self:
                other.sync()
        self.waiting += 1

    def sync(self):
        while self.waiting:
            self.waiting -= 1
            super().__call__()

    def output(self):
        self.sync()
        return super().output()


@timed("mixed")
class AnOutputDoesNotWait(Queueing):
    """It is that of the last call that was waited for."""

    def output(self):
        return HonestBound.output(self)


@timed("mixed")
class AStateThatIsSetDoesNotWait(Queueing):
    """Calls that were made before it come after it."""

    settles_before = ("_read_state", "_advance", "_bind")


@timed("refusal")
class ARefusedCallDropsThoseThatWait(Queueing):
    def __init__(self, session, ring):
        super().__init__(session, ring)
        if "step" not in vars(session):
            session.step = self._dropping(session.rings, session.step)

    @staticmethod
    def _dropping(rings, step):
        def dropping(inputs):
            try:
                return step(inputs)
            except Exception:
                for ring in rings:
                    ring.waiting = 0
                raise

        return dropping


# Left alone: what happens to a session that nobody calls.


class LeftAlone(HonestSession):
    def compute(self, x):
        if self._streams and self.is_over():
            self.state = {name: array * 0 for name, array in self.state.items()}
        y = super().compute(x)
        self.note()
        return y

    def _write_state(self, state):
        super()._write_state(state)
        self.note()

    @abstractmethod
    def note(self) -> None:
        """It was called now."""

    @abstractmethod
    def is_over(self) -> bool:
        """Whether its state is dropped."""


@fault("left-alone")
class AStateIsDroppedAfterAMoment(LeftAlone):
    """After 1 ms without a call."""

    def note(self):
        self.last = time.monotonic()

    def is_over(self):
        return time.monotonic() - self.last > 0.001


@fault("left-alone")
class TheSessionThatWasUsedLeastRecentlyIsDropped(LeftAlone):
    """Where the program has opened 3 others since."""

    def __init__(self, program):
        program.opened = program.__dict__.get("opened", 0) + 1
        super().__init__(program)

    def note(self):
        self.last = self._program.opened

    def is_over(self):
        return self._program.opened - self.last > 3


class OldResultsAreFreed(HonestSession):
    """Once the program has opened 3 other sessions."""

    def __init__(self, program):
        super().__init__(program)
        of_program = program.__dict__.setdefault("results", [])
        self.results: list[np.ndarray] = []
        of_program.append(self.results)
        if len(of_program) > 4:
            for array in of_program[-5]:
                array.fill(0)


@fault("left-alone")
class OldOutputsAreFreed(OldResultsAreFreed):
    def _advance(self, x):
        y = self.compute(x)
        self.results.append(y)
        return y


@fault("left-alone")
class OldStatesAreFreed(OldResultsAreFreed):
    def _read_state(self):
        state = super()._read_state()
        self.results += state.values()
        return state


@fault("left-alone")
class OldOutputsOfBoundCallsAreFreed(OldResultsAreFreed):
    def _bind(self, ring):
        return FreeingBound(self, ring)


class FreeingBound(HonestBound):
    def output(self):
        y = super().output()
        self.session.results += y.values()
        return y


# Closing, resetting, opening.


@fault("closing")
class ClosingTwiceResetsTheOthers(Counted):
    def close(self):
        if self.closed:
            for other in self.others:
                other.reset()
        super().close()


@fault("reset")
class TheStateOfANewSessionIsNotWrittenYet(HonestSession):
    """Its memory is what the next call clears."""

    is_new = True

    def _read_state(self):
        return {name: array + int(self.is_new) for name, array in super()._read_state().items()}

    def compute(self, x):
        self.is_new = False
        return super().compute(x)

    def set_state(self, state):
        self.is_new = False
        super().set_state(state)


# Nan: memory that sessions share, times zero.


@fault("nan")
class AClosedSessionsScratchIsMultipliedByZero(HonestSession):
    def __init__(self, program):
        super().__init__(program)
        self.pool = program.__dict__.setdefault("pool", [])
        self.scratch = self.pool.pop() if self.pool else None

    def compute(self, x):
        y = super().compute(x)
        self.last = y.copy()
        if self.scratch is not None and self.scratch.shape == y.shape:
            y = y + np.float32(0) * self.scratch
        self.scratch = None
        return y

    def close(self):
        if hasattr(self, "last"):
            self.pool.append(self.last)
        super().close()


@fault("nan")
class TheScratchOfAnotherSessionIsMultipliedByZero(HonestSession):
    def compute(self, x):
        y = super().compute(x)
        of_another, scratch = self._program.__dict__.get("scratch", (self, y))
        self._program.scratch = self, y.copy()
        return y if of_another is self or scratch.shape != y.shape else y + np.float32(0) * scratch


# Threads: sessions of another one.


@fault("threads")
class ASessionOfAnotherThreadBeginsElsewhere(HonestSession):
    def __init__(self, program):
        super().__init__(program)
        if threading.current_thread() is not threading.main_thread():
            self.state = {name: array + 1 for name, array in self.state.items()}


@fault("threads")
class ClosingInAnotherThreadResetsTheOthers(Counted):
    def harm(self, other):
        if threading.current_thread() is not threading.main_thread():
            other.reset()


# Magnitudes: states that become large.


@fault("magnitudes", chunk=1)
class CellsAreClippedAtAThousand(HonestSession):
    """After each call. Its y does not show it: tanh is 1 there."""

    def compute(self, x):
        y = super().compute(x)
        self.state = {name: array.clip(-1e3, 1e3) for name, array in self.state.items()}
        return y


class NearlyFlat(Arithmetic):
    def activated(self, value):
        near = (np.abs(value) > 0.999) & (np.abs(value) < 0.9995)
        return super().activated(np.where(near, np.round(value, 3), value))


@fault("magnitudes")
class ActivationsAreCoarseWhereTheyAreNearlyFlat(HonestSession):
    arithmetic = NearlyFlat


# Sessions that nobody closes, inputs that are written to late, states of negative zeros.


@fault("closing")
class ADroppedSessionResetsTheOthers(Counted):
    """Its end frees what all of them have."""

    def __del__(self):
        for other in () if self.closed else self.others:
            other.reset()


@fault("kept")
class WritesIntoTheInputOfTheThirtiethCall(HonestSession):
    calls = 0

    def _advance(self, x):
        y = self.compute(x)
        self.calls += 1
        if self.calls == 30:
            x[0, 0, 0] = np.nextafter(x[0, 0, 0], np.float32(9))
        return y


@fault("contents")
class NegativeZerosInAStateAreOne(HonestSession):
    """They are compared as whole numbers, bit by bit."""

    def _write_state(self, state):
        super()._write_state({n: np.where((a == 0) & np.signbit(a), a.dtype.type(1), a) for n, a in state.items()})
