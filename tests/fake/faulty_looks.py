"""Adapters that are wrong where a result is looked at twice or later, or where one of several sessions or dicts is.

What a caller was given is the caller's: the arrays, and the dict that they came in.
"""

from __future__ import annotations

import os
import weakref
from contextlib import suppress

import numpy as np
from faulty_streams import Counted
from honest_adapter import HonestBound, HonestSession
from planted import fault, timed

# Owned: what is read again is what it was, whatever the caller did to what was read first.


class Cached(HonestSession):
    """Keeps what was read of its state until the state is another one."""

    read: dict[str, np.ndarray] | None = None

    def compute(self, x):
        self.read = None
        return super().compute(x)

    def _write_state(self, state):
        self.read = None
        super()._write_state(state)


@fault("owned")
class ASecondLookGivesTheSameArrays(Cached):
    def _read_state(self):
        self.read = self.read or super()._read_state()
        return dict(self.read)


@fault("owned")
class ASecondLookGivesZeros(Cached):
    """What was read is handed over, and a copy is made only after a call."""

    def _read_state(self):
        if self.read is None:
            self.read = super()._read_state()
            return {name: array.copy() for name, array in self.read.items()}
        return {name: array * 0 for name, array in self.read.items()}


@timed("owned")
class ASecondOutputIsTheSameArray(HonestBound):
    read: np.ndarray | None = None

    def __call__(self):
        self.read = None
        super().__call__()

    def output(self):
        if self.read is None:
            self.read = self.y.copy()
        return {"y": self.read}


@fault("owned")
class TheZerosOfANewStateAreOneArray(Cached):
    """Of all sessions, and handed out as they are."""

    def _write_state(self, state):
        super()._write_state(state)
        self.is_zeros = not any(array.any() for array in state.values())
        if self.is_zeros:
            self.state = dict(self._program.__dict__.setdefault("zeros", self.state))

    def compute(self, x):
        self.is_zeros = False
        return super().compute(x)

    def _read_state(self):
        return dict(self.state) if self.is_zeros else super()._read_state()


@fault("owned")
class AStateThatWasSetIsHandedOutItself(HonestSession):
    was_set = False

    def _write_state(self, state):
        super()._write_state(state)
        self.was_set = True

    def compute(self, x):
        self.was_set = False
        return super().compute(x)

    def _read_state(self):
        return dict(self.state) if self.was_set else super()._read_state()


# Untouched: dicts are what they were.


@fault("untouched")
class OneDictForAllOutputs(HonestSession):
    def step(self, inputs):
        outputs = self.__dict__.setdefault("outputs", {})
        outputs.update(super().step(inputs))
        return outputs


@timed("untouched")
class OneDictForAllBoundOutputs(HonestBound):
    def output(self):
        outputs = self.__dict__.setdefault("outputs", {})
        outputs.update(super().output())
        return outputs


@fault("untouched")
class PutsAnArrayOfItsOwnIntoAGivenState(HonestSession):
    def set_state(self, state):
        super().set_state(state)
        last = [*state][-1]
        state[last] = self.state[last].copy()


@fault("untouched")
class AddsToTheDictOfItsInputs(HonestSession):
    def step(self, inputs):
        outputs = super().step({name: array for name, array in inputs.items() if name != "rest"})
        inputs["rest"] = inputs["x"][:0]
        return outputs


# Mixed: an output stays until the session's next call.


class KnowsItsRings(HonestSession):
    def _bind(self, ring):
        bound = HonestBound(self, ring)
        self.__dict__.setdefault("rings", []).append(bound)
        return bound

    def clear(self):
        for bound in self.__dict__.get("rings", []):
            bound.y = bound.y * 0


@fault("mixed")
class AResetClearsTheOutput(KnowsItsRings):
    def reset(self):
        super().reset()
        self.clear()


@fault("mixed")
class AStateThatIsSetClearsTheOutput(KnowsItsRings):
    def set_state(self, state):
        super().set_state(state)
        self.clear()


@fault("mixed")
class BindingClearsTheOutputs(KnowsItsRings):
    def _bind(self, ring):
        self.clear()
        return super()._bind(ring)


@fault("mixed")
class ASessionThatEndsClearsTheOutputsOfOthers(Counted, KnowsItsRings):
    def harm(self, other):
        other.clear()


# Isolation and closing: of several sessions.


@fault("isolation")
class AStateThatIsSetWaitsInOnePlace(HonestSession):
    """Of all sessions. The next call, or look, takes it."""

    waits = False

    def _write_state(self, state):
        self._program.__dict__["waiting"] = {name: array.copy() for name, array in state.items()}
        self.waits = True

    def _settle(self):
        if self.waits:
            self.waits = False
            self.state = {name: array.copy() for name, array in self._program.waiting.items()}

    def compute(self, x):
        self._settle()
        return super().compute(x)

    def _read_state(self):
        self._settle()
        return super()._read_state()


@fault("isolation")
class AStateThatIsSetWaitsInOnePlaceAndAResetInNone(AStateThatIsSetWaitsInOnePlace):
    """So that no session that is opened changes what waits."""

    def reset(self):
        self.waits = False
        HonestSession._write_state(self, {s.name: np.zeros(self._shape(s), s.dtype) for s in self._states})


@fault("closing")
class ASecondCloseClosesAFileOfAnother(HonestSession):
    """It closes the number of its file, which somebody else has by then."""

    def __init__(self, program):
        super().__init__(program)
        self.file = os.open(os.devnull, os.O_RDONLY)

    def close(self):
        with suppress(OSError):
            os.close(self.file)
        super().close()


@fault("closing")
class ARingDoesNotHoldItsSession(HonestSession):
    """Its calls are empty once the caller has let go of the session."""

    def _bind(self, ring):
        class Bound(HonestBound):
            def __call__(self):
                session = self.of()
                self.calls += 1
                x = self._next()
                self.y = x[..., :1] * 0 if session is None else session.compute(x)

        bound = Bound(self, ring)
        bound.of, bound.session = weakref.ref(self), None
        return bound


# Refilled: the caller has a view that it may write to.


@fault("refilled")
class AnArrayThatIsReadOnlyIsNotReadAgain(HonestSession):
    """It is taken for a constant."""

    def step(self, inputs):
        x = inputs["x"]
        if not x.flags.writeable:
            constants = self.__dict__.setdefault("constants", {})
            x = constants.setdefault((x.ctypes.data, x.shape), x.copy())
        return super().step({**inputs, "x": x})


@fault("refilled")
class AStateThatIsReadOnlyIsNotReadAgain(HonestSession):
    def set_state(self, state):
        if not any(array.flags.writeable for array in state.values()):
            constants = self.__dict__.setdefault("constants", {})
            state = {name: constants.setdefault((name, a.ctypes.data), a.copy()) for name, a in state.items()}
        super().set_state(state)
