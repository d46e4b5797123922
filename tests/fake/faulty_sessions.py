"""Adapters whose sessions start, end, repeat and stand beside each other wrongly, or mistake a state."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from honest_adapter import HonestSession
from planted import fault, let_others_run

from rnnbench.rnn import rounded

# Start and reset.


@fault("start")
class GivenStateIgnored(HonestSession):
    def _write_state(self, state):
        super()._write_state({name: array * 0 for name, array in state.items()})


@fault("start")
class GivenCellStateIgnored(HonestSession):
    def _write_state(self, state):
        super()._write_state({**state, "c": state["c"] * 0})


@fault("reset")
class ResetDoesNothing(HonestSession):
    opened = False

    def reset(self):
        if not self.opened:
            super().reset()
        self.opened = True


@fault("reset")
class ResetForgetsTheCellState(HonestSession):
    def reset(self):
        kept = self.state.get("c")
        super().reset()
        if kept is not None:
            self.state["c"] = kept


@fault("reset")
class ResetGoesBackByOneCall(HonestSession):
    def compute(self, x):
        self.before = self.state
        return super().compute(x)

    def reset(self):
        super().reset()
        self.state = getattr(self, "before", self.state)


# Repeat: the same call gives something else.


@fault("repeat")
class WeightsDriftWithEachCall(HonestSession):
    calls = 0

    def compute(self, x):
        self.calls += 1
        return super().compute(x) * np.float32(1 + 2e-7 * self.calls)


@fault("repeat")
class SumsInAnOrderOfTheMoment(HonestSession):
    random = np.random.default_rng(0)

    def compute(self, x):
        y = super().compute(x)
        return np.where(self.random.random(y.shape) < 0.5, y, np.nextafter(y, np.float32(np.inf)))


@fault("values")
class ThirdCallIsStale(HonestSession):
    calls, last = 0, None

    def compute(self, x):
        self.calls += 1
        y = super().compute(x)
        if self.calls == 3 and self.last is not None and self.last.shape == y.shape:
            y = self.last
        self.last = y.copy()
        return y


# Isolation: sessions touch each other.


class Shared(HonestSession):
    """All sessions of the process have one state."""

    common: dict[str, np.ndarray]

    def _write_state(self, state):
        type(self).common = {name: array.copy() for name, array in state.items()}
        self.state = type(self).common

    def compute(self, x):
        self.state = type(self).common
        y = super().compute(x)
        type(self).common = self.state
        return y


@fault("isolation")
class OneStateForAllSessions(Shared):
    pass


@fault("isolation")
class SecondSessionOpensWithTheFirstsState(HonestSession):
    left: dict[str, np.ndarray] | None = None

    def __init__(self, program):
        super().__init__(program)
        if type(self).left is not None:
            self.state = type(self).left

    def compute(self, x):
        y = super().compute(x)
        type(self).left = {name: array.copy() for name, array in self.state.items()}
        return y


@fault("isolation")
class CloseLeavesItsStateBehind(HonestSession):
    left: dict[str, np.ndarray] | None = None

    def __init__(self, program):
        super().__init__(program)
        if type(self).left is not None:
            self.state, type(self).left = type(self).left, None

    def close(self):
        type(self).left = {name: array.copy() for name, array in self.state.items()}
        super().close()


@fault("threads")
class ScratchSharedByThreads(HonestSession):
    scratch: dict[str, np.ndarray] = {}  # noqa: RUF012 that it is shared is the fault

    def _advance(self, x):
        type(self).scratch = self.state
        let_others_run()
        self.state = type(self).scratch
        return super()._advance(x)


@fault("threads")
class InputsOfAllThreadsInOnePlace(HonestSession):
    """From where each step of a call reads its own. No thread waits for another."""

    place: np.ndarray

    def compute(self, x):
        InputsOfAllThreadsInOnePlace.place = x
        ys = []
        for step in range(len(x)):
            ys.append(super().compute(self.place[step % len(self.place)][None]))
        return np.concatenate(ys)


@fault("threads")
class TheStateIsThatOfAThread(HonestSession):
    """It is thread-local: a stream that goes on in another thread begins anew."""

    def compute(self, x):
        by_thread = self.__dict__.setdefault("by_thread", {})
        self.state = by_thread.get(threading.get_ident()) or {name: a * 0 for name, a in self.state.items()}
        y = super().compute(x)
        by_thread[threading.get_ident()] = self.state
        return y

    def _write_state(self, state):
        super()._write_state(state)
        self.__dict__.setdefault("by_thread", {})[threading.get_ident()] = self.state


@fault("threads")
class RefusesASecondThread(HonestSession):
    owner: int | None = None

    def compute(self, x):
        owner = type(self).owner = type(self).owner or threading.get_ident()
        if threading.get_ident() != owner:
            raise RuntimeError("bound to another thread")
        return super().compute(x)


# State.


@fault("state")
class StateReadIsAlwaysZero(HonestSession):
    def _read_state(self):
        return {name: array * 0 for name, array in self.state.items()}


@fault("state")
class StateReadWithNamesSwapped(HonestSession):
    def _read_state(self):
        return {"h": self.state["c"].copy(), "c": self.state["h"].copy()}


@fault("state")
class StatePutInAndReadBackIsRounded(HonestSession):
    def _write_state(self, state):
        super()._write_state({n: a.astype(np.float16).astype(np.float32) for n, a in state.items()})


@fault("state", layers=2, batch=6, dtype="float16")
class StateOfFloat16IsKeptInBfloat16(HonestSession):
    def compute(self, x):
        y = super().compute(x)
        self.state = {name: rounded(array, "bfloat16").astype(array.dtype) for name, array in self.state.items()}
        return y


@fault("state", layers=2)
class StateOfLayersInReverse(HonestSession):
    def _read_state(self):
        return {name: array[::-1].copy() for name, array in self.state.items()}


@fault("values", layers=2)
class HiddenAndCellOfTheSecondLayerSwapped(HonestSession):
    """Where they are read and where they are set: its own come back right."""

    def _read_state(self):
        return self._swapped(self.state)

    def _write_state(self, state):
        super()._write_state(self._swapped(state))

    @staticmethod
    def _swapped(state):
        h, c = state["h"], state["c"]
        return {"h": np.concatenate([h[:1], c[1:]]), "c": np.concatenate([c[:1], h[1:]])}


@fault("state", layers=2)
class HiddenOfTheSecondLayerNegated(HonestSession):
    """As its own, too."""

    def _read_state(self):
        return self._negated(self.state)

    def _write_state(self, state):
        super()._write_state(self._negated(state))

    @staticmethod
    def _negated(state):
        return {"h": np.concatenate([state["h"][:1], -state["h"][1:]]), "c": state["c"].copy()}


# Exchange: states that were not its own.


@fault("exchange")
class KnowsOnlyStatesItGaveOut(HonestSession):
    """Keeps its states packed under a digest of what it gave out; any other is taken for zeros."""

    known: dict[bytes, Any]

    def __init__(self, program):
        self.known = program.__dict__.setdefault("known", {})
        super().__init__(program)

    def _read_state(self):
        state = super()._read_state()
        self.known[state["h"].tobytes()] = state
        return state

    def _write_state(self, state):
        packed = self.known.get(state["h"].tobytes(), {name: array * 0 for name, array in state.items()})
        super()._write_state(packed)


@fault("exchange")
class AStateOfAnotherLastsOneChunk(HonestSession):
    """After it, the program goes on from where it was."""

    before: dict[str, np.ndarray] | None = None

    def __init__(self, program):
        self.own: set[bytes] = set()
        super().__init__(program)

    def _read_state(self):
        self.own.add(self.state["h"].tobytes())
        return super()._read_state()

    def _write_state(self, state):
        self.before = self.state if state["h"].any() and state["h"].tobytes() not in self.own else None
        super()._write_state(state)

    def compute(self, x):
        y = super().compute(x)
        if self.before is not None:
            self.state, self.before = self.before, None
        return y


@fault("exchange")
class StateInALayoutOfItsOwn(HonestSession):
    """Gives and takes h and c in each other's place: its own come back right, and no other's."""

    def _read_state(self):
        return {"h": self.state["c"].copy(), "c": self.state["h"].copy()}

    def _write_state(self, state):
        super()._write_state({"h": state["c"], "c": state["h"]})


@fault("exchange", layers=2)
class LayersOfItsStateInReverse(HonestSession):
    def _read_state(self):
        return {name: array[::-1].copy() for name, array in self.state.items()}

    def _write_state(self, state):
        super()._write_state({name: array[::-1] for name, array in state.items()})
