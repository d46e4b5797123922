"""Adapters that are wrong after something else: a refusal, a rest, a long queue, another session, an equal call."""

from __future__ import annotations

import threading

import numpy as np
from faulty_alike import Remembers
from faulty_contents import StepByStep
from faulty_neighbours import Queueing
from faulty_streams import Counted
from honest_adapter import HonestBound, HonestSession
from planted import fault, timed

# After a refusal.


class NotesRefusals(HonestSession):
    refused = False

    def step(self, inputs):
        try:
            return super().step(inputs)
        except Exception:
            self.refused = True
            raise


@fault("refusal")
class AResetAfterARefusedCallIsLost(NotesRefusals):
    def reset(self):
        if not self.refused:
            super().reset()
        self.refused = False


@fault("refusal")
class RestsAreWrongAfterARefusedCall(NotesRefusals):
    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        return y * np.float32(0.9) if self.refused and len(x) % self._chunk else y


@fault("refusal")
class AStateAfterARefusedOneIsLost(HonestSession):
    refused = False

    def set_state(self, state):
        if self.refused:
            self.refused = False
            return
        try:
            super().set_state(state)
        except Exception:
            self.refused = True
            raise


@fault("refusal")
class SessionsOpenedAfterARefusalBeginElsewhere(NotesRefusals):
    def __init__(self, program):
        super().__init__(program)
        if program.__dict__.get("has_refused"):
            self.state = {name: array + 1 for name, array in self.state.items()}

    def step(self, inputs):
        try:
            return super().step(inputs)
        except Exception:
            self._program.has_refused = True
            raise


# After a rest.


@fault("rewind")
class AResetAfterARestKeepsTheCell(HonestSession):
    rest = 0

    def step(self, inputs):
        y = super().step(inputs)
        self.rest = len(inputs["x"]) % self._chunk
        return y

    def reset(self):
        kept = {name: array for name, array in self.state.items() if name == "c" and self.rest}
        super().reset()
        self.state.update(kept)
        self.rest = 0


class TailWithAStateOfItsOwn(HonestSession):
    """The program of one step goes on from its own state, where the last call was one of its own, too."""

    own: dict[str, np.ndarray] | None = None

    def _in_chunks(self, x):
        is_short = len(x) < self._chunk
        if is_short and self.own is not None:
            super()._write_state(self.own)
        y = super()._in_chunks(x)
        self.own = self._read_state() if is_short else None
        return y

    def _advance(self, x):
        self.own = None
        return self.compute(x)


@fault("rewind")
class AStateThatIsSetDoesNotReachTheTail(TailWithAStateOfItsOwn):
    def reset(self):
        self.own = None
        super().reset()


@fault("rewind")
class AResetDoesNotReachTheTail(TailWithAStateOfItsOwn):
    def set_state(self, state):
        self.own = None
        super().set_state(state)


# Calls of several chunks.


@fault("chunks")
class ACallOfFiveChunksIsWrong(HonestSession):
    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        return y * np.float32(0.9) if len(x) == 5 * self._chunk else y


@fault("chunks")
class TheFifthChunkOfACallBeginsAnew(HonestSession):
    def _in_chunks(self, x):
        most = 4 * self._chunk
        if len(x) <= most:
            return super()._in_chunks(x)
        y = super()._in_chunks(x[:most])
        self.reset()
        return np.concatenate([y, super()._in_chunks(x[most:])])


@fault("chunks")
class TheRestOfALongCallRepeatsItsFirstStep(HonestSession):
    def _in_chunks(self, x):
        whole = len(x) - len(x) % self._chunk
        if whole >= 5 * self._chunk:
            x = np.concatenate([x[:whole], *[x[whole : whole + 1]] * (len(x) - whole)])
        return super()._in_chunks(x)


@fault("drift", chunk=1)
class StepsOfACallBeyondAThousandAreHalf(HonestSession):
    """Its buffer has places for 1,000."""

    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        y[1_000:] /= 2
        return y


# Rings.


@fault("rings")
class ARingIsBoundOnce(HonestSession):
    """An equal one that is bound later goes on where the first one is."""

    def _bind(self, ring):
        known = self.__dict__.setdefault("known", {})
        return known.setdefault(tuple(chunk.tobytes() for chunk in ring), HonestBound(self, ring))


@timed("rings")
class AChunkThatFollowsItselfIsDropped(HonestBound):
    def __init__(self, session, ring):
        super().__init__(session, [c for i, c in enumerate(ring) if i == 0 or not np.shares_memory(c, ring[i - 1])])


