"""Arrays that a program has not seen: the same numbers in another order, so that calls with them cost the same."""

from __future__ import annotations

import numpy as np

from rnnbench.backends import Arrays


class NewArrays:
    """Draws shuffled copies of arrays. Two draws differ."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def like(self, arrays: Arrays) -> Arrays:
        """A shuffled copy of each array of floats. Arrays of integers, such as lengths, are returned unchanged."""
        return {name: self._shuffled(array) if array.dtype.kind == "f" else array for name, array in arrays.items()}

    def _shuffled(self, array: np.ndarray) -> np.ndarray:
        return self._random.permutation(array.ravel()).reshape(array.shape)
