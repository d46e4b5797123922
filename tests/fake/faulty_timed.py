"""Adapters that are wrong in the timed path alone, or wrong only after very many calls."""

from __future__ import annotations

import numpy as np
from honest_adapter import HonestBound, HonestSession
from planted import BATCH, fault, timed

LUMP = 1 << 15
"""Numbers that a leaking call leaves behind: at a quarter of a MiB a few calls show what a real leak shows in many."""
events: list[np.ndarray] = []
"""What one fault never gives back."""


# The timed path.


@timed("bound")
class FirstChunkOfTheRingForEver(HonestBound):
    def __init__(self, session, ring):
        super().__init__(session, ring[:1])


@timed("bound")
class RingOneChunkShort(HonestBound):
    def __init__(self, session, ring):
        super().__init__(session, ring[:-1])


@timed("bound")
class RingStartsAtItsSecondChunk(HonestBound):
    def __init__(self, session, ring):
        super().__init__(session, ring[1:] + ring[:1])


@timed("bound")
class OutputOfTheCallBefore(HonestBound):
    def output(self):
        return {"y": getattr(self, "before", self.y)}

    def __call__(self):
        self.before = self.y
        super().__call__()


@timed("bound")
class TimedPathDoesNotAdvanceTheState(HonestBound):
    def __call__(self):
        before = self.session.state
        super().__call__()
        self.session.state = before


@timed("bound")
class TimedPathStartsFromZeros(HonestBound):
    def __call__(self):
        if self.calls == 0:
            self.session.reset()
        super().__call__()


@timed("bound")
class TimedPathHasAStateOfItsOwn(HonestBound):
    def __init__(self, session, ring):
        super().__init__(type(session)(session._program), ring)


@timed("bound")
class BindingRunsAStep(HonestBound):
    def __init__(self, session, ring):
        super().__init__(session, ring)
        self()


@timed("bound")
class EverySecondCallDoesNothing(HonestBound):
    def __call__(self):
        if self.calls % 2:
            self.calls += 1
            return
        super().__call__()


@timed("bound")
class SyncDoesNotWait(HonestBound):
    """The work of a call is done when the next one is made."""

    def __init__(self, session, ring):
        super().__init__(session, ring)
        self.y = np.zeros((len(ring[0]), ring[0].shape[1], session.model.width), np.float32)
        self.waiting = False

    def __call__(self):
        if self.waiting:
            super().__call__()
        self.waiting = True


@timed("bound", state="none")
class TimedPathCarriesAStateThoughNoneIsAsked(HonestBound):
    def __call__(self):
        super().__call__()
        self.y = self.y * np.float32(1 + 1e-3 * (self.calls - 1))


@timed("bound")
class BoundDoesNotSeeAReset(HonestBound):
    """Its state lives where it is timed, and `reset` is told only to the public path."""

    own: dict[str, np.ndarray] | None = None

    def __call__(self):
        session = self.session
        if self.own is not None and all(not array.any() for array in session.state.values()):
            session.state = self.own
        super().__call__()
        self.own = dict(session.state)


@timed("bound")
class LosesACallWhereFiveAreQueued(HonestBound):
    queued = 0

    def __call__(self):
        self.queued += 1
        if self.queued == 5:
            self._next()
            self.calls += 1
            return
        super().__call__()

    def sync(self):
        self.queued = 0


@timed("bound", chunk=1)
class RingWrapsToItsSecondChunk(HonestBound):
    def __call__(self):
        super().__call__()
        if self.calls % len(self.ring) == 0:
            self._next()


@timed("bound", layers=2)
class SecondLayerStandsStillWhereItIsTimed(HonestBound):
    def __call__(self):
        before = self.session.state
        super().__call__()
        for name, array in self.session.state.items():
            array[1:] = before[name][1:]


@fault("bound")
class ThePublicPathDoesNotSeeTimedCalls(HonestSession):
    """It goes on from its own last call. A state that is read is right."""

    def _write_state(self, state):
        super()._write_state(state)
        self.public = self.state

    def _advance(self, x):
        self.state = self.public
        y = self.compute(x)
        self.public = self.state
        return y


@fault("bound", **BATCH)
class TheStateOfEveryRowIsReadAsTheFirsts(HonestSession):
    def _read_state(self):
        return {name: np.repeat(array[:, :1], array.shape[1], axis=1) for name, array in self.state.items()}