# Calls that wait.


@timed("mixed")
class AQueueHasSixtyFourPlaces(Queueing):
    """Further calls are lost."""

    def __call__(self):
        super().__call__()
        self.waiting = min(self.waiting, 64)


class QueuesOfAllSessions(Counted):
    def _bind(self, ring):
        return Queueing(self, ring)

    def drop_others(self):
        for other in self.others:
            for ring in other.__dict__.get("rings", ()) if other is not self else ():
                ring.waiting = 0


@fault("mixed")
class OpeningASessionDropsTheCallsThatWait(QueuesOfAllSessions):
    def __init__(self, program):
        super().__init__(program)
        self.drop_others()


@fault("mixed")
class ClosingASessionDropsTheCallsThatWait(QueuesOfAllSessions):
    def close(self):
        self.drop_others()
        super().close()


@fault("mixed")
class AResetDropsTheCallsOfOthersThatWait(QueuesOfAllSessions):
    def reset(self):
        if "others" in self.__dict__:  # A new session is reset before it knows them.
            self.drop_others()
        super().reset()


@fault("mixed")
class BindingDropsTheCallsOfOthersThatWait(QueuesOfAllSessions):
    def _bind(self, ring):
        self.drop_others()
        return super()._bind(ring)


@fault("mixed")
class ClosingUndoesTheStatesOfOthersThatWait(Counted):
    """A state that is set waits for the next call."""

    before: dict[str, np.ndarray] | None = None

    def _write_state(self, state):
        self.before = dict(self.state)
        super()._write_state(state)

    def compute(self, x):
        self.before = None
        return super().compute(x)

    def harm(self, other):
        other.state = other.before or other.state


@fault("mixed")
class AResetGoesBackToTheStateOfTheBinding(HonestSession):
    bound: dict[str, np.ndarray] | None = None

    def _bind(self, ring):
        self.bound = {name: array.copy() for name, array in self.state.items()}
        return super()._bind(ring)

    def reset(self):
        super().reset()
        self.state = {name: array.copy() for name, array in (self.bound or self.state).items()}


# Alike, and equal.


@fault("alike")
class KnownByAllButItsFirstNumber(Remembers):
    def key_of(self, x):
        return x.ravel()[1:].tobytes()


@fault("alike")
class AStateIsKnownByEverySecondNumber(Remembers):
    def key_of(self, x):
        return x.tobytes()

    def key_of_state(self, array):
        return array.ravel()[::2].tobytes()


@fault("contents")
class APublicCallAfterAnEqualBoundOneGivesItsOutput(HonestSession):
    last: tuple[bytes, np.ndarray] = (b"", np.empty(0))

    def _bind(self, ring):
        class Bound(HonestBound):
            def __call__(self):
                super().__call__()
                self.session.last = self.ring[(self.calls - 1) % len(self.ring)].tobytes(), self.y

        return Bound(self, ring)

    def _advance(self, x):
        y = self.compute(x)
        return self.last[1].copy() if self.last[0] == x.tobytes() else y


@fault("contents")
class AStateOfOnesIsANewOne(HonestSession):
    def _write_state(self, state):
        super()._write_state({name: array * 0 if (array == 1).all() else array for name, array in state.items()})


@fault("contents")
class AStepWithOneNumberAloneIsEmpty(StepByStep):
    """As in a sparse kernel that needs two numbers."""

    def compute_step(self, x):
        return self._computed(x * 0 if np.count_nonzero(x) == 1 else x)


@fault("kept", state="none")
class EveryFortiethSequenceIsStale(HonestSession):
    calls, last = 0, None

    def _advance(self, x):
        self.calls += 1
        y = self.compute(x)
        if self.calls % 40 == 0:
            return self.last.copy()
        self.last = y.copy()
        return y


# Sessions and threads at once.


@fault("sessions")
class ATableOfAHundredSessions(Counted):
    """Beyond them, outputs are wrong."""

    def compute(self, x):
        y = super().compute(x)
        return y * np.float32(0.9) if len(self.others) > 100 else y


@fault("threads")
class PlacesForThreeThreads(HonestSession):
    """The fourth one takes the place of another, and its state is not what it was."""

    def compute(self, x):
        places = self._program.__dict__.setdefault("places", {})
        places[threading.get_ident()] = None
        alive = {thread.ident for thread in threading.enumerate()}
        if len(alive & places.keys()) > 3:
            self.state = {name: array * np.float32(0.9) for name, array in self.state.items()}
        return super().compute(x)
