"""Adapters that are wrong where memory, names or queues are used again, and where what is no number is left over."""

from __future__ import annotations

import numpy as np
from faulty_neighbours import Queueing
from honest_adapter import HonestSession
from planted import fault, timed

# Owned: arrays in memory that the session has returned, or was given, before.


@fault("owned")
class AnInputInTheMemoryOfTheLastOutputIsLost(HonestSession):
    """As where the memory of an output is given back to the runtime at the next call."""

    last: np.ndarray | None = None

    def compute(self, x):
        lost = self.last is not None and np.shares_memory(x, self.last)
        self.last = super().compute(x * 0 if lost else x)
        return self.last


@fault("owned")
class AStateInTheMemoryOfTheLastOutputIsLost(HonestSession):
    last: np.ndarray | None = None

    def compute(self, x):
        self.last = super().compute(x)
        return self.last

    def _write_state(self, state):
        lost = self.last is not None and any(np.shares_memory(array, self.last) for array in state.values())
        super()._write_state({name: array * 0 for name, array in state.items()} if lost else state)


@fault("owned")
class AnInputWhereTheStateLayIsTheState(HonestSession):
    """Uploads are remembered by the place of their array."""

    given: dict[int, np.ndarray]

    def _write_state(self, state):
        self.given = {array.ctypes.data: array.copy() for array in state.values()}
        super()._write_state(state)

    def _advance(self, x):
        known = self.given.pop(x.ctypes.data, None)
        return self.compute(x if known is None else np.resize(known, x.shape))


# Layout: the order of a state's names.


@fault("layout")
class StatesAreTakenByPosition(HonestSession):
    def set_state(self, state):
        names = [spec.name for spec in self._states]
        super().set_state(dict(zip(names, state.values(), strict=True)) if sorted(state) == sorted(names) else state)


# Mixed: calls that wait while a ring is bound.


@timed("mixed")
class BindingARingDropsTheCallsThatWait(Queueing):
    settles_before = ("_read_state", "_advance", "_write_state")

    def __init__(self, session, ring):
        super().__init__(session, ring)
        for other in session.rings:
            other.waiting = 0


# Nan: what is left of a call, times zero.


@fault("nan")
class NanSurvivesAStateThatIsSet(HonestSession):
    """Zero times the old state is added to the new one. A reset has a way of its own."""

    def _write_state(self, state):
        if self.state and any(array.any() for array in state.values()):
            state = {name: array + np.float32(0) * self.state[name] for name, array in state.items()}
        super()._write_state(state)


@fault("nan")
class ScratchIsMultipliedByZero(HonestSession):
    """As a product with beta = 0 in a library that multiplies all the same. A reset clears the scratch."""

    scratch: np.ndarray | None = None

    def _write_state(self, state):
        super()._write_state(state)
        if not any(array.any() for array in state.values()):
            self.scratch = None

    def compute(self, x):
        y = super().compute(x)
        if self.scratch is not None and self.scratch.shape == y.shape:
            y = y + np.float32(0) * self.scratch
        self.scratch = y
        return y
