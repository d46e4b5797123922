"""The forms of weights that the reference multiplies by: in float64, squared, or with their columns in another order.

Every run of the reference needs the same ones. For a network of 2,048 units, making them takes as long as its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

KEPT_BYTES = 512 << 20
"""The most bytes of forms that are kept: all six of an LSTM of 2,048 units. Others are made anew for each run."""


class WeightForms:
    """Forms of read-only arrays, each made once. An array that can be written to may have changed the next time."""

    def __init__(self) -> None:
        self._forms: dict[Hashable, tuple[np.ndarray, np.ndarray]] = {}
        """By weight and form: the weight, so that its address stays its own, and the form."""
        self._bytes = 0

    def get(self, weight: np.ndarray, form: Hashable, make: Callable[[], np.ndarray]) -> np.ndarray:
        """What `make` returns. A `form` of a weight has one name."""
        key = (weight.ctypes.data, weight.shape, weight.strides, weight.dtype, form)
        if key in self._forms:
            return self._forms[key][1]
        new_form = make()
        if not weight.flags.writeable and self._bytes + new_form.nbytes <= KEPT_BYTES:
            self._forms[key] = weight, new_form
            self._bytes += new_form.nbytes
        return new_form
