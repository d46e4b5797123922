"""Arithmetic of products with 8-bit activations: as runtimes have it, and with a fault in it."""

from __future__ import annotations

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.quantised import STEPS, Range


class Asymmetric(Arithmetic):
    """A scale and a zero point for the whole operand, whose range includes zero."""

    bits = 8
    misplaced = 0.0
    """Steps by which the zero point is wrong."""
    range_share = 1.0
    """Of the range that the operand has: the range that is quantised."""

    def _entering(self, x: np.ndarray, operand: Range | None) -> np.ndarray:
        low, high = (np.asarray(edge) for edge in self.range_of(x))
        step = np.where(high > low, high - low, 1) / (2**self.bits - 1)
        zero = np.rint(-low / step)
        with np.errstate(invalid="ignore", over="ignore"):
            q = np.clip(np.rint(x / step) + zero, 0, 2**self.bits - 1)
        entering: np.ndarray = ((q - zero + self.misplaced) * step).astype(x.dtype)
        return entering

    def range_of(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.range_share * min(x.min(), 0), self.range_share * max(x.max(), 0)


class SevenBits(Asymmetric):
    bits = 7


class ByRow(Asymmetric):
    """A scale for each row of each step."""

    def range_of(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.minimum(x.min(axis=-1, keepdims=True), 0), np.maximum(x.max(axis=-1, keepdims=True), 0)


class InFloat(Arithmetic):
    """Quantises no activation: more exact than what is asked for."""

    def _entering(self, x: np.ndarray, operand: Range | None) -> np.ndarray:
        return x


class FourBits(Asymmetric):
    bits = 4


class ZeroPointForgotten(Asymmetric):
    """The products are of bytes whose zero point, half of their range, is not subtracted."""

    misplaced = 128.0


class ZeroPointOffByTen(Asymmetric):
    misplaced = 10.0


class RangeOfHalf(Asymmetric):
    """A range from somewhere else: values beyond it are cut off."""

    range_share = 0.5


class ReadByAnotherScale(Range):
    """What was quantised by one scale is multiplied by another one, which is wrong by a tenth."""

    def nearest(self, x: np.ndarray) -> np.ndarray:
        return super().nearest(x) * np.float32(1.1)


class ReadByAnotherZero(Range):
    """The zero point that the products subtract is not the one that was added: off by 4 steps."""

    def nearest(self, x: np.ndarray) -> np.ndarray:
        return super().nearest(x) + np.float32(4 * self.scale)


class NotSaturated(Range):
    """Values beyond the range keep their size, as where they were never quantised."""

    def nearest(self, x: np.ndarray) -> np.ndarray:
        values: np.ndarray = (np.rint(x / self.scale) * self.scale).astype(x.dtype)
        return values


class WrappedAround(Range):
    """The lower 8 bits of a q that is too large for them."""

    def nearest(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore", over="ignore"):
            q = np.mod(np.rint(x / self.scale) + self.zero, STEPS + 1)
        values: np.ndarray = ((q - self.zero) * self.scale).astype(x.dtype)
        return values


HONEST_INT8 = (Arithmetic, Asymmetric, SevenBits, ByRow, InFloat)
FAULTY_INT8 = (FourBits, ZeroPointForgotten, ZeroPointOffByTen, RangeOfHalf)
MISREAD_RANGES = (ReadByAnotherScale, ReadByAnotherZero)
"""Wrong for values within the range."""
UNBOUNDED_RANGES = (NotSaturated, WrappedAround)
"""Wrong beyond it."""
