"""Adapters that are wrong where a stream goes back, or where states are set and reset with no call between."""

from __future__ import annotations

import numpy as np
from honest_adapter import HonestSession
from planted import fault


@fault("rewind")
class ItsOwnStateIsTakenToBeCurrent(HonestSession):
    """The arrays that it returned last are not copied when they come back, also where calls were made since."""

    returned: tuple[int, ...] = ()

    def get_state(self):
        self.last = super().get_state()
        self.returned = tuple(map(id, self.last.values()))
        return self.last

    def set_state(self, state):
        if tuple(map(id, state.values())) != self.returned:
            super().set_state(state)


@fault("rewind")
class ItsOwnStateIsTakenToBeCurrentOnTheTimedPath(HonestSession):
    """By its values, in a table of the states before the last bound calls."""

    def _bind(self, ring):
        bound = super()._bind(ring)
        self.known: dict[bytes, dict[str, np.ndarray]] = {}
        compute = self.compute

        def remembered(x):
            before = self.state["h"].tobytes()
            y = compute(x)
            self.known[before] = dict(self.state)
            return y

        self.compute = remembered
        return bound

    def _write_state(self, state):
        super()._write_state(state)
        self.state = dict(getattr(self, "known", {}).get(state["h"].tobytes(), self.state))


@fault("rewind")
class AResetLeavesAStateThatWaits(HonestSession):
    """The next call takes it, also where a reset came after it."""

    waiting: dict[str, np.ndarray] | None = None

    def set_state(self, state):
        super().set_state(state)
        self.waiting = self.state

    def compute(self, x):
        if self.waiting is not None:
            self.state, self.waiting = self.waiting, None
        return super().compute(x)


@fault("rewind")
class TwoResetsBringTheOldStateBack(HonestSession):
    """A reset takes a second set of buffers, which are zero, and the next one the first set."""

    spare: dict[str, np.ndarray] | None = None

    def reset(self):
        if self.spare is not None:
            self.state, self.spare = self.spare, None
            return
        before = self.state
        super().reset()
        self.spare = before or dict(self.state)

    def compute(self, x):
        self.spare = None
        return super().compute(x)

    def set_state(self, state):
        self.spare = None
        super().set_state(state)


class LazyReset(HonestSession):
    """The next call carries a reset out."""

    pending = False

    def reset(self):
        if self.state:
            self.pending = True
        else:
            super().reset()

    def compute(self, x):
        if self.pending:
            self.pending = False
            super().reset()
        return super().compute(x)


@fault("rewind")
class AResetUndoesAStateThatIsSetAfterIt(LazyReset):
    def _read_state(self):
        state = super()._read_state()
        return {name: array * 0 for name, array in state.items()} if self.pending else state


@fault("rewind")
class TheStateAfterAResetIsTheOldOne(LazyReset):
    def set_state(self, state):
        self.pending = False
        super().set_state(state)


@fault("rewind")
class AStateIsWrittenWhereItsHDiffers(HonestSession):
    def _write_state(self, state):
        if not self.state or not np.array_equal(self.state["h"], state["h"]):
            super()._write_state(state)


@fault("rewind")
class CallsAreRememberedByXAndH(HonestSession):
    """And c is forgotten."""

    def compute(self, x):
        known = self.__dict__.setdefault("known", {})
        key = x.tobytes(), self.state["h"].tobytes()
        if key not in known:
            y = super().compute(x)
            known[key] = y, dict(self.state)
        y, self.state = known[key][0].copy(), dict(known[key][1])
        return y


class CountsItsSteps(HonestSession):
    steps = 0

    def step(self, inputs):
        outputs = super().step(inputs)
        self.steps = len(outputs["y"])
        return outputs


@fault("rewind")
class AResetAfterARestOfThreeStepsDoesNothing(CountsItsSteps):
    def reset(self):
        if not getattr(self, "steps", 0) or self.steps % 4 != 3 or self.steps < 4:
            super().reset()


@fault("rewind")
class AStateThatIsSetAfterARestOfThreeStepsIsLost(CountsItsSteps):
    def set_state(self, state):
        if self.steps % 4 != 3 or self.steps < 4:
            super().set_state(state)
