"""The int8 formats: what is quantised, and the dtypes of products. This module imports no NumPy; `quantised.py` does.

The suite quantises weights once, the same for every backend. The formats differ in the other operand of a product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Activations = Literal["", "dynamic", "static"]


@dataclass(frozen=True)
class Int8Form:
    """A number format with int8 weights. x, y and the state are float32."""

    name: str
    compute: str
    """The dtype of both operands of a product."""
    accumulate: str
    activations: Activations = ""
    """How x and h enter a product: unchanged (empty), or quantised to 8 bits by their range in the call (`dynamic`), or
    by a constant range of the program (`static`, `calibration.py`)."""


INT8_FORMS = {
    form.name: form
    for form in (
        Int8Form("int8_weights", "float32", "float32"),
        Int8Form("int8_dynamic", "int8", "int32", "dynamic"),
        Int8Form("int8_static", "int8", "int32", "static"),
    )
}
