"""A layer as one ONNX operator (LSTM, GRU, RNN), with the weights in its layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rnnbench.backends.base import Request
from rnnbench.backends.shared.onnx_graphs.emitter import Emitter
from rnnbench.rnn import GATES, Cell, Layer, Model

ORDERS: dict[Cell, tuple[int, ...]] = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}
"""The places of the operators' gates in PyTorch's order: i o f c in i f g o; z r h in r z n."""


def fused_layer(
    e: Emitter, request: Request, layers: Sequence[Layer], x: str, state: Sequence[str], lengths: str = ""
) -> tuple[str, list[str]]:
    """x [chunk, batch, input] to y, [chunk, 1, batch, output] or [chunk, batch, 2, output], and the final state
    [directions, batch, size] each.

    `layers` are a layer's weights by direction; `state` is empty where every call starts from zeros, `lengths`
    [batch] where all rows have all steps.
    """
    model = request.stack
    w, r, b = (e.constant(array) if array is not None else "" for array in onnx_weights(model, layers))
    inputs = [x, w, r, b, lengths, *state]
    y, *final = e.node(model.cell.upper(), inputs, 3 if model.cell == "lstm" else 2, **_attributes(model))
    if model.directions > 1:
        y = e.one("Transpose", y, perm=[0, 2, 1, 3])
    return y, final


def onnx_weights(model: Model, layers: Sequence[Layer]) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """W [directions, gates·hidden, input], R [directions, gates·hidden, hidden], B [directions, 2·gates·hidden]."""
    order = ORDERS[model.cell]

    def gates(rows: np.ndarray) -> np.ndarray:
        parts = np.split(rows, GATES[model.cell])
        return np.concatenate([parts[index] for index in order])

    biases = [
        np.concatenate([gates(layer.b_ih), gates(layer.b_hh)])
        for layer in layers
        if layer.b_ih is not None and layer.b_hh is not None
    ]
    return (
        np.stack([gates(layer.w_ih) for layer in layers]),
        np.stack([gates(layer.w_hh) for layer in layers]),
        np.stack(biases) if biases else None,
    )


def _attributes(model: Model) -> dict[str, Any]:
    attributes: dict[str, Any] = {"hidden_size": model.hidden, "direction": model.direction}
    if model.clip is not None:
        attributes["clip"] = model.clip
    if model.cell == "gru":
        attributes["linear_before_reset"] = int(model.reset_after)
    if model.cell == "rnn" or model.other_activations:
        attributes["activations"] = _activations(model) * model.directions
    return attributes


def _activations(model: Model) -> list[str]:
    """For one direction: of gates, candidate, and output of an LSTM. HardSigmoid has ONNX's default slope, 0.2."""
    gates = {"sigmoid": "Sigmoid", "hard_sigmoid": "HardSigmoid"}
    gate, activation = gates[model.recurrent_activation], model.activation.capitalize()
    return {"lstm": [gate, activation, activation], "gru": [gate, activation], "rnn": [activation]}[model.cell]
