"""A layer in OpenVINO's sequence operators (LSTMSequence, GRUSequence, RNNSequence), in their layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import openvino.opset13 as opset

from rnnbench.backends.base import Request
from rnnbench.backends.openvino.nodes import Nodes, Value
from rnnbench.rnn import GATES, Cell, Layer, Model

ORDERS: dict[Cell, tuple[int, ...]] = {"lstm": (1, 0, 2, 3), "gru": (1, 0, 2), "rnn": (0,)}
"""The positions of the operators' gates in PyTorch's order: f i c o in i f g o; z r h in r z n."""


def fused_layer(
    nodes: Nodes, request: Request, layers: Sequence[Layer], x: Value, state: Sequence[Value], lengths: Value
) -> tuple[Value, list[Value]]:
    """From x [batch, chunk, input], each state [batch, directions, size] and lengths [batch] to y [batch, directions,
    chunk, size] and the states.

    `layers` are the layer's weights by direction.
    """
    model = request.stack
    weights = [nodes.constant(array) for array in _weights(model, layers)]
    inputs = [x, *state, lengths, *weights, model.hidden, model.direction.upper()]
    activation, clip = model.activation, model.clip or 0.0
    if model.cell == "lstm":
        node = opset.lstm_sequence(*inputs, activations=["sigmoid", activation, activation], clip=clip)
    elif model.cell == "gru":
        node = opset.gru_sequence(
            *inputs, activations=["sigmoid", activation], clip=clip, linear_before_reset=model.reset_after
        )
    else:
        node = opset.rnn_sequence(*inputs, activations=[activation], clip=clip)
    y, *final = nodes.named(node).outputs()
    return y, final


def _weights(model: Model, layers: Sequence[Layer]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """W [directions, gates·hidden, input], R [directions, gates·hidden, hidden], B [directions, biases·hidden]."""

    def gates(rows: np.ndarray) -> np.ndarray:
        parts = np.split(rows, GATES[model.cell])
        return np.concatenate([parts[index] for index in ORDERS[model.cell]])

    return (
        np.stack([gates(layer.w_ih) for layer in layers]),
        np.stack([gates(layer.w_hh) for layer in layers]),
        np.stack([_bias(model, gates, layer) for layer in layers]),
    )


def _bias(model: Model, gates: Callable[[np.ndarray], np.ndarray], layer: Layer) -> np.ndarray:
    """One bias for each gate. A GRU with `reset_after` has two separate biases for its candidate."""
    if layer.b_ih is None or layer.b_hh is None:
        biases = 4 if model.cell == "gru" and model.reset_after else GATES[model.cell]
        return np.zeros(biases * model.hidden, layer.w_ih.dtype)
    both = gates(layer.b_ih + layer.b_hh)
    if model.cell != "gru" or not model.reset_after:
        return both
    candidate = slice(2 * model.hidden, None)
    return np.concatenate([both[: 2 * model.hidden], layer.b_ih[candidate], layer.b_hh[candidate]])
