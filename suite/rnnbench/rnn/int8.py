"""The forms of int8: what is quantised, and what products are computed in. Imports no NumPy; `quantised.py` does.

Weights are quantised once, by the suite, the same for every backend. The forms differ in how a product gets its other
operand.
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
    """The type of both operands of a product."""
    accumulate: str
    activations: Activations = ""
    """How x and h enter a product: as they are, or quantised to 8 bits, by the range that they have in the call
    (`dynamic`) or by one that is a constant of the program (`static`, `calibration.py`)."""


INT8_FORMS = {
    form.name: form
    for form in (
        Int8Form("int8_weights", "float32", "float32"),
        Int8Form("int8_dynamic", "int8", "int32", "dynamic"),
        Int8Form("int8_static", "int8", "int32", "static"),
    )
}
