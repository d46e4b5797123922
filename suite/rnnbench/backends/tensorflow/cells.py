"""The shared cells in TensorFlow: the primitives, the layers, and the looped and unrolled time steps.

This module imports TensorFlow at the top. Only `traced_function.py` imports it, and only to build.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from rnnbench.backends.base import Request
from rnnbench.backends.tensorflow.lowered import TAG
from rnnbench.rnn import LayerBody, cell_body

Rows = list[tuple[Any, ...]]
"""The state: h, or h and c, of every layer and direction, [batch, size] each."""


class Primitives:
    """The primitives of the cells. Constants are nodes of the graph, so Grappler and XLA may fold and pack them."""

    def constant(self, array: np.ndarray) -> Any:
        return tf.constant(array)

    def matmul(self, x: Any, weight: Any) -> Any:
        return tf.matmul(x, weight)

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def sub(self, a: Any, b: Any) -> Any:
        return a - b

    def mul(self, a: Any, b: Any) -> Any:
        return a * b

    def sigmoid(self, x: Any) -> Any:
        return tf.sigmoid(x)

    def tanh(self, x: Any) -> Any:
        return tf.tanh(x)

    def relu(self, x: Any) -> Any:
        return tf.nn.relu(x)

    def clip(self, x: Any, bound: float) -> Any:
        return tf.clip_by_value(x, -bound, bound)

    def split(self, x: Any, parts: int) -> list[Any]:
        return list(tf.split(x, parts, axis=1))


class Network:
    """All layers of a request's model. `copies` is the number of cells in one pass of the loop; None for no loop."""

    def __init__(self, request: Request, copies: int | None) -> None:
        self._request = request
        self._copies = copies
        self._tags = 0

    def __call__(self, x: Any, rows: Rows, lengths: Any = None) -> tuple[Any, Rows]:
        """From x [steps, batch, input] to y [steps, batch, width] of the last layer, and every layer's final state.

        `lengths` [batch] is given where the request is ragged. Beyond its length a row of y is zero. A backward
        direction starts at the end of each row.
        """
        model = self._request.stack
        padding = None if lengths is None else (tf.range(x.shape[0])[:, None] >= lengths)[..., None]
        final = []
        for layer in range(model.layers):
            outputs = []
            for direction in range(model.directions):
                row = layer * model.directions + direction
                body = cell_body(Primitives(), model, self._request.weights.row(row))
                y, last = self._sequence(body, x, rows[row], model.direction == "reverse" or direction == 1, padding)
                outputs.append(y)
                final.append(last)
            x = outputs[0] if len(outputs) == 1 else tf.concat(outputs, axis=2)
        return x, final

    def _sequence(
        self, body: LayerBody[Any], x: Any, state: tuple[Any, ...], backward: bool, padding: Any
    ) -> tuple[Any, tuple[Any, ...]]:
        """One layer in one direction. All steps are projected at once, outside the loop.

        `padding` [steps, batch, 1] is true for steps beyond their row's length; None where rows have no lengths.
        """
        steps, batch, width = x.shape
        flat = body.project(tf.reshape(x, (steps * batch, width)))
        projected = tf.reshape(flat, (steps, batch, flat.shape[1]))
        if self._copies is None:
            return self._unrolled(body, tf.unstack(projected), state, backward, padding)
        return self._looped(body, projected, state, backward, padding, self._copies)

    def _unrolled(
        self, body: LayerBody[Any], projected: Sequence[Any], state: tuple[Any, ...], backward: bool, padding: Any
    ) -> tuple[Any, tuple[Any, ...]]:
        order = reversed(range(len(projected))) if backward else range(len(projected))
        outputs = list(projected)
        for step in order:
            state = self._copy(body, projected[step], state, padding, step)
            outputs[step] = state[0]
        return tf.stack(outputs), state

    def _looped(
        self, body: LayerBody[Any], projected: Any, state: tuple[Any, ...], backward: bool, padding: Any, copies: int
    ) -> tuple[Any, tuple[Any, ...]]:
        steps = projected.shape[0]
        read = tf.TensorArray(projected.dtype, steps, element_shape=projected.shape[1:]).unstack(projected).read
        outputs = tf.TensorArray(projected.dtype, steps, element_shape=state[0].shape)

        def one_pass(done: Any, outputs: Any, *state: Any) -> tuple[Any, ...]:
            for copy in range(copies):
                step = steps - 1 - copy - done if backward else done + copy
                state = self._copy(body, read(step), state, padding, step)
                outputs = outputs.write(step, state[0])
            return (done + copies, outputs, *state)

        _, outputs, *final = tf.while_loop(lambda done, *_: done < steps, one_pass, (0, outputs, *state))
        return outputs.stack(), tuple(final)

    def _copy(
        self, body: LayerBody[Any], projected: Any, state: tuple[Any, ...], padding: Any, step: Any
    ) -> tuple[Any, ...]:
        """One copy of the cell, under a name by which `lowered.py` finds it in the compiled program.

        After it, the state of rows for which this step is padding is set to zero.
        """
        with tf.name_scope(f"{TAG}{self._tags}"):
            self._tags += 1
            _, state = body.advance(projected, state)
        if padding is None:
            return state
        return tuple(tf.where(padding[step], tf.zeros_like(value), value) for value in state)
