"""The division of whole numbers as compilers have it: towards zero, where NumPy's goes down."""

from __future__ import annotations

import numpy as np


def divided_towards_zero(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a/b of whole numbers of one type, exactly: float64 does not hold all of 64 bits. Where b is zero, it is a."""
    divisor = np.where(b == 0, 1, b)
    down = a // divisor
    is_below = (a % divisor != 0) & ((a < 0) != (divisor < 0))
    quotient: np.ndarray = (down + is_below).astype(a.dtype)
    return quotient
