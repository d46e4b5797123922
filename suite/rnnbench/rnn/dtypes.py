"""The number formats of networks: the precision of each, and rounding to it.

NumPy has no bfloat16. Its values are stored in float32 arrays, which represent each of them exactly. The int8 formats
(`int8.py`) have weights in int8, and everything else in float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnbench.rnn.int8 import INT8_FORMS, Activations
from rnnbench.rnn.quantised import quantised


@dataclass(frozen=True)
class Dtype:
    """A binary floating-point type with `digits` significant bits, the hidden one included; or float32 with int8
    weights."""

    name: str
    digits: int
    itemsize: int
    """Bytes of a value of x, y or the state."""
    stored: str
    """NumPy's dtype of arrays that hold its values."""
    accumulate: str
    """The dtype in which products are summed. Instructions for bfloat16 (AVX512-BF16, AMX, BFMMLA) sum in float32."""
    base: str = ""
    """For an int8 format, the dtype of everything except weights. Empty for others."""
    activations: Activations = ""
    """How x and h enter a product (`Int8Form.activations`)."""

    @property
    def weight_itemsize(self) -> int:
        """Bytes of a weight."""
        return 1 if self.base else self.itemsize

    @property
    def sampled_with(self) -> str:
        """The dtype whose trials are sampled in turn with those of this one: float32 for the int8 formats."""
        return self.base or self.name

    @property
    def unit(self) -> float:
        """Unit roundoff u: the largest relative error of rounding to nearest."""
        return 2.0**-self.digits

    @property
    def tiny(self) -> float:
        """The smallest normal number. bfloat16 has the exponents of float32."""
        return float(np.finfo(self.stored).tiny)


DTYPES = {
    dtype.name: dtype
    for dtype in (
        Dtype("float16", 11, 2, "float16", "float16"),
        Dtype("bfloat16", 8, 2, "float32", "float32"),
        Dtype("float32", 24, 4, "float32", "float32"),
        Dtype("float64", 53, 8, "float64", "float64"),
        *(Dtype(form.name, 24, 4, "float32", "float32", "float32", form.activations) for form in INT8_FORMS.values()),
    )
}


def rounded(array: np.ndarray, dtype: str) -> np.ndarray:
    """The nearest values of `dtype` (ties to even, infinite beyond its range), in the dtype that stores them."""
    with np.errstate(over="ignore"):
        return nearest(array, dtype)


def rounded_weight(array: np.ndarray, dtype: str) -> np.ndarray:
    """As `rounded`. For an int8 format, a matrix gets the nearest int8 values, and a bias stays float32."""
    is_int8 = bool(DTYPES[dtype].base) and array.ndim == 2
    return quantised(array).values if is_int8 else rounded(array, dtype)


def nearest(array: np.ndarray, dtype: str) -> np.ndarray:
    """As `rounded`, but NumPy may warn of values that become infinite."""
    stored = array.astype(DTYPES[dtype].stored)
    return _to_bfloat16(stored) if dtype == "bfloat16" else stored


def from_bits(bits: np.ndarray) -> np.ndarray:
    """Values of bfloat16, given as 16 bits each, in float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _to_bfloat16(array: np.ndarray) -> np.ndarray:
    """Round the lower 16 bits of float32 away. A NaN stays NaN: rounding its bits could give an infinity."""
    bits = array.view(np.uint32)
    upper = (bits + (0x7FFF + (bits >> 16 & 1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(array), array, upper.view(np.float32))
