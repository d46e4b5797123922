"""Adapters that are wrong for numbers that random inputs do not have: zeros, and what is equal to something else."""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise

import numpy as np
from honest_adapter import HonestSession
from planted import BATCH, fault


class StepByStep(HonestSession):
    """Each step of a call is computed apart."""

    def compute(self, x):
        return np.concatenate([self.compute_step(step[None]) for step in x])

    @abstractmethod
    def compute_step(self, x: np.ndarray) -> np.ndarray:
        """y of x [1, batch, input]."""

    def _computed(self, x: np.ndarray) -> np.ndarray:
        return super().compute(x)


@fault("contents")
class ZerosArePadding(StepByStep):
    """A row of zeros is a step that is not there, as a mask does that is made from the input's values."""

    def compute_step(self, x):
        before = self.state
        y = self._computed(x)
        padded = ~x[0].any(axis=1)[:, None]
        self.state = {name: np.where(padded, before[name], array) for name, array in self.state.items()}
        return np.where(padded, before["h"][-1:], y)


@fault("contents", state="none")
class NegativeZerosAreLarge(HonestSession):
    """They are compared as whole numbers, bit by bit."""

    def compute(self, x):
        return super().compute(np.where((x == 0) & np.signbit(x), x.dtype.type(1), x))


@fault("contents", **BATCH)
class EqualRowsAreComputedOnce(StepByStep):
    """Their states may differ."""

    def compute_step(self, x):
        y = self._computed(x)
        first = [next(i for i, other in enumerate(x[0]) if np.array_equal(row, other)) for row in x[0]]
        self.state = {name: array[:, first] for name, array in self.state.items()}
        return y[:, first]


class RowsAreKnownByXAndOneState(HonestSession):
    name = "h"

    def compute(self, x):
        looked_at = x, self.state[self.name]
        rows = [b"".join(array[:, row].tobytes() for array in looked_at) for row in range(x.shape[1])]
        first = [rows.index(row) for row in rows]
        self.state = {name: array[:, first] for name, array in self.state.items()}
        return super().compute(x)


@fault("contents", **BATCH)
class RowsOfEqualXAndHAreComputedOnce(RowsAreKnownByXAndOneState):
    pass


@fault("contents", **BATCH)
class RowsOfEqualXAndCellAreComputedOnce(RowsAreKnownByXAndOneState):
    name = "c"


@fault("contents", **BATCH)
class AProjectionIsRememberedByItsFirstRow(StepByStep):
    first: bytes = b""

    def compute_step(self, x):
        if x[0, 0].tobytes() != self.first:
            self.first, self.kept = x[0, 0].tobytes(), x.copy()
        return self._computed(self.kept)


@fault("contents")
class EqualStepsOfACallAreSkipped(HonestSession):
    """A network of differences: where nothing changes in x, nothing is computed, although the state goes on."""

    def compute(self, x):
        ys = [super().compute(x[:1])]
        for before, step in pairwise(x):
            ys.append(ys[-1] if np.array_equal(before, step) else super().compute(step[None]))
        return np.concatenate(ys)


# Silence, and inputs that hardly change: a program may take a stream for settled, or for one that has not begun.


@fault("contents")
class AStateThatHardlyMovesStandsStill(StepByStep):
    """As long as x stays the same."""

    last = np.zeros(0)
    still = False

    def compute_step(self, x):
        if not (self.still and np.array_equal(x, self.last)):
            before, self.last = self.state, x.copy()
            self.y = self._computed(x)
            self.still = all(np.abs(array - before[name]).max() < 1e-3 for name, array in self.state.items())
        return self.y.copy()

    def _write_state(self, state):
        self.still = False
        super()._write_state(state)


@fault("contents")
class TwentyStepsOfSilenceEndTheStream(StepByStep):
    silent = 0

    def compute_step(self, x):
        self.silent = 0 if x.any() else self.silent + 1
        if self.silent <= 20:
            self.y = self._computed(x)
        return self.y.copy()


@fault("contents")
class AChunkOfSilenceIsSkipped(HonestSession):
    y = np.zeros(0)

    def compute(self, x):
        if x.any() or self.y.shape[:1] != x.shape[:1]:
            self.y = super().compute(x)
        return self.y.copy()


@fault("contents")
class SilenceAtTheBeginningIsSkipped(StepByStep):
    """The state of a new stream is zeros, and is not, after steps of zeros."""

    def compute_step(self, x):
        new = not x.any() and not any(array.any() for array in self.state.values())
        return np.zeros((1, *self.state["h"].shape[1:]), x.dtype) if new else self._computed(x)


@fault("contents")
class ChangesOfLessThanAThousandthAreNotSeen(StepByStep):
    """A network of differences with a threshold."""

    seen = np.full(1, np.inf, np.float32)

    def compute_step(self, x):
        self.seen = np.where(np.abs(x - self.seen) > 1e-3, x, self.seen).astype(x.dtype)
        return self._computed(self.seen)
