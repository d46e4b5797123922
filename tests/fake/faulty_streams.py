"""Adapters that are wrong where users refill a buffer, bind several rings, and open and close many sessions."""

from __future__ import annotations

import weakref

import numpy as np
from honest_adapter import HonestBound, HonestSession
from planted import RAGGED, fault, timed

# Refilled: one buffer for every call.


@fault("refilled")
class TheSameArrayIsNotReadAgain(HonestSession):
    """An input is uploaded when another array comes, and not when it has other values."""

    last: np.ndarray | None = None

    def _write_state(self, state):
        super()._write_state(state)
        self.last = None

    def _advance(self, x):
        if x is not self.last:
            self.last, self.uploaded = x, x.copy()
        return self.compute(self.uploaded)


@fault("refilled")
class TheSamePlaceIsNotReadAgain(HonestSession):
    """In the program of one step, which runs the rest of a call."""

    last: np.ndarray | None = None

    def _advance(self, x):
        if len(x) == 1:
            if self.last is None or x.ctypes.data != self.last.ctypes.data:
                self.last, self.uploaded = x, x.copy()
            x = self.uploaded
        return self.compute(x)


@fault("refilled", **RAGGED)
class TheSameLengthsAreNotReadAgain(HonestSession):
    last: np.ndarray | None = None

    def _advance_ragged(self, x, lengths):
        if lengths is not self.last:
            self.last, self.uploaded = lengths, lengths.copy()
        return self.compute_ragged(x, self.uploaded)


def is_aligned(array):
    return array.ctypes.data % 64 == 0 and array.flags.writeable


@fault("refilled")
class TakesAStateThatIsAligned(HonestSession):
    """As a runtime does that copies only what it cannot use where it lies."""

    def _write_state(self, state):
        super()._write_state(state)
        self.state.update({name: array for name, array in state.items() if is_aligned(array)})


class DeferredState(HonestSession):
    """The state after a call is computed when it is needed, from the input where the caller has it."""

    pending: tuple[dict[str, np.ndarray], np.ndarray] | None = None

    def _is_deferred(self, x):
        return is_aligned(x)

    def _settle(self):
        if self.pending is not None:
            (self.state, x), self.pending = self.pending, None
            super().compute(x)

    def _advance(self, x):
        self._settle()
        before = dict(self.state)
        y = super().compute(x)
        if self._is_deferred(x):
            self.pending = before, x
        return y

    def _read_state(self):
        self._settle()
        return super()._read_state()

    def _write_state(self, state):
        self.pending = None
        super()._write_state(state)


@fault("refilled")
class ReadsAnAlignedInputAtTheNextCall(DeferredState):
    pass


@fault("refilled")
class ReadsTheLastInputWhenTheStateIsRead(DeferredState):
    """Only there: a call settles what the last one left before the caller can refill its buffer."""

    def _advance(self, x):
        if self.pending is not None:
            self.state, self.pending = self.settled, None
        y = super()._advance(x)
        self.settled = dict(self.state)
        return y


# Rings: several of them, and the public path, on one stream.


@timed("rings")
class BindingResetsTheStream(HonestBound):
    def __init__(self, session, ring):
        super().__init__(session, ring)
        session.reset()


@timed("rings")
class BindingGoesBackToTheStateThatWasSet(HonestBound):
    def __init__(self, session, ring):
        super().__init__(session, ring)
        if not hasattr(session, "was_set"):
            session.was_set = {name: array * 0 for name, array in session.state.items()}
            write = session._write_state

            def write_and_note(state):
                write(state)
                session.was_set = {name: array.copy() for name, array in state.items()}

            session._write_state = write_and_note
        session.state = {name: array.copy() for name, array in session.was_set.items()}


@timed("rings")
class RingsOfASessionShareTheirPosition(HonestBound):
    def __call__(self):
        session = self.session
        session.position = getattr(session, "position", -1) + 1
        self.y = session.compute(self.ring[session.position % len(self.ring)])


@timed("rings")
class ANewRingTakesTheOldOnesPlace(HonestBound):
    def __init__(self, session, ring):
        super().__init__(session, ring)
        session.newest = self

    def __call__(self):
        self.y = self.session.compute(self.session.newest._next())


@timed("rings")
class EveryRingHasAStreamOfItsOwn(HonestBound):
    """Its state lives in the bound call, and is seen by the session, but not by another bound call."""

    own: dict[str, np.ndarray] | None = None
    seen: dict[str, np.ndarray] | None = None

    def __call__(self):
        session = self.session
        others = getattr(session, "streams", [])
        if any(session.state is other for other in others) and self.own is not None:
            session.state = self.own
        super().__call__()
        self.own = session.state
        session.streams = [*others, self.own]


