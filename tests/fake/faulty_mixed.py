"""Adapters that are wrong where a stream mixes its calls: both paths, rests, looks, resets, threads and collections."""

from __future__ import annotations

import threading

import numpy as np
from honest_adapter import HonestBound, HonestSession
from honest_variants import QueuedBound, QueuesItsBoundCalls
from planted import fault, timed

# Calls of every kind in one stream.


@fault("mixed")
class BoundCallsBeginBeforeTheRest(HonestSession):
    """The rest of a public call is run by another program, and the timed one does not see its state."""

    before_rest: dict[str, np.ndarray] | None = None

    def step(self, inputs):
        steps = len(inputs["x"])
        before = dict(self.state)
        y = super().step(inputs)
        self.before_rest = before if steps % self._chunk else None
        return y

    def reset(self):
        self.before_rest = None
        super().reset()

    def set_state(self, state):
        self.before_rest = None
        super().set_state(state)

    def _bind(self, ring):
        class Bound(HonestBound):
            def __call__(self):
                if self.session.before_rest is not None:
                    self.session.state, self.session.before_rest = self.session.before_rest, None
                super().__call__()

        return Bound(self, ring)


@fault("mixed")
class TheLastOfSeveralWholeChunksBeginsFromZeros(HonestSession):
    """Only where no rest follows it."""

    def step(self, inputs):
        x, chunk = inputs["x"], self._chunk
        if len(x) == chunk or len(x) % chunk:
            return super().step(inputs)
        begun = super().step({"x": x[:-chunk]})["y"]
        self.reset()
        return {"y": np.concatenate([begun, super().step({"x": x[-chunk:]})["y"]])}


@timed("mixed")
class AnOutputIsReadOnce(HonestBound):
    """What is read is handed over, and zeros are left."""

    def output(self):
        y, self.y = self.y, np.zeros_like(self.y)
        return {"y": y}


@timed("mixed")
class ASecondSyncRunsTheCallAgain(HonestBound):
    waited = True

    def __call__(self):
        super().__call__()
        self.waited = False

    def sync(self):
        if self.waited and self.calls:
            self.session.compute(self.ring[0])
        self.waited = True


@timed("mixed")
class OnlySyncCarriesBoundCallsOut(HonestBound):
    """A look at the state and a public call do not wait for them."""

    queued = 0

    def __call__(self):
        self.queued += 1

    def sync(self):
        while self.queued:
            self.queued -= 1
            super().__call__()

    def output(self):
        self.sync()
        return super().output()


@fault("mixed")
class AResetRewindsItsRings(HonestSession):
    def _bind(self, ring):
        bound = HonestBound(self, ring)
        self.__dict__.setdefault("rings", []).append(bound)
        return bound

    def reset(self):
        super().reset()
        for bound in self.__dict__.get("rings", []):
            bound.__init__(self, bound.ring)


class Buffer:
    """A state that only a cycle of references holds."""

    def __init__(self, session):
        self.itself = self
        self.session = session

    def __del__(self):
        self.session.reset()


@fault("mixed")
class ACollectionDropsTheState(HonestSession):
    def compute(self, x):
        y = super().compute(x)
        Buffer(self)
        return y


@fault("mixed")
class TheRestsOfTwoSessionsAreOne(HonestSession):
    """The program of one step has a state of its own, and remembers whose it was by the number of steps."""

    of_rests: tuple[object, int] = (None, 0)

    def step(self, inputs):
        y, steps = super().step(inputs)["y"], len(inputs["x"])
        if steps > self._chunk and steps % self._chunk:
            session, before = TheRestsOfTwoSessionsAreOne.of_rests
            if session not in (None, id(self)) and before == steps:
                y[-1] *= 0.9
            TheRestsOfTwoSessionsAreOne.of_rests = id(self), steps
        return {"y": y}


@fault("mixed")
class ASyncOfARingWithoutCallsDropsThoseOfAnother(QueuesItsBoundCalls):
    def _bind(self, ring):
        class Bound(QueuedBound):
            def sync(self):
                if self in self.session.queue:
                    self.session.finish()
                self.session.queue.clear()

            def output(self):
                self.session.finish()
                return HonestBound.output(self)

        return Bound(self, ring)


