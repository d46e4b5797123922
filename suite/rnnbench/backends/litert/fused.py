"""LSTMs that the converter turns into LiteRT's operator UNIDIRECTIONAL_SEQUENCE_LSTM.

The converter recognises them by an attribute that the LSTM layers of Keras 2 set on a function with six arguments and
five results. The layers of Keras 3 do not set it, and are converted to a loop. The function's body is not used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from rnnbench.backends.base import Request
from rnnbench.backends.tensorflow.traced_function import traced, x_spec
from rnnbench.rnn import Layer


def module(request: Request) -> Any:
    """`step(x) -> (y,)`, from zeros. After the conversion, the operator keeps its state between calls."""

    def step(x: Any) -> tuple[Any]:
        for layer in range(request.stack.layers):
            outputs = []
            for direction in range(request.stack.directions):
                weights = request.weights.row(layer * request.stack.directions + direction)
                backward = request.stack.direction == "reverse" or direction == 1
                y = _layer(request, weights, tf.reverse(x, [0]) if backward else x)
                outputs.append(tf.reverse(y, [0]) if backward else y)
            x = outputs[0] if len(outputs) == 1 else tf.concat(outputs, axis=2)
        return (x,)

    return traced(tf.Module(), step, [x_spec(request)], jit=False)


def _layer(request: Request, weights: Layer, x: Any) -> Any:
    """y [steps, batch, hidden] of one layer in one direction over x [steps, batch, input]."""
    hidden = request.stack.hidden
    bias = np.zeros(4 * hidden, np.float32)
    if weights.b_ih is not None and weights.b_hh is not None:
        bias = weights.b_ih + weights.b_hh
    zeros = tf.zeros((request.batch, hidden))
    arguments = [x, zeros, zeros, *map(tf.constant, (weights.w_ih.T, weights.w_hh.T, bias))]
    attributes = {"api_implements": "lstm_rnnbench", "time_major": True, "go_backwards": False}
    function = tf.function(
        _replaced_by_the_converter,
        input_signature=[tf.TensorSpec(argument.shape, argument.dtype) for argument in arguments],
        experimental_attributes={**attributes, "api_preferred_device": "CPU"},
        autograph=False,
    )
    return function(*arguments)[1]


def _replaced_by_the_converter(
    x: Any, h: Any, c: Any, kernel: Any, recurrent_kernel: Any, bias: Any
) -> tuple[Any, ...]:
    """The arguments and results that the converter expects: the last y, all y, h, c, and a number."""
    return h, tf.zeros((x.shape[0], *h.shape)), h, c, tf.constant(0.0)