@timed("isolation")
class RingSharedByAllThatAreBound(HonestBound):
    position = 0

    def __call__(self):
        shared = type(self)
        self.y = self.session.compute(self.ring[shared.position % len(self.ring)])
        shared.position += 1


@timed("isolation")
class StateSharedByAllThatAreBound(HonestBound):
    common: dict[int, dict[str, np.ndarray]] = {}  # noqa: RUF012 that it is shared is the fault

    def __init__(self, session, ring):
        super().__init__(session, ring)
        self.common[id(session._program)] = session.state

    def __call__(self):
        self.session.state = self.common[id(self.session._program)]
        super().__call__()
        self.common[id(self.session._program)] = self.session.state


# Endurance: what adds up.


@timed("drift")
class ErrorGrowsAfterFortyCalls(HonestBound):
    def __call__(self):
        super().__call__()
        self.y = self.y * np.float32(1 + 1e-6 * max(self.calls - 40, 0))


@timed("drift", chunk=1)
class StateIsLostEveryThreeHundredSteps(HonestBound):
    """A counter that wraps: far beyond what any other check feeds."""

    def __call__(self):
        if self.calls % 300 == 299:
            self.session.reset()
        super().__call__()


@timed("drift", chunk=1)
class OneOutputInAThousandIsWrong(HonestBound):
    """And the state is right, so that nothing later shows it."""

    def __call__(self):
        super().__call__()
        if self.calls % 1_000 == 0:
            self.y = self.y + np.float32(1e-3)


@timed("drift", chunk=1)
class EveryCallNumber777IsStale(HonestBound):
    def __call__(self):
        last = self.y
        super().__call__()
        if self.calls % 777 == 0:
            self.y = last


@timed("drift", chunk=1, state="none")
class OneCallIn500IsWrongThoughNothingIsCarried(HonestBound):
    def __call__(self):
        super().__call__()
        if self.calls % 500 == 0:
            self.y = self.y * np.float32(1.01)


@timed("drift", chunk=1)
class OneOutputIsNotANumber(HonestBound):
    def __call__(self):
        super().__call__()
        if self.calls == 901:
            self.y = self.y * np.float32(np.nan)


@fault("drift", chunk=1)
class TheStateThatIsReadStandsStillAfterAHundredSteps(HonestSession):
    """What is computed does not."""

    steps = 0

    def _write_state(self, state):
        super()._write_state(state)
        self.steps, self.seen = 0, self.state

    def compute(self, x):
        y = super().compute(x)
        self.steps += len(x)
        if self.steps <= 100:
            self.seen = self.state
        return y

    def _read_state(self):
        return {name: array.copy() for name, array in self.seen.items()}


@fault("drift")
class StepsOfACallAreCountedInAByte(HonestSession):
    """Of the public path: a longer call begins anew."""

    def _in_chunks(self, x):
        parts = [x[first : first + 256] for first in range(0, len(x), 256)]
        outputs = [super()._in_chunks(parts[0])]
        for part in parts[1:]:
            self.reset()
            outputs.append(super()._in_chunks(part))
        return np.concatenate(outputs)


@fault("drift", chunk=1)
class OnePublicStepIn300IsWrong(HonestSession):
    steps = 0

    def _advance(self, x):
        self.steps += 1
        return super()._advance(x) + np.float32(1e-3 * (self.steps % 300 == 0))


@timed("drift", layers=2)
class SecondLayersCellLeaksAway(HonestBound):
    """Ever more of it, so that the first calls do not show it."""

    def __call__(self):
        super().__call__()
        self.session.state["c"][1] *= np.float32(1 - min(1e-7 * self.calls, 1))


@fault("memory")
class EveryOutputIsKept(HonestSession):
    kept: list[np.ndarray]

    def _advance(self, x):
        self.kept = getattr(self, "kept", [])
        self.kept.append(np.ones(LUMP))
        return super()._advance(x)


@timed("memory")
class BoundCallKeepsItsScratch(HonestBound):
    def __call__(self):
        super().__call__()
        self.kept = [*getattr(self, "kept", []), np.ones(LUMP)]


@timed("memory")
class CyclesThatNoCollectorMayBreak(HonestBound):
    """A registry of events that a runtime never empties: every second call adds to it."""

    def __call__(self):
        super().__call__()
        if self.calls % 2 == 0:
            events.append(np.ones(2 * LUMP))

    def __del__(self):
        events.clear()