@timed("mixed")
class TheCallBeyondAQueueOfThirtyTwoIsLost(HonestBound):
    """Those after it are made, and the network soon forgets it."""

    waiting = 0

    def __call__(self):
        self.waiting += 1
        before = self.session.state
        super().__call__()
        if self.waiting == 33:
            self.session.state = before

    def sync(self):
        self.waiting = 0


# Equal calls, long rings and many of them.


@fault("contents")
class TheThirdOfEqualCallsIsNotMade(HonestSession):
    def _advance(self, x):
        calls = self.__dict__.setdefault("calls", [])
        if len(calls) == 2 and calls[0][0] == calls[1][0] == x.tobytes():
            return calls[1][1].copy()
        y = self.compute(x)
        self.calls = [*calls, (x.tobytes(), y.copy())][-2:]
        return y

    def _write_state(self, state):
        self.calls = []
        super()._write_state(state)


@timed("contents")
class ARingOfOneChunkIsCalledEveryOtherTime(HonestBound):
    """It has two buffers, and one chunk fills both."""

    def __call__(self):
        if len(self.ring) > 1 or self.calls % 2 == 0:
            super().__call__()
        else:
            self.calls += 1


@timed("rings")
class ARingHasSixteenPlaces(HonestBound):
    def __init__(self, session, ring):
        super().__init__(session, [ring[number % 16] for number in range(len(ring))])


@fault("rings")
class ASessionHasSixteenRings(HonestSession):
    def _bind(self, ring):
        rings = self.__dict__.setdefault("rings", [])
        rings.append(ring)
        return HonestBound(self, ring if len(rings) <= 16 else rings[0])


# Memory that arrays share, threads, and rings that are refused.


@fault("layout")
class AnArrayThatIsGivenTwiceIsTakenOnce(HonestSession):
    """As a buffer is that a runtime is given to keep: the second time it is empty."""

    def set_state(self, state):
        taken = set()
        for name, array in state.items():
            if id(array) in taken:
                state = {**state, name: array * 0}
            taken.add(id(array))
        super().set_state(state)


@fault("layout")
class AViewIsReadFromTheBeginningOfItsBuffer(HonestSession):
    def set_state(self, state):
        for name, array in state.items():
            base = array.base if isinstance(array, np.ndarray) else None
            if isinstance(base, np.ndarray) and base.ndim == 1 and base.size > array.size and base.dtype == array.dtype:
                state = {**state, name: base[: array.size].reshape(array.shape)}
        super().set_state(state)


@fault("layout")
class RefusesAStateThatIsReadOnly(HonestSession):
    def set_state(self, state):
        if any(isinstance(array, np.ndarray) and not array.flags.writeable for array in state.values()):
            raise ValueError("buffer source array is read-only")
        super().set_state(state)


@fault("layout")
class BindsARingAsItLiesInMemory(HonestSession):
    def bind(self, ring):
        lying = [{**chunk, "x": self._as_it_lies(chunk.get("x"))} for chunk in ring]
        return super().bind(lying)

    def _as_it_lies(self, x):
        if isinstance(x, np.ndarray) and not x.flags.c_contiguous:
            return x.ravel(order="K").reshape(x.shape)
        return x


@fault("threads")
class ARingBelongsToTheThreadThatBoundIt(HonestSession):
    """In another one its calls begin from zeros."""

    def _bind(self, ring):
        class Bound(HonestBound):
            thread = threading.get_ident()

            def __call__(self):
                if threading.get_ident() != self.thread:
                    self.thread = threading.get_ident()
                    self.session.reset()
                super().__call__()

        return Bound(self, ring)


@fault("refusal")
class ARefusedRingTakesTheNextCallOfTheBoundOne(HonestSession):
    refused = False

    def bind(self, ring):
        try:
            return super().bind(ring)
        except Exception:
            self.refused = True
            raise

    def _bind(self, ring):
        class Bound(HonestBound):
            def __call__(self):
                if self.session.refused:
                    self.session.refused = False
                else:
                    super().__call__()

        return Bound(self, ring)
