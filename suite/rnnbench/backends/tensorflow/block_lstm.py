"""LSTMs as TensorFlow's operator for the processor, BlockLSTMV2: one operator for all steps of a layer and direction.

It has the gates in the suite's order, i f g o, and multiplies x and h side by side by one matrix in each step.
Source: tensorflow.org/api_docs/python/tf/raw_ops/BlockLSTMV2
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from rnnbench.backends.base import Request
from rnnbench.rnn import Layer, Model


def layers_of_operators(request: Request, x: Any, state: Sequence[Any]) -> tuple[Any, list[Any]]:
    """y [steps, batch, width] and the final flat state, from x [steps, batch, input] and a flat state."""
    model, final = request.stack, list[Any]()
    for index in range(model.layers):
        outputs = []
        for direction in range(model.directions):
            row = index * model.directions + direction
            backward = model.direction == "reverse" or direction == 1
            before = state[2 * row], state[2 * row + 1]
            y, after = _layer(model, request.weights.row(row), tf.reverse(x, [0]) if backward else x, before)
            outputs.append(tf.reverse(y, [0]) if backward else y)
            final += after
        x = outputs[0] if len(outputs) == 1 else tf.concat(outputs, axis=2)
    return x, final


def _layer(model: Model, weights: Layer, x: Any, state: tuple[Any, Any]) -> tuple[Any, tuple[Any, Any]]:
    """One layer in one direction: y, and h and c after the last step."""
    hidden = model.hidden
    bias = np.zeros(4 * hidden, weights.w_ih.dtype)
    if weights.b_ih is not None and weights.b_hh is not None:
        bias = weights.b_ih + weights.b_hh
    peephole = tf.zeros(hidden, x.dtype)
    h, c = state
    all_steps = tf.raw_ops.BlockLSTMV2(
        seq_len_max=tf.constant(x.shape[0], tf.int64),
        x=x,
        h_prev=h,
        cs_prev=c,
        w=tf.constant(np.ascontiguousarray(np.concatenate([weights.w_ih, weights.w_hh], axis=1).T)),
        wci=peephole,
        wcf=peephole,
        wco=peephole,
        b=tf.constant(bias),
        cell_clip=model.cell_clip or 0.0,
        use_peephole=False,
    )
    return all_steps.h, (all_steps.h[-1], all_steps.cs[-1])
