"""The bodies of layers in TensorFlow: the primitives, the network, and the looped and unrolled time steps.

This module imports TensorFlow at the top. Only `traced_function.py` imports it, and only to build.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
import tensorflow as tf

from rnnbench.backends.base import Request
from rnnbench.backends.tensorflow.lowered import TAG
from rnnbench.rnn import LayerBody, LayerSpec, WithOperators, aligned, contraction, run_graph, runs_together, together

States = list[tuple[Any, ...]]
"""The state of every layer and direction, [batch, size] each."""


class Primitives(WithOperators):
    """The primitives of layers. Constants are nodes of the graph, so Grappler and XLA may fold and pack them."""

    def constant(self, array: np.ndarray) -> Any:
        return tf.constant(array)

    def matmul(self, x: Any, weight: Any) -> Any:
        return tf.matmul(x, weight)

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

    def concat(self, parts: Sequence[Any]) -> Any:
        return tf.concat(parts, axis=1)

    def sqrt(self, x: Any) -> Any:
        return tf.sqrt(x)

    def mean(self, x: Any) -> Any:
        return tf.broadcast_to(tf.reduce_mean(x, axis=1, keepdims=True), x.shape)

    def exp(self, x: Any) -> Any:
        return tf.exp(x)

    def log_sigmoid(self, x: Any) -> Any:
        return tf.math.log_sigmoid(x)

    def cumsum(self, x: Any) -> Any:
        return tf.cumsum(x, axis=0)

    def stacked(self, parts: Sequence[Any]) -> Any:
        return tf.concat(parts, axis=0)

    def reshape(self, x: Any, *shape: int) -> Any:
        return tf.reshape(x, shape)

    def einsum(self, equation: str, a: Any, b: Any) -> Any:
        """An elementwise product instead of the matrix product that `tf.einsum` makes of one without a sum."""
        parts = contraction(equation)
        if parts.row_axes:
            return (_with_axes(a, parts.row_axes) @ b)[..., 0, :]
        if not parts.summed:
            return _aligned(a, parts.a, parts.out) * _aligned(b, parts.b, parts.out)
        return tf.einsum(equation, a, b)


class ConvolvingPrimitives(Primitives):
    """For programs that TensorFlow runs. An importer of them reads slices and products instead."""

    def convolution(self, x: Any, weight: np.ndarray, bias: np.ndarray, frequencies: int) -> Any:
        """TensorFlow has the channels last, as x has them."""
        filters, channels, taps, span = weight.shape
        planes = tf.reshape(x, (-1, taps, frequencies, channels))
        kernel = tf.constant(np.ascontiguousarray(weight.transpose(2, 3, 1, 0)))
        y = tf.nn.bias_add(tf.nn.conv2d(planes, kernel, 1, "VALID"), tf.constant(bias))
        return tf.reshape(y, (x.shape[0], (frequencies - span + 1) * filters))


class SummingPrimitives(ConvolvingPrimitives):
    """For programs of TensorFlow's kernels. XLA makes one kernel of several sums."""

    def sum_of_parts(self, x: Any, parts: int) -> Any:
        return tf.reduce_sum(tf.reshape(x, (x.shape[0], parts, x.shape[1] // parts)), 1)


def _aligned(x: Any, letters: str, every: str) -> Any:
    """x with an axis for each letter of `every`."""
    order, new = aligned(letters, every)
    return _with_axes(x if order == tuple(sorted(order)) else tf.transpose(x, order), new)


def _with_axes(x: Any, axes: Sequence[int]) -> Any:
    for axis in axes:
        x = tf.expand_dims(x, axis)
    return x


class Network:
    """All layers of a request's network. `copies` is the number of bodies in one pass of a loop; None for no loop.

    `tags` number the copies of bodies. Networks in one program share them.
    """

    def __init__(self, request: Request, copies: int | None, tags: Iterator[int] | None = None) -> None:
        self._request = request
        self._copies = copies
        self._tags = tags or count()

    def __call__(self, x: Any, states: States, lengths: Any = None) -> tuple[Any, States]:
        """From x [steps, batch, input] to y [steps, batch, width], and every layer's final state.

        `lengths` [batch] is given where the request is ragged. Beyond its length a row of y is zero. A backward
        direction starts at the end of each row.
        """
        network = self._request.model
        padding = None if lengths is None else (tf.range(x.shape[0])[:, None] >= lengths)[..., None]
        final: States = []

        own = {"graph": SummingPrimitives, "xla": ConvolvingPrimitives}
        ops = own.get(self._request.route, Primitives)()

        def run(index: int, x: Any) -> Any:
            body = network.body(ops, self._request.weights, index)
            if runs_together(self._request.strategy.time) and states[index]:
                y, last = self._together(body, network.graph[index], x, states[index])
            else:
                y, last = self._sequence(body, network.graph[index], x, states[index], padding)
            final.append(last)
            return y

        return run_graph(network, x, run, lambda parts: tf.concat(parts, axis=2)), final

    def _sequence(
        self, body: LayerBody[Any], layer: LayerSpec, x: Any, state: tuple[Any, ...], padding: Any
    ) -> tuple[Any, tuple[Any, ...]]:
        """One layer in one direction. All steps are projected at once, outside the loop. Without state that is all.

        `padding` [steps, batch, 1] is true for steps beyond their row's length; None where rows have no lengths.
        """
        steps, batch, width = x.shape
        flat = body.project(tf.reshape(x, (steps * batch, width)))
        projected = tf.reshape(flat, (steps, batch, flat.shape[1]))
        if not state:
            return projected, ()
        if self._copies is None:
            return self._unrolled(body, layer, tf.unstack(projected), state, padding)
        return self._looped(body, layer, projected, state, padding, self._copies)

    def _together(
        self, body: LayerBody[Any], layer: LayerSpec, x: Any, state: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """A layer whose steps run together, over x: one scan of all steps, or a loop over blocks."""
        steps, batch, width = x.shape
        size = self._copies or steps
        projected = body.project(tf.reshape(x, (steps * batch, width)))

        def block(rows: Any, state: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
            with tf.name_scope(f"{TAG}{next(self._tags)}"):
                return together(body, self._request.strategy.time, rows, state, size, batch)

        if size == steps:
            y, after = block(projected, state)
            return tf.reshape(y, (steps, batch, layer.width)), after

        def one_pass(done: Any, outputs: Any, *state: Any) -> tuple[Any, ...]:
            y, after = block(blocks[done], state)
            return (done + 1, outputs.write(done, y), *after)

        blocks = tf.reshape(projected, (steps // size, size * batch, projected.shape[1]))
        outputs = tf.TensorArray(x.dtype, steps // size, element_shape=(size * batch, layer.width))
        _, outputs, *final = tf.while_loop(lambda done, *_: done < steps // size, one_pass, (0, outputs, *state))
        return tf.reshape(outputs.stack(), (steps, batch, layer.width)), tuple(final)

    def _unrolled(
        self, body: LayerBody[Any], layer: LayerSpec, projected: Sequence[Any], state: tuple[Any, ...], padding: Any
    ) -> tuple[Any, tuple[Any, ...]]:
        order = reversed(range(len(projected))) if layer.backward else range(len(projected))
        outputs = list(projected)
        for step in order:
            outputs[step], state = self._copy(body, projected[step], state, padding, step)
        return tf.stack(outputs), state

    def _looped(
        self, body: LayerBody[Any], layer: LayerSpec, projected: Any, state: tuple[Any, ...], padding: Any, copies: int
    ) -> tuple[Any, tuple[Any, ...]]:
        steps = projected.shape[0]
        read = tf.TensorArray(projected.dtype, steps, element_shape=projected.shape[1:]).unstack(projected).read
        outputs = tf.TensorArray(projected.dtype, steps, element_shape=(projected.shape[1], layer.width))

        def one_pass(done: Any, outputs: Any, *state: Any) -> tuple[Any, ...]:
            for copy in range(copies):
                step = steps - 1 - copy - done if layer.backward else done + copy
                y, state = self._copy(body, read(step), state, padding, step)
                outputs = outputs.write(step, y)
            return (done + copies, outputs, *state)

        _, outputs, *final = tf.while_loop(lambda done, *_: done < steps, one_pass, (0, outputs, *state))
        return outputs.stack(), tuple(final)

    def _copy(
        self, body: LayerBody[Any], projected: Any, state: tuple[Any, ...], padding: Any, step: Any
    ) -> tuple[Any, tuple[Any, ...]]:
        """One copy of the body, under a name by which `lowered.py` finds it in the compiled program: y and the state.

        After it, y and the state of rows for which this step is padding are set to zero.
        """
        with tf.name_scope(f"{TAG}{next(self._tags)}"):
            y, after = body.advance(projected, state)
        if padding is None:
            return y, after
        kept = {id(value): tf.where(padding[step], tf.zeros_like(value), value) for value in (*after, y)}
        return kept[id(y)], tuple(kept[id(value)] for value in after)