@timed("rings")
class OnlyTheNewestRingAdvancesTheStream(HonestBound):
    def __init__(self, session, ring):
        super().__init__(session, ring)
        session.newest = self

    def __call__(self):
        before = self.session.state
        super().__call__()
        if self.session.newest is not self:
            self.session.state = before


@timed("rings")
class ShortRingsAreFilledUpWithTheirFirstChunk(HonestBound):
    """The ring has a fixed number of places."""

    def __init__(self, session, ring):
        super().__init__(session, ring + ring[:1] * (8 - len(ring)))


@timed("rings")
class LongestRingOnlyOfFourChunks(HonestBound):
    """A ring of four chunks skips its last one; longer ones are right."""

    def __init__(self, session, ring):
        super().__init__(session, ring[:-1] if len(ring) == 4 else ring)


@fault("rings")
class TheNinthRingSharesTheFirstsInput(HonestSession):
    rings = 0

    def _bind(self, ring):
        self.rings += 1
        self.first = ring if self.rings == 1 else self.first
        return HonestBound(self, self.first if self.rings == 9 else ring)


@timed("rings")
class ARingHasEightPlaces(HonestBound):
    def __init__(self, session, ring):
        super().__init__(session, ring[:8])


@fault("rings")
class APublicCallMovesTheRingOn(HonestSession):
    bound = None

    def _bind(self, ring):
        self.bound = super()._bind(ring)
        return self.bound

    def _advance(self, x):
        if self.bound is not None and self.bound.calls:
            self.bound._next()
        return self.compute(x)


@fault("rings")
class ABoundCallDoesNotSeeAPublicOne(HonestSession):
    """The public path works on a copy of the state, once a ring is bound and called."""

    bound = None

    def _bind(self, ring):
        self.bound = super()._bind(ring)
        return self.bound

    def _advance(self, x):
        before = self.state
        y = self.compute(x)
        if self.bound is not None and self.bound.calls > 1:
            self.state = before
        return y


@fault("rings")
class TheThirdRingSharesTheFirstsOutput(HonestSession):
    """Places for two rings: the third one's calls are those of the first."""

    def _bind(self, ring):
        self.rings = [*getattr(self, "rings", []), ring]
        return super()._bind(self.rings[0] if len(self.rings) == 3 else ring)


# Closing: one of several sessions.


class Counted(HonestSession):
    """Knows the other sessions of its program that are open."""

    others: weakref.WeakSet[Counted]

    def __init__(self, program):
        super().__init__(program)
        self.closed = False
        self.others = program.__dict__.setdefault("open_sessions", weakref.WeakSet())
        self.others.add(self)

    def close(self):
        if not self.closed:
            self.closed = True
            self.others.discard(self)
            for other in self.others:
                self.harm(other)
        super().close()

    def harm(self, other):
        """What closing this session does to another one."""


@fault("closing")
class ClosingResetsTheOthers(Counted):
    def harm(self, other):
        other.reset()


@fault("closing")
class ClosingFreesTheWeightsOfTheOthers(Counted):
    freed = False

    def harm(self, other):
        other.freed = True

    def compute(self, x):
        y = super().compute(x)
        return y * 0 if self.freed else y


@fault("closing")
class ClosingRewindsTheRingsOfTheOthers(Counted):
    def _bind(self, ring):
        self.bound = super()._bind(ring)
        return self.bound

    def harm(self, other):
        if bound := getattr(other, "bound", None):
            HonestBound.__init__(bound, other, bound.ring)


@fault("closing")
class ClosingSwitchesTheOthersToTheirBoundState(Counted):
    """Only those that a ring was bound in: the state goes back to what it was at that time."""

    def _bind(self, ring):
        self.at_binding = dict(self.state)
        return super()._bind(ring)

    def harm(self, other):
        if at_binding := getattr(other, "at_binding", None):
            other.state = at_binding


@fault("closing")
class ClosingFreesItsOutputs(Counted):
    def compute(self, x):
        y = super().compute(x)
        self.outputs = [*getattr(self, "outputs", [])[-8:], y]
        return y

    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        self.outputs.append(y)
        return y

    def close(self):
        for y in getattr(self, "outputs", []):
            y.fill(0)
        super().close()


@fault("closing")
class ClosingFreesTheStatesThatItReturned(Counted):
    def _read_state(self):
        state = super()._read_state()
        self.returned = [*getattr(self, "returned", [])[-8:], state]
        return state

    def close(self):
        for state in getattr(self, "returned", []):
            for array in state.values():
                array.fill(0)
        super().close()


@fault("closing")
class ClosingEndsTheRestsOfTheOthers(Counted):
    """Their programs of one step are closed, too."""

    rests_ended = False

    def harm(self, other):
        other.rests_ended = True

    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        return y * 0 if self.rests_ended else y


