"""Weights in int8: symmetric, one scale for each matrix, so that every runtime with int8 products can hold them.

A weight is q·scale with q from −127 to 127. The scale is max|w|/127, rounded up to SCALE_DIGITS significant bits. So
q·scale is exact in float32, a network's dequantised weights are its weights, and whoever quantises them again finds the
same q and scale.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

LARGEST = 127
"""Of q. −128 is left out, so that the range is symmetric and no product of two bytes saturates."""
SCALE_DIGITS = 16
"""Significant bits of a scale: with the 7 of q they fit into float32's 24."""


class Int8(NamedTuple):
    """An array in int8: `q` with one scale for all of it."""

    q: np.ndarray
    scale: float

    @property
    def values(self) -> np.ndarray:
        """What it stands for, in float32, exactly."""
        dequantised: np.ndarray = (self.q * self.scale).astype(np.float32)
        return dequantised


def scale_of(largest: float) -> float:
    """The scale of weights of which the largest magnitude is `largest`; 1 where all are zero."""
    if largest == 0:
        return 1.0
    mantissa, exponent = math.frexp(largest / LARGEST)
    return math.ldexp(math.ceil(mantissa * 2**SCALE_DIGITS), exponent - SCALE_DIGITS)


def quantised(weight: np.ndarray) -> Int8:
    """The nearest int8 values of a whole weight matrix."""
    scale = scale_of(float(np.abs(weight).max(initial=0.0)))
    return Int8(np.rint(weight.astype(np.float64) / scale).astype(np.int8), scale)


def in_int8(weight: np.ndarray) -> Int8:
    """The int8 values of a matrix that was drawn for int8. Raises ValueError where it is none, or only a part of one:
    a part may lack the value that decides the scale."""
    found = quantised(weight)
    if not np.array_equal(found.values, weight):
        raise ValueError("these weights are no whole matrix of int8 values; draw them with an int8 dtype")
    return found
