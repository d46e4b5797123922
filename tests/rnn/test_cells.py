"""The shared cell, over NumPy primitives, computes what the oracle computes, for every variant of the model."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import Problem, models, problem, with_other_activations

from rnnbench.rnn import Model, cell_body, run_reference


class Plain:
    """The vocabulary, as its docstrings define it, and no more."""

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
        return 1 / (1 + np.exp(-x))

    def tanh(self, x: np.ndarray) -> np.ndarray:
        return np.tanh(x)

    def relu(self, x: np.ndarray) -> np.ndarray:
        return np.maximum(x, 0)

    def clip(self, x: np.ndarray, bound: float) -> np.ndarray:
        return np.clip(x, -bound, bound)

    def split(self, x: np.ndarray, parts: int) -> list[np.ndarray]:
        return np.split(x, parts, axis=1)


def run_cells(model: Model, data: Problem) -> np.ndarray:
    layer_x = data.x
    for number in range(model.layers):
        outputs = []
        for direction in range(model.directions):
            row = number * model.directions + direction
            backward = direction == 1 or model.direction == "reverse"
            body = cell_body(Plain(), model, data.weights.row(row))
            state = tuple(array[row] for array in data.state.values())
            history = []
            for step in layer_x[::-1] if backward else layer_x:
                state = body.advance(body.project(step), state)
                history.append(state[0])
            outputs.append(np.stack(history[::-1] if backward else history))
        layer_x = np.concatenate(outputs, axis=2)
    return layer_x


@settings(max_examples=200)
@given(
    model=models() | with_other_activations(),
    steps=st.integers(1, 6),
    batch=st.integers(1, 3),
    seed=st.integers(0, 99),
    scale=st.sampled_from([1.0, 4.0]),
)
def test_agrees_with_the_oracle(model: Model, steps: int, batch: int, seed: int, scale: float) -> None:
    data = problem(model, steps, batch, seed, scale)
    expected = run_reference(model, data.weights, data.x, data.state).y
    np.testing.assert_allclose(run_cells(model, data), expected, rtol=1e-10, atol=1e-12)
