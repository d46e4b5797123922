"""The vocabulary of primitives over NumPy, as its docstrings define it, and no more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Plain:
    """Primitives that return new arrays."""

    def constant(self, array: np.ndarray) -> np.ndarray:
        assert array.ndim in (1, 2)
        return array

    def matmul(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        assert x.ndim == weight.ndim == 2
        return x @ weight

    def add(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        assert b.shape in (a.shape, a.shape[1:])
        return a + b

    def sub(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        assert a.shape == b.shape
        return a - b

    def mul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        assert b.shape in (a.shape, a.shape[1:])
        return a * b

    def sigmoid(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # far below zero the exponential is infinite, and the result 0
            return 1 / (1 + np.exp(-x))

    def tanh(self, x: np.ndarray) -> np.ndarray:
        return np.tanh(x)

    def relu(self, x: np.ndarray) -> np.ndarray:
        return np.maximum(x, 0)

    def clip(self, x: np.ndarray, bound: float) -> np.ndarray:
        return np.clip(x, -bound, bound)

    def split(self, x: np.ndarray, parts: int) -> list[np.ndarray]:
        return np.split(x, parts, axis=1)

    def concat(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate(parts, axis=1)

    def columns(self, x: np.ndarray, start: int, stop: int) -> np.ndarray:
        assert 0 <= start < stop <= x.shape[1]
        return x[:, start:stop]

    def div(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        assert a.shape == b.shape
        return a / b

    def sqrt(self, x: np.ndarray) -> np.ndarray:
        return np.sqrt(x)

    def mean(self, x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(x.mean(axis=1, keepdims=True), x.shape)

    def exp(self, x: np.ndarray) -> np.ndarray:
        return np.exp(x)

    def log_sigmoid(self, x: np.ndarray) -> np.ndarray:
        return -np.logaddexp(-x, 0)

    def cumsum(self, x: np.ndarray) -> np.ndarray:
        return np.cumsum(x, axis=0)

    def rows(self, x: np.ndarray, start: int, stop: int) -> np.ndarray:
        assert 0 <= start < stop <= len(x)
        return x[start:stop]

    def stacked(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate(parts)

    def reshape(self, x: np.ndarray, *shape: int) -> np.ndarray:
        return x.reshape(shape)

    def einsum(self, equation: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.einsum(equation, a, b)
