"""Adapters that take a call, a state, a ring or a step for another one that is like it."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from faulty_contents import StepByStep
from honest_adapter import HonestBound, HonestSession
from planted import BATCH, RAGGED, fault, timed

# Alike: results are kept under less than all that a call depends on.


class Remembers(HonestSession):
    """All sessions of a program share what is known."""

    def compute(self, x):
        known = self._program.__dict__.setdefault("known", {})
        key = x.shape, self.key_of(x), *(self.key_of_state(array) for array in self.state.values())
        if key not in known:
            known[key] = super().compute(x), dict(self.state)
        y, state = known[key]
        self.state = {name: array.copy() for name, array in state.items()}
        return y.copy()

    @abstractmethod
    def key_of(self, x: np.ndarray) -> object:
        """By what x is known again."""

    def key_of_state(self, array: np.ndarray) -> object:
        return array.tobytes()


@fault("alike")
class KnownByItsFirstNumber(Remembers):
    def key_of(self, x):
        return x.flat[0]


@fault("alike", state="none")
class KnownByItsEnds(Remembers):
    def key_of(self, x):
        return x.flat[0], x.flat[-1]


@fault("alike")
class KnownByItsSum(Remembers):
    def key_of(self, x):
        return round(float(x.sum(dtype=np.float64)), 5)


@fault("alike")
class KnownByItsText(Remembers):
    def key_of(self, x):
        return np.array2string(x, precision=2)


@fault("alike")
class KnownByItsHalfPrecision(Remembers):
    def key_of(self, x):
        return x.astype(np.float16).tobytes()


class KnowsItsPast(Remembers):
    """A call is known by where the stream began, by what is noted of all inputs since, and by its own x."""

    began: tuple[bytes, ...] = ()
    past: tuple[object, ...] = ()

    def _write_state(self, state):
        super()._write_state(state)
        self.began, self.past = tuple(array.tobytes() for array in state.values()), ()

    def key_of(self, x):
        key = self.began, self.past, x.tobytes()
        self.past += (self.noted(x),)
        return key

    def key_of_state(self, array):
        return b""

    @abstractmethod
    def noted(self, x: np.ndarray) -> object:
        """What is noted of the x of each call."""


@fault("alike")
class KnownByItsPlaceInTheStream(KnowsItsPast):
    def noted(self, x):
        return None


@fault("alike")
class KnownByTheFirstNumbersOfItsPast(KnowsItsPast):
    def noted(self, x):
        return x.flat[0]


@fault("alike")
class KnownByTheSumsOfItsPast(KnowsItsPast):
    def noted(self, x):
        return round(float(x.sum(dtype=np.float64)), 5)


@fault("alike")
class AStateIsKnownByItsFirstNumber(Remembers):
    def key_of(self, x):
        return x.tobytes()

    def key_of_state(self, array):
        return array.flat[0]


@fault("alike")
class AStateIsWrittenWhereItsEndsDiffer(HonestSession):
    def _write_state(self, state):
        ends = [(array.flat[0], array.flat[-1]) for array in state.values()]
        if ends != [(array.flat[0], array.flat[-1]) for array in self.state.values()] or not any(map(any, ends)):
            super()._write_state(state)


@timed("alike")
class ABoundCallIsKnownByItsFirstNumber(HonestBound):
    def __call__(self):
        session, x = self.session, self._next()
        known = session.__dict__.setdefault("known", {})
        key = float(x.flat[0]), *(array.tobytes() for array in session.state.values())
        if key not in known:
            known[key] = session.compute(x), session.state
        self.y, session.state = known[key]


class KnowsTheLastCall(HonestSession):
    """Of the public path alone. A call between two that are alike hides it."""

    last: tuple[object, np.ndarray, dict[str, np.ndarray]] = None, np.zeros(0), {}

    def _advance(self, x):
        key = self.noted(x), *(array.tobytes() for array in self.state.values())
        if key == self.last[0]:
            self.state = self.last[2]
        else:
            self.last = key, super()._advance(x), self.state
        return self.last[1].copy()

    @abstractmethod
    def noted(self, x: np.ndarray) -> object:
        """By what x is known again."""


@fault("alike")
class TheLastCallIsKnownByItsFirstAndLastStep(KnowsTheLastCall):
    def noted(self, x):
        return x[0].tobytes(), x[-1].tobytes()


@fault("alike")
class TheLastCallIsKnownByItsAddress(KnowsTheLastCall):
    def noted(self, x):
        return x.ctypes.data


# Rings that are taken for an earlier one.


class RemembersRings(HonestSession):
    def _bind(self, ring):
        known = self.__dict__.setdefault("known", {})
        return HonestBound(self, [known.setdefault(key, chunk) for key, chunk in self.keyed(ring)])

    @abstractmethod
    def keyed(self, ring: list[np.ndarray]) -> list[tuple[object, np.ndarray]]:
        """Each chunk with that by which it is known again."""


@fault("rings")
class AChunkIsKnownByItsAddress(RemembersRings):
    """It is uploaded once."""

    def keyed(self, ring):
        return [(chunk.ctypes.data, chunk.copy()) for chunk in ring]


@fault("rings")
class ARingIsKnownByItsFirstChunk(RemembersRings):
    def keyed(self, ring):
        return [((ring[0].tobytes(), len(ring), place), chunk.copy()) for place, chunk in enumerate(ring)]


@fault("rings")
class ARingIsKnownByItsEnds(RemembersRings):
    def keyed(self, ring):
        ends = ring[0].tobytes(), ring[-1].tobytes(), len(ring)
        return [((*ends, place), chunk.copy()) for place, chunk in enumerate(ring)]


class OfTheFirstRing(HonestBound):
    def __call__(self):
        super().__call__()
        if self.session.first is self:
            self.session.seen = self.session.state


@fault("rings")
class TheStateThatIsReadIsNotThatOfTheSecondRing(HonestSession):
    def _bind(self, ring):
        bound = OfTheFirstRing(self, ring)
        self.first = self.__dict__.get("first", bound)
        return bound

    def _advance(self, x):
        y = super()._advance(x)
        self.seen = self.state
        return y

    def _write_state(self, state):
        super()._write_state(state)
        self.seen = self.state

    def _read_state(self):
        return {name: array.copy() for name, array in self.seen.items()}


# Contents: steps and states that mean something else to the program.


class Masks(StepByStep):
    value: float

    def compute_step(self, x):
        before = self.state
        y = self._computed(x)
        masked = (x[0] == np.float32(self.value)).all(axis=1)[:, None]
        self.state = {name: np.where(masked, before[name], array) for name, array in self.state.items()}
        return np.where(masked, before["h"][-1:], y)


@fault("contents")
class StepsOfOnesAreMasked(Masks):
    value = 1.0


@fault("contents")
class StepsOfMinusOnesAreMasked(Masks):
    """The value with which many pad."""

    value = -1.0


@fault("contents")
class AStateWithoutHIsANewOne(HonestSession):
    def _write_state(self, state):
        super()._write_state(state if state["h"].any() else {name: array * 0 for name, array in state.items()})


@fault("contents", **BATCH)
class ARowWithoutHIsANewOne(HonestSession):
    def _write_state(self, state):
        used = state["h"].any(axis=(0, 2))[None, :, None]
        super()._write_state({name: (array * used).astype(array.dtype) for name, array in state.items()})


# Lengths: rows that are equally long, and rows in an order of their lengths.


@fault("lengths", **RAGGED)
class RowsOfFullLengthHaveAProgramOfTheirOwn(HonestSession):
    def compute_ragged(self, x, lengths):
        y = super().compute_ragged(x, lengths)
        return np.roll(y, 1, axis=0) if (lengths == len(x)).all() else y


@fault("lengths", **RAGGED)
class RowsOfOneStepAreEmpty(HonestSession):
    def compute_ragged(self, x, lengths):
        y = super().compute_ragged(x, lengths)
        return y * 0 if (lengths == 1).all() else y


@fault("lengths", **RAGGED)
class RowsAreSortedByLengthAndNotBack(HonestSession):
    """They are, where the order is its own inverse."""

    def compute_ragged(self, x, lengths):
        order = np.argsort(-lengths, kind="stable")
        return super().compute_ragged(x[:, order].copy(), lengths[order].copy())[:, order].copy()


@fault("lengths", **RAGGED)
class LengthsAreTheSecondInput(HonestSession):
    def step(self, inputs):
        x, *others = inputs.values()
        if others and isinstance(x, np.ndarray) and x.ndim == 1:
            raise TypeError("x has one dimension")
        return super().step(inputs)
