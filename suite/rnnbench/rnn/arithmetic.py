"""The arithmetic of the reference: in float64, rounded to a dtype after every operation, or with random roundings.

Random roundings are Monte Carlo arithmetic (Parker, 1997; Verificarlo, Denis et al., 2016): every result is changed by
a random part of the error that the operation may make. The rows of one batch are then many runs at once. Their spread
is the effect of rounding on this network, whether it is tiny, deep, saturated or chaotic.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Self

import numpy as np

from rnnbench.rnn.dtypes import DTYPES, nearest
from rnnbench.rnn.products import times_transposed
from rnnbench.rnn.quantised import Range
from rnnbench.rnn.weight_forms import WeightForms

Product = Callable[[np.ndarray], np.ndarray]

INT8_STEPS = 127
"""Steps from 0 to the largest magnitude of what is quantised to 8 bits with a sign. An asymmetric range of 255 steps is
no coarser."""
PARTIAL = 3.0
"""By how many roots of its terms' squares a partial sum, of terms in random order, may be beyond the whole sum."""
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
        self._activations = DTYPES[dtype].activations
        self._orders = None if summation is None else np.random.default_rng(summation)
        self._forms = WeightForms()

    @property
    def alike(self) -> tuple[str, str] | None:
        """Arithmetics with an equal value give the same results. None: no other one does, or its class is not this."""
        return (self.dtype, self._activations) if type(self) is Arithmetic and self._orders is None else None

    def over(self, forms: WeightForms) -> Self:
        """The arithmetic, with `forms` of the weights that it multiplies by."""
        other = copy(self)
        other._forms = forms
        return other

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

    def unquantised(self) -> Arithmetic:
        """The arithmetic of a part whose operands enter products as they are."""
        other = copy(self)
        other._activations = ""
        return other

    def by_rows(self, batch: int) -> list[tuple[slice, Arithmetic]]:
        """The parts of a batch, each with the arithmetic for its rows."""
        return [(slice(0, batch), self)]

    def narrowed(self, dtype: str) -> Arithmetic:
        """The arithmetic of a part that computes in a narrower dtype. float64 is exact, and stays so."""
        return Arithmetic(dtype).over(self._forms) if self.dtype == "float32" and dtype != "float32" else self

    def product(self, weight: np.ndarray, operand: Range | None = None) -> Product:
        """x [..., k] ↦ x · weightᵀ [..., n], for a weight [n, k]. With a range `operand`, x saturates at its ends."""
        if self._orders is None:
            rows = self._forms.get(weight, self.dtype, lambda: self.cast(weight))
            return lambda x: self(times_transposed(self._entering(x, operand), rows))
        order = self._orders.permutation(weight.shape[1])
        form = (self.dtype, order.tobytes())
        rows = self._forms.get(weight, form, lambda: np.take(self.cast(weight), order, axis=1))
        return lambda x: self(times_transposed(self._entering(x, operand)[..., order], rows))

    def quantised(self, x: np.ndarray, operand: Range | None) -> np.ndarray:
        """x as a program with quantised arrays has it: saturated in the range `operand`, or in x's own range."""
        return self._entering(x, operand)

    def _entering(self, x: np.ndarray, operand: Range | None) -> np.ndarray:
        """x as it enters a product: within its range, and rounded to 8 bits if activations are quantised."""
        if operand is not None:
            return operand.nearest(x) if self._activations == "static" else operand.clamped(x)
        if self._activations != "dynamic" or not (step := int8_step(x)):
            return x
        quantised: np.ndarray = np.rint(x / step) * step
        return quantised.astype(x.dtype)

    def affine(self, weight: np.ndarray, bias: np.ndarray | None, operand: Range | None = None) -> Product:
        """x [..., k] ↦ x · weightᵀ + bias [..., n]; `operand` as in `product`."""
        product = self.product(weight, operand)
        if bias is None:
            return product
        offset = self.cast(bias)

        def multiply_and_add(x: np.ndarray) -> np.ndarray:
            total = product(x)
            total += offset  # In place: over all steps, this is by far the largest array of a run.
            return self(total)

        return multiply_and_add


