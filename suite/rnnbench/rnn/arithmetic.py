"""The arithmetic of the reference: in float64, rounded to a dtype after every operation, or with random roundings.

Random roundings are Monte Carlo arithmetic (Parker, 1997; Verificarlo, Denis et al., 2016): every result is changed by
a random part of the error that the operation may make. The rows of one batch are then many runs at once. Their spread
is the effect of rounding on this network, whether it is tiny, deep, saturated or chaotic.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np

from rnnbench.rnn.dtypes import DTYPES, nearest

Product = Callable[[np.ndarray], np.ndarray]

ACTIVATION = 2.0**-24
"""Absolute error of sigmoid and tanh, whose range is 1: libraries' float32 approximations are no better near zero."""


class Arithmetic:
    """Every operation rounded to `dtype`. `summation` seeds a permutation of each product's reduction axis.

    float16 and bfloat16 are computed in float32, which also sums their products, and rounded after each operation.
    """

    def __init__(self, dtype: str = "float64", summation: int | None = None) -> None:
        self.stored = np.dtype(DTYPES[dtype].stored)
        self.carrier = np.dtype("float64" if dtype == "float64" else "float32")
        self.dtype = dtype
        self._narrow = dtype in ("float16", "bfloat16")
        self._orders = None if summation is None else np.random.default_rng(summation)

    def cast(self, array: np.ndarray) -> np.ndarray:
        """An input, weight or state, rounded to the dtype, in the type that the arithmetic computes with."""
        return nearest(array, self.dtype).astype(self.carrier, copy=False)

    def __call__(self, value: np.ndarray) -> np.ndarray:
        """The result of one operation, rounded. May overwrite `value`."""
        return self.cast(value) if self._narrow else value

    def activated(self, value: np.ndarray) -> np.ndarray:
        """The result of a sigmoid or a tanh, rounded. May overwrite `value`."""
        return self(value)

    def summed(self, total: np.ndarray, squares: Callable[[], np.ndarray], terms: int) -> np.ndarray:
        """A sum of `terms` products, rounded; `squares` gives the sum of their squares. May overwrite `total`."""
        return self(total)

    def by_rows(self, batch: int) -> list[tuple[slice, Arithmetic]]:
        """Rows of a batch, each with the arithmetic that holds for whatever is computed of them."""
        return [(slice(0, batch), self)]

    def product(self, weight: np.ndarray) -> Product:
        """x [..., k] ↦ x · weightᵀ [..., n], for a weight [n, k]."""
        columns = np.ascontiguousarray(self.cast(weight).T)
        if self._orders is None:
            return lambda x: self(_times(x, columns))
        order = self._orders.permutation(len(columns))
        columns = columns[order]
        return lambda x: self(_times(x[..., order], columns))

    def affine(self, weight: np.ndarray, bias: np.ndarray | None) -> Product:
        """x [..., k] ↦ x · weightᵀ + bias [..., n]."""
        product = self.product(weight)
        if bias is None:
            return product
        offset = self.cast(bias)
        return lambda x: self(product(x) + offset)


class RandomRounding(Arithmetic):
    """float64 with random roundings of `dtype`, in all rows of the batch except the first `exact` rows.

    The error of an operation is uniform in ±u of its result, where u is the unit roundoff. A product sums k terms one
    after the other, and each partial sum is rounded. For terms in a random order, the squares of the partial sums add
    up to about k/3 of the squared result plus k/6 of the terms' squares. Results below the smallest normal number may
    be flushed to zero.
    """

    def __init__(self, dtype: str, seed: int, exact: int) -> None:
        super().__init__("float64")
        kind = DTYPES[dtype]
        self._unit, self._tiny = kind.unit, kind.tiny
        self._summed = DTYPES[kind.accumulate].unit
        self._activation_error = min(ACTIVATION, kind.unit)
        self._exact = exact
        self._generator = np.random.default_rng([seed, 3])

    def by_rows(self, batch: int) -> list[tuple[slice, Arithmetic]]:
        noisy = copy(self)
        noisy._exact = 0
        parts: list[tuple[slice, Arithmetic]] = [
            (slice(0, self._exact), Arithmetic()),
            (slice(self._exact, batch), noisy),
        ]
        return [(rows, arithmetic) for rows, arithmetic in parts if rows.start < rows.stop]

    def __call__(self, value: np.ndarray) -> np.ndarray:
        size = np.abs(value[..., self._exact :, :])
        return self._perturbed(value, np.where(size < self._tiny, size, self._unit * size))

    def activated(self, value: np.ndarray) -> np.ndarray:
        return self._perturbed(
            value, np.maximum(self._unit * np.abs(value[..., self._exact :, :]), self._activation_error)
        )

    def summed(self, total: np.ndarray, squares: Callable[[], np.ndarray], terms: int) -> np.ndarray:
        variance = (terms / 6 + 1) * squares() + terms / 3 * np.square(total[..., self._exact :, :])
        return self(self._perturbed(total, self._summed * np.sqrt(variance)))

    def product(self, weight: np.ndarray) -> Product:
        columns = np.ascontiguousarray(weight.T.astype(np.float64))
        squares = np.square(columns).astype(np.float32)
        terms = len(columns)

        def multiply(x: np.ndarray) -> np.ndarray:
            total = _times(x, columns)
            noisy = x[..., self._exact :, :]
            scale = float(np.abs(noisy).max(initial=0.0)) or 1.0
            spread = scale * scale * _times(np.square(noisy / scale).astype(np.float32), squares).astype(np.float64)
            return self.summed(total, lambda: spread, terms)

        return multiply

    def _perturbed(self, value: np.ndarray, bound: np.ndarray) -> np.ndarray:
        value[..., self._exact :, :] += bound * self._generator.uniform(-1.0, 1.0, bound.shape)
        return value


def _times(x: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """x [..., k] · columns [k, n] as one product of matrices: NumPy would call BLAS for each matrix of a stack."""
    product: np.ndarray = (x.reshape(-1, x.shape[-1]) @ columns).reshape(*x.shape[:-1], -1)
    return product