# Kept: results of very many calls.


class Pooled(HonestSession):
    """Outputs are written into the buffers of a pool, one after the other."""

    buffers = 32

    def pooled(self, array):
        pool = self.__dict__.setdefault("pool", {}).setdefault(array.shape, [])
        pool.append(array if len(pool) < self.buffers else pool.pop(0))
        pool[-1][:] = array
        return pool[-1]


@fault("kept")
class OutputsInAPoolOfThirtyTwo(Pooled):
    def _advance(self, x):
        return self.pooled(self.compute(x))


@fault("kept")
class OutputsInAPoolOfSixty(Pooled):
    buffers = 60

    def _advance(self, x):
        return self.pooled(self.compute(x))


@fault("kept")
class StatesInAPool(Pooled):
    buffers = 16

    def _read_state(self):
        return {name: self.pooled(array) for name, array in super()._read_state().items()}


@fault("kept")
class BoundOutputsInAPool(Pooled):
    def _bind(self, ring):
        class Bound(HonestBound):
            def output(self):
                return {"y": self.session.pooled(self.y)}

        return Bound(self, ring)


@fault("kept")
class OutputsAreFreedAfterFortyCalls(HonestSession):
    def _advance(self, x):
        y = self.compute(x)
        self.outputs = [*getattr(self, "outputs", []), y]
        if len(self.outputs) > 40:
            self.outputs.pop(0).fill(0)
        return y


@fault("kept")
class OneCellOfAnOldOutputIsATime(HonestSession):
    """A header that a runtime's allocator writes where it thinks memory is free."""

    calls, old = 0, None

    def _advance(self, x):
        y = self.compute(x)
        self.calls += 1
        if self.calls == 20:
            self.old = y
        if self.calls == 60:
            self.old[0, 0, 0] = np.nextafter(self.old[0, 0, 0], np.float32(2))
        return y


@fault("kept")
class EqualOutputsShareTheirMemory(HonestSession):
    """An output of the same values as one before is that one: what the caller writes to one, it writes to both."""

    known: dict[bytes, np.ndarray]

    def compute(self, x):
        y = super().compute(x)
        known = self.__dict__.setdefault("known", {})
        return known.setdefault(y.tobytes(), y)[:] if len(known) > 24 else known.setdefault(y.tobytes(), y).copy()


# Sessions and resets by the thousand.


class Numbered(HonestSession):
    """Knows how many sessions its program opened before it."""

    def __init__(self, program):
        self.number = program.__dict__.get("opened", 0)
        program.opened = self.number + 1
        super().__init__(program)


@fault("sessions")
class AtMostTenSessionsAtOnce(Counted):
    def __init__(self, program):
        super().__init__(program)
        if len(self.others) > 10:
            raise RuntimeError("no handle is left")


@fault("sessions")
class ATableOfEightSessions(Counted):
    """The ninth that is open takes the place of another, and its state."""

    def __init__(self, program):
        super().__init__(program)
        if len(self.others) > 8:
            self.state = next(other for other in self.others if other is not self).state


@fault("sessions")
class ATableOfSixtyFourSessions(Counted):
    """The next one takes the place of another, and its state. Opening it is right."""

    def compute(self, x):
        y = super().compute(x)
        if len(self.others) > 64:
            next(other for other in self.others if other is not self).state = dict(self.state)
        return y


@fault("sessions")
class TheOldestOfTenSessionsIsReset(Counted):
    def __init__(self, program):
        super().__init__(program)
        self.age = program.__dict__["age"] = program.__dict__.get("age", 0) + 1
        if len(self.others) > 10:
            min(self.others, key=lambda other: other.age).reset()


@fault("sessions")
class ManySessionsWearOut(Numbered):
    """What each leaves behind adds up until it shows."""

    def compute(self, x):
        y = super().compute(x)
        return y * np.float32(1.001) if self.number > 160 else y


@fault("resets")
class EveryFiftiethResetIsLost(HonestSession):
    resets = 0

    def reset(self):
        self.resets += 1
        if self.resets % 50:
            super().reset()


@fault("resets")
class ResetsWearOut(HonestSession):
    resets = 0

    def reset(self):
        super().reset()
        self.resets += 1
        if self.resets > 40:
            self.state["h"] += np.float32(1e-6)


@fault("resets")
class ACounterOfResetsOverflows(HonestSession):
    """Sixteen of them fit."""

    resets = 0

    def reset(self):
        self.resets += 1
        if self.resets > 16:
            raise OverflowError("too many resets")
        super().reset()


@fault("resets")
class StatesThatAreSetOftenAreLost(HonestSession):
    written = 0

    def set_state(self, state):
        self.written += 1
        if self.written <= 20:
            super().set_state(state)
