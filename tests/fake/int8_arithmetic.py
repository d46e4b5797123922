"""Arithmetic of products with 8-bit activations: as runtimes have it, and with a fault in it."""

from __future__ import annotations

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic


class Asymmetric(Arithmetic):
    """A scale and a zero point for the whole operand, whose range includes zero."""

    bits = 8
    misplaced = 0.0
    """Steps by which the zero point is wrong."""
    range_share = 1.0
    """Of the range that the operand has: the range that is quantised."""

    def _entering(self, x: np.ndarray) -> np.ndarray:
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

    def _entering(self, x: np.ndarray) -> np.ndarray:
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


HONEST_INT8 = (Arithmetic, Asymmetric, SevenBits, ByRow, InFloat)
FAULTY_INT8 = (FourBits, ZeroPointForgotten, ZeroPointOffByTen, RangeOfHalf)
