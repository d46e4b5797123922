"""A layer as one ONNX operator (LSTM, GRU, RNN), or as ONNX Runtime's DynamicQuantizeLSTM, with the weights in its
layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rnnbench.backends.base import Request
from rnnbench.backends.shared.int8 import without_overflow
from rnnbench.backends.shared.onnx_graphs.emitter import CONTRIB, Emitter
from rnnbench.backends.shared.onnx_graphs.support import QUANTISED_LSTM
from rnnbench.rnn import GATES, Cell, Layer, Model, in_int8

ORDERS: dict[Cell, tuple[int, ...]] = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}
"""The places of the operators' gates in PyTorch's order: i o f c in i f g o; z r h in r z n."""

NO_PEEPHOLES = ""


def fused_layer(
    e: Emitter, request: Request, layers: Sequence[Layer], x: str, state: Sequence[str], lengths: str = ""
) -> tuple[str, list[str]]:
    """x [chunk, batch, input] to y, [chunk, 1, batch, output] or [chunk, batch, 2, output], and the final state
    [directions, batch, size] each.

    `layers` are a layer's weights by direction; `state` is empty where every call starts from zeros, `lengths`
    [batch] where all rows have all steps.
    """
    model = request.stack
    w, r, b = onnx_weights(model, layers)
    bias = "" if b is None else e.constant(b)
    outputs = 3 if model.cell == "lstm" else 2
    if request.precision.activations:
        rest = [bias, lengths, *(state or ("", "")), NO_PEEPHOLES]
        (w8, w_scale), (r8, r_scale) = _in_int8(e, w), _in_int8(e, r)
        inputs = [x, w8, r8, *rest, *w_scale, *r_scale]
        y, *final = e.node(QUANTISED_LSTM, inputs, outputs, domain=CONTRIB, **_attributes(model))
    else:
        inputs = [x, e.constant(w), e.constant(r), bias, lengths, *state]
        y, *final = e.node(model.cell.upper(), inputs, outputs, **_attributes(model))
    if model.directions > 1:
        y = e.one("Transpose", y, perm=[0, 2, 1, 3])
    return y, final


def _in_int8(e: Emitter, weights: np.ndarray) -> tuple[str, tuple[str, str]]:
    """Weights [directions, gates, size] as [directions, size, gates] in 8 bits; scale and zero point by direction."""
    parts = [in_int8(weight) for weight in weights]
    q, zero = without_overflow(np.stack([np.ascontiguousarray(part.q.T) for part in parts]))
    scales = np.array([part.scale for part in parts], np.float32)
    return e.constant(q), (e.constant(scales), e.constant(np.full(len(parts), zero)))


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
