"""Ways in which an honest adapter may compute: each rounds where a runtime somewhere rounds."""

from __future__ import annotations

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic, Product
from rnnbench.rnn.dtypes import DTYPES, nearest
from rnnbench.rnn.quantised import Range


class OneByOne(Arithmetic):
    """Sums products term by term, each sum rounded: a scalar loop, the longest chain there is."""

    def product(self, weight: np.ndarray, operand: Range | None = None) -> Product:
        rows, accumulate = self.cast(weight), DTYPES[self.dtype].accumulate

        def sums(x: np.ndarray) -> np.ndarray:
            x = self._entering(x, operand)
            total = np.zeros((*x.shape[:-1], len(rows)), self.carrier)
            for k in range(rows.shape[1]):
                term = nearest(x[..., k : k + 1] * rows[:, k], accumulate)
                total = nearest(total + term, accumulate).astype(self.carrier)
            return self(total)

        return sums


class Wide(Arithmetic):
    """Computes in float64 and rounds only what leaves a call: more than what is asked for."""

    def __init__(self, dtype: str) -> None:
        super().__init__("float64")
        self.stored = np.dtype(DTYPES[dtype].stored)


class Exponentials(Arithmetic):
    """tanh as 2σ(2x) − 1: as exact as its range asks, and no more near zero."""

    def activated(self, value: np.ndarray) -> np.ndarray:
        return self((value + self.carrier.type(1)) - self.carrier.type(1))


class Flushing(Arithmetic):
    """Numbers below the smallest normal one are zero, as with the processor's flag for it."""

    def __init__(self, dtype: str) -> None:
        super().__init__(dtype)
        self._tiny = DTYPES[dtype].tiny

    def cast(self, array: np.ndarray) -> np.ndarray:
        return self._flushed(super().cast(array.copy()))

    def __call__(self, value: np.ndarray) -> np.ndarray:
        return self._flushed(super().__call__(value))

    def _flushed(self, array: np.ndarray) -> np.ndarray:
        array[np.abs(array) < self._tiny] = 0
        return array


class AnotherOrder(Arithmetic):
    """Terms of every product in some other order."""

    def __init__(self, dtype: str) -> None:
        super().__init__(dtype, summation=7)


class InBlocks(Arithmetic):
    """Sums products in blocks of eight without a rounding, as with fused multiply-add, and rounds each block's sum."""

    def product(self, weight: np.ndarray, operand: Range | None = None) -> Product:
        rows, accumulate = self.cast(weight).astype(np.float64), DTYPES[self.dtype].accumulate

        def sums(x: np.ndarray) -> np.ndarray:
            x = self._entering(x, operand).astype(np.float64)
            total = np.zeros((*x.shape[:-1], len(rows)), self.carrier)
            for k in range(0, rows.shape[1], 8):
                total = nearest(total + x[..., k : k + 8] @ rows[:, k : k + 8].T, accumulate).astype(self.carrier)
            return self(total)

        return sums


class OfAFewUlp(Arithmetic):
    """Activations are off by up to three units in the last place of 1, as rational approximations are."""

    def activated(self, value: np.ndarray) -> np.ndarray:
        off = 3 * np.finfo(self.carrier).eps * np.sin(1e3 * value)
        return self(value + off.astype(self.carrier))


HONEST = (Arithmetic, AnotherOrder, OneByOne, Wide, Exponentials, Flushing, InBlocks, OfAFewUlp)
