"""The cell's primitives over NumPy. Each is performed once and recorded with its output array, to be called again.

This is what a careful user writes by hand with `out=`: after the first pass no call allocates and no slice is taken. A
step takes a tenth (LSTM with 128 hidden units) to a quarter (32 units) less time than with functions that return new
arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from rnnbench.rnn import WindowSizes, aligned, contraction, permutation

Call = partial[Any]

OUT_BY_NAME = (np.maximum, np.minimum)
"""Functions for which a positional output is deprecated. For the others it is positional, which saves 0.2 µs a call."""


class Recorder:
    """Primitives over arrays of one dtype. A recorded call reads the memory of its operands and writes its output's."""

    def __init__(self, dtype: np.dtype[np.generic]) -> None:
        self._scalar = dtype.type
        self._calls: list[Call] = []

    def take(self) -> list[Call]:
        """The calls recorded since the last take."""
        calls, self._calls = self._calls, []
        return calls

    def constant(self, array: np.ndarray) -> np.ndarray:
        """A contiguous copy: with a transposed view, as in `x @ w.T`, BLAS's products take 1.2 to 6 times as long."""
        return np.ascontiguousarray(array)

    def matmul(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return self._record(np.dot, x, weight)

    def add(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._record(np.add, a, b)

    def sub(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._record(np.subtract, a, b)

    def mul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._record(np.multiply, a, b)

    def sigmoid(self, x: np.ndarray) -> np.ndarray:
        """1/(1 + e⁻ˣ). It is exact at both ends: where e⁻ˣ overflows to infinity, the quotient is 0."""
        y = self._record(np.negative, x)
        self._record(np.exp, y, out=y)
        self._record(np.add, y, self._scalar(1), out=y)
        return self._record(np.reciprocal, y, out=y)

    def tanh(self, x: np.ndarray) -> np.ndarray:
        return self._record(np.tanh, x)

    def relu(self, x: np.ndarray) -> np.ndarray:
        return self._record(np.maximum, x, self._scalar(0))

    def clip(self, x: np.ndarray, bound: float) -> np.ndarray:
        """Two ufuncs instead of `np.clip`, which is a Python function around a third one."""
        y = self._record(np.minimum, x, self._scalar(bound))
        return self._record(np.maximum, y, self._scalar(-bound), out=y)

    def split(self, x: np.ndarray, parts: int) -> list[np.ndarray]:
        return np.split(x, parts, axis=1)

    def concat(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        result = np.concatenate(parts, axis=1)
        self._calls.append(partial(np.concatenate, parts, 1, result))
        return result

    def columns(self, x: np.ndarray, start: int, stop: int) -> np.ndarray:
        """A view, of which no call is needed."""
        return x[:, start:stop]

    def div(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._record(np.divide, a, b)

    def sqrt(self, x: np.ndarray) -> np.ndarray:
        return self._record(np.sqrt, x)

    def mean(self, x: np.ndarray) -> np.ndarray:
        """Two ufuncs instead of `np.mean`, which is a Python function around them. Columns are views of one."""
        total = np.add.reduce(x, axis=1, keepdims=True)
        self._calls.append(partial(np.add.reduce, x, 1, None, total, True))
        return np.broadcast_to(self._record(np.multiply, total, self._scalar(1 / x.shape[1]), out=total), x.shape)

    def exp(self, x: np.ndarray) -> np.ndarray:
        return self._record(np.exp, x)

    def log_sigmoid(self, x: np.ndarray) -> np.ndarray:
        """−log(e⁰ + e⁻ˣ), of which `logaddexp` computes no exponential that could overflow."""
        y = self._record(np.negative, x)
        self._record(np.logaddexp, y, self._scalar(0), out=y)
        return self._record(np.negative, y, out=y)

    def cumsum(self, x: np.ndarray) -> np.ndarray:
        result = np.cumsum(x, 0)
        self._calls.append(partial(np.add.accumulate, x, 0, None, result))
        return result

    def rows(self, x: np.ndarray, start: int, stop: int) -> np.ndarray:
        """A view, of which no call is needed."""
        return x[start:stop]

    def stacked(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        result = np.concatenate(parts)
        self._calls.append(partial(np.concatenate, parts, 0, result))
        return result

    def reshape(self, x: np.ndarray, *shape: int) -> np.ndarray:
        """A view where there is one, and else a copy."""
        result = x.reshape(shape)
        if not np.shares_memory(result, x):
            self._calls.append(partial(np.copyto, result.reshape(x.shape), x))
        return result

    def einsum(self, equation: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """A product of matrices, of views. Where there is none, a product of elements and a sum: `np.einsum` plans its
        loops anew in each call."""
        parts = contraction(equation)
        if parts.is_product:
            left, right, both = parts.product_letters
            matrices = a.transpose(permutation(parts.a, left)), b.transpose(permutation(parts.b, right))
            return self._record(np.matmul, *matrices).transpose(permutation(both, parts.out))
        if axes := parts.row_axes:
            return self._record(np.matmul, np.expand_dims(a, axes), b)[..., 0, :]
        product = self._record(np.multiply, *(_aligned(*pair, parts.every) for pair in ((a, parts.a), (b, parts.b))))
        if not parts.summed:
            return product
        axes = tuple(range(len(parts.out), len(parts.every)))
        result: np.ndarray = np.add.reduce(product, axes)
        self._calls.append(partial(np.add.reduce, product, axes, None, result))
        return result

    def windows(self, x: np.ndarray, sizes: WindowSizes) -> np.ndarray:
        planes = x.reshape(len(x), sizes.taps, sizes.frequencies, sizes.channels)
        seen = np.lib.stride_tricks.sliding_window_view(planes, sizes.span, 2)
        return self.reshape(seen.transpose(0, 2, 1, 4, 3), -1, sizes.seen)

    def sum_of_parts(self, x: np.ndarray, parts: int) -> np.ndarray:
        by_part = x.reshape(len(x), parts, -1)
        result: np.ndarray = np.add.reduce(by_part, 1)
        self._calls.append(partial(np.add.reduce, by_part, 1, None, result))
        return result

    def _record(
        self, function: Callable[..., np.ndarray], *operands: object, out: np.ndarray | None = None
    ) -> np.ndarray:
        result = function(*operands, out=out)
        if function in OUT_BY_NAME:
            self._calls.append(partial(function, *operands, out=result))
        else:
            self._calls.append(partial(function, *operands, result))
        return result


def _aligned(x: np.ndarray, letters: str, every: str) -> np.ndarray:
    """A view of x with an axis for each letter of `every`."""
    order, new = aligned(letters, every)
    return np.expand_dims(x.transpose(order), new)
