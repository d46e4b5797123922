"""Weights in int8, and ranges for their operands.

Weights are symmetric, with one scale for each matrix: every runtime with int8 products can hold such weights.

A weight is q·scale with q from −127 to 127. The scale is max|w|/127, rounded up to SCALE_DIGITS significant bits. So
q·scale is exact in float32, and a network's dequantised weights are its weights. Whoever quantises them again finds the
same q and scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

LARGEST = 127
"""The largest q. −128 is left out: the range is symmetric, and no product of two bytes saturates."""
STEPS = 255
"""Steps of an operand's range."""
SCALE_DIGITS = 16
"""Significant bits of a scale. With the 7 of q, or the 8 of an operand's q − zero, they fit into float32's 24."""
SMALLEST_SCALE = float(np.finfo(np.float32).tiny)
"""Below it a float32 has fewer bits. ONNX Runtime's quantiser has 1 there too (`compute_scale_zp`)."""


class Int8(NamedTuple):
    """An array in int8: `q` with one scale for all of it."""

    q: np.ndarray
    scale: float

    @property
    def values(self) -> np.ndarray:
        """The values that it stands for, exactly, in float32."""
        dequantised: np.ndarray = (self.q * self.scale).astype(np.float32)
        return dequantised


@dataclass(frozen=True)
class Range:
    """A fixed range of an operand in 8 bits. A value is (q − zero)·scale, with q from 0 to `steps`."""

    scale: float
    zero: int
    """The q that stands for 0."""
    steps: int = STEPS

    @classmethod
    def of(cls, low: float, high: float) -> Range:
        """The range that has 0 and all values from `low` to `high`, to the nearest step."""
        low, high = min(low, 0.0), max(high, 0.0)
        scale = _rounded_up((high - low) / STEPS)
        return cls(scale, round(-low / scale))

    @property
    def low(self) -> float:
        return -self.zero * self.scale

    @property
    def high(self) -> float:
        return (self.steps - self.zero) * self.scale

    def clamped(self, x: np.ndarray) -> np.ndarray:
        """x, with each value beyond the range moved to its end, as saturation does. A NaN stays a NaN."""
        within: np.ndarray = np.clip(x, self.low, self.high)
        return within

    def nearest(self, x: np.ndarray) -> np.ndarray:
        """For each value of x the nearest value of the range, in the type of x."""
        with np.errstate(over="ignore"):
            q = np.clip(np.rint(x / self.scale) + self.zero, 0, self.steps)
        values: np.ndarray = ((q - self.zero) * self.scale).astype(x.dtype)
        return values


def scale_of(largest: float) -> float:
    """The scale of weights whose largest magnitude is `largest`. 1 if all are nearly zero."""
    return _rounded_up(largest / LARGEST)


def _rounded_up(step: float) -> float:
    """The next larger scale of SCALE_DIGITS bits. 1 for a step below SMALLEST_SCALE, which stands for 0."""
    if step < SMALLEST_SCALE:
        return 1.0
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.ceil(mantissa * 2**SCALE_DIGITS), exponent - SCALE_DIGITS)


def quantised(weight: np.ndarray) -> Int8:
    """A whole weight matrix in the nearest int8 values."""
    scale = scale_of(float(np.abs(weight).max(initial=0.0)))
    return Int8(np.rint(weight.astype(np.float64) / scale).astype(np.int8), scale)


def in_int8(weight: np.ndarray) -> Int8:
    """The int8 values of a matrix that was drawn for int8.

    Raises ValueError if it was not, or if it is only a part: a part may lack the value that decides the scale.
    """
    weight_in_int8 = quantised(weight)
    if not np.array_equal(weight_in_int8.values, weight):
        raise ValueError("these weights are no whole matrix of int8 values; draw them with an int8 dtype")
    return weight_in_int8