class RandomRounding(Arithmetic):
    """float64 with random roundings of `dtype` in all rows of the batch except the first `exact` rows.

    The noisy rows are copies of the exact ones, in turn.

    The error of an operation is uniform in ±u of its result, where u is the unit roundoff. A product sums k terms one
    after the other, and each partial sum is rounded. For terms in random order, the squares of the partial sums add up
    to about k/3 of the squared result plus k/6 of the terms' squares. Where a partial sum may be infinite, the result
    is NaN. Results below the smallest normal number may be flushed to zero. If activations are quantised, the operand
    of a product is off by up to half a step of its 8 bits, and stays within its range.
    """

    def __init__(self, dtype: str, seed: int, exact: int) -> None:
        super().__init__("float64")
        kind = DTYPES[dtype]
        self._activations = kind.activations
        self._unit, self._tiny = kind.unit, kind.tiny
        self._summed = DTYPES[kind.accumulate].unit
        self._most = _largest_sum(dtype)
        self._activation_error = min(ACTIVATION, kind.unit)
        self._exact = exact
        self._generator = np.random.default_rng([seed, 3])

    def narrowed(self, dtype: str) -> Arithmetic:
        kind, other = DTYPES[dtype], copy(self)
        other._unit, other._tiny = max(self._unit, kind.unit), max(self._tiny, kind.tiny)
        other._summed = max(self._summed, DTYPES[kind.accumulate].unit)
        other._most = min(self._most, _largest_sum(dtype))
        return other

    def by_rows(self, batch: int) -> list[tuple[slice, Arithmetic]]:
        noisy = copy(self)
        noisy._exact = 0
        parts: list[tuple[slice, Arithmetic]] = [
            (slice(0, self._exact), Arithmetic().over(self._forms)),
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
        spread, noisy = squares(), np.abs(total[..., self._exact :, :])
        variance = (terms / 6 + 1) * spread + terms / 3 * np.square(noisy)
        largest_partial = np.sqrt(np.minimum(terms * spread, np.square(noisy + PARTIAL * np.sqrt(spread))))
        moved = self(self._perturbed(total, self._summed * np.sqrt(variance)))
        moved[..., self._exact :, :][largest_partial > self._most] = np.nan
        return moved

    def product(self, weight: np.ndarray, operand: Range | None = None) -> Product:
        terms = weight.shape[1]
        rows = self._forms.get(weight, "float64", lambda: weight.astype(np.float64))
        narrow = self._forms.get(weight, "float32", lambda: weight.astype(np.float32))
        squares = self._forms.get(weight, "squares", lambda: np.square(narrow))

        def multiply(x: np.ndarray) -> np.ndarray:
            x = self._entering(x, operand)
            # If the reference itself rounds as much, each row is computed separately, so that both roundings count.
            if not self._exact or self._summed == DTYPES["float64"].unit:
                return self.summed(
                    times_transposed(x, rows), lambda: _in_float32(np.square(x[..., self._exact :, :]), squares), terms
                )
            # A noisy row is an exact row plus its deviation, of which few digits count. So only the exact rows are
            # multiplied by float64 weights.
            exact, noisy = x[..., : self._exact, :], x[..., self._exact :, :]
            of_row = np.resize(np.arange(self._exact), noisy.shape[-2])
            total = times_transposed(exact, rows)
            off = _in_float32(noisy - exact[..., of_row, :], narrow)
            spread = _in_float32(np.square(exact), squares)
            total = np.concatenate([total, total[..., of_row, :] + off], axis=-2)
            return self.summed(total, lambda: spread[..., of_row, :], terms)

        return multiply

    def _entering(self, x: np.ndarray, operand: Range | None) -> np.ndarray:
        noisy = x[..., self._exact :, :]
        if self._activations == "dynamic":
            return self._perturbed(x.copy(), np.full(noisy.shape, int8_step(noisy) / 2))
        if operand is None:
            return x
        if self._activations == "static":
            x = self._perturbed(operand.clamped(x), np.full(noisy.shape, operand.scale / 2))
        return operand.clamped(x)

    def _perturbed(self, value: np.ndarray, bound: np.ndarray) -> np.ndarray:
        value[..., self._exact :, :] += bound * self._generator.uniform(-1.0, 1.0, bound.shape)
        return value


def _largest_sum(dtype: str) -> float:
    """The largest finite number of the dtype in which products of `dtype` are summed."""
    return float(np.finfo(DTYPES[DTYPES[dtype].accumulate].stored).max)


def int8_step(x: np.ndarray) -> float:
    """The step of 8 bits with one scale for all of x, which is the coarsest scale that runtimes use.

    0 if x is zero or infinite.
    """
    largest = float(np.abs(x).max(initial=0.0))
    return largest / INT8_STEPS if np.isfinite(largest) else 0.0


def _in_float32(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """As `times_transposed`, with a float32 weight and an x that may be as small or large as float64 allows."""
    scale = float(np.abs(x).max(initial=0.0)) or 1.0
    return scale * times_transposed((x / scale).astype(np.float32), weight).astype(np.float64)
