"""A compound network as one function: its parts, and its loop as TensorFlow's `While`.

This module imports TensorFlow at the top. Only `traced_function.py` imports it, and only to build.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import tensorflow as tf

from rnnbench.backends.base import Request
from rnnbench.backends.shared import requests_of_parts
from rnnbench.backends.tensorflow.cells import Network
from rnnbench.rnn import state_by_array, state_by_layer


class TensorflowArrays:
    """The functions of NumPy that the loop of a compound network calls, over tensors."""

    int32 = tf.int32
    where = staticmethod(tf.where)
    concat = staticmethod(tf.concat)
    arange = staticmethod(tf.range)
    sum = staticmethod(tf.reduce_sum)
    reshape = staticmethod(tf.reshape)
    zeros = staticmethod(tf.zeros)
    ones = staticmethod(tf.ones)

    @staticmethod
    def asarray(value: Any, dtype: Any = None) -> Any:
        return tf.convert_to_tensor(value) if dtype is None else tf.cast(value, dtype)

    @staticmethod
    def full(shape: Sequence[int], value: float, dtype: Any) -> Any:
        return tf.fill(shape, tf.cast(value, dtype))

    @staticmethod
    def argmax(x: Any, axis: int) -> Any:
        return tf.argmax(x, axis, output_type=tf.int32)

    @staticmethod
    def swapaxes(x: Any, one: int, other: int) -> Any:
        order = list(range(x.shape.rank))
        order[one], order[other] = other, one
        return tf.transpose(x, order)


class TensorflowLoop:
    """What the loop of a compound network is written over (`rnn.LoopPrimitives`)."""

    arrays: Any = TensorflowArrays

    def __init__(self, request: Request) -> None:
        tags = count()
        self._requests = requests_of_parts(request)
        self._networks = {name: Network(part, part.strategy.copies, tags) for name, part in self._requests.items()}

    def run(self, part: str, x: Any, state: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        model = self._requests[part].model
        rows = {name: tf.unstack(array) for name, array in state.items()}
        y, final = self._networks[part](x, state_by_layer(model, rows))
        return y, {name: tf.stack(arrays) for name, arrays in state_by_array(model, final).items()}

    def each(self, body: Callable[[Any, Any], tuple[Any, Any]], carried: Any, x: Any) -> tuple[Any, Any]:
        """The results of a body are one array of one shape."""
        number = x.shape[0]

        def a_pass(done: Any, results: Any, carried: Any) -> tuple[Any, Any, Any]:
            carried, result = body(carried, x[done])
            return done + 1, results.write(done, result), carried

        results = tf.TensorArray(x.dtype, number)
        _, results, carried = tf.while_loop(lambda done, *_: done < number, a_pass, (0, results, carried))
        return carried, results.stack()

    def repeat(self, going: Callable[[Any], Any], body: Callable[[Any], Any], carried: Any) -> Any:
        (carried,) = tf.while_loop(going, lambda kept: (body(kept),), (carried,))
        return carried
