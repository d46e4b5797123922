"""The oracle agrees with ONNX Runtime on what torch has no word for: clip, other activations, an early reset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_models import Problem, problem

from rnnbench.rnn import GATES, Model, run_reference

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

ORDERS = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}
"""Where ONNX's gates stand in PyTorch's order: i o f c in i f g o; z r h in r z n."""


def run_onnxruntime(model: Model, data: Problem) -> list[np.ndarray]:
    """y [steps, directions, batch, size] and the final states, from one operator."""
    helper = onnx.helper

    def gates(rows: np.ndarray) -> np.ndarray:
        parts = np.split(rows, GATES[model.cell])
        return np.concatenate([parts[index] for index in ORDERS[model.cell]])

    layers = data.weights.layers
    constants = {
        "w": np.stack([gates(layer.w_ih) for layer in layers]),
        "r": np.stack([gates(layer.w_hh) for layer in layers]),
        "b": np.stack([np.concatenate([gates(layer.b_ih), gates(layer.b_hh)]) for layer in layers]),
    }
    feeds = {"x": data.x, **data.state}
    attributes: dict[str, Any] = {"hidden_size": model.hidden, "direction": model.direction}
    if model.clip is not None:
        attributes["clip"] = model.clip
    if model.other_activations:
        gate = "HardSigmoid" if model.recurrent_activation == "hard_sigmoid" else "Sigmoid"
        own = [model.activation.capitalize()] * (2 if model.cell == "lstm" else 1)
        attributes["activations"] = [gate, *own] * model.directions
    if model.cell == "gru":
        attributes["linear_before_reset"] = int(model.reset_after)
    outputs = ["y", *(f"final_{name}" for name in data.state)]
    node = helper.make_node(model.cell.upper(), ["x", "w", "r", "b", "", *data.state], outputs, **attributes)

    def values(names: dict[str, list[int] | None]) -> list[Any]:
        return [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in names.items()]

    graph = helper.make_graph(
        [node],
        model.cell,
        values({name: list(array.shape) for name, array in feeds.items()}),
        values(dict.fromkeys(outputs)),
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=9)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(outputs, feeds)


@pytest.mark.parametrize("clip", [None, 0.1, 0.4, 1.5])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    "cell",
    [
        {"cell": "lstm"},
        {"cell": "gru"},
        {"cell": "gru", "reset_after": False},
        {"cell": "rnn"},
        {"cell": "lstm", "activation": "relu"},
        {"cell": "lstm", "recurrent_activation": "hard_sigmoid"},
        {"cell": "gru", "activation": "relu", "recurrent_activation": "hard_sigmoid"},
        {"cell": "gru", "reset_after": False, "recurrent_activation": "hard_sigmoid"},
    ],
)
def test_agrees_with_onnxruntime(cell: dict[str, Any], direction: str, clip: float | None) -> None:
    model = Model(input=5, hidden=8, direction=direction, clip=clip, **cell)
    data = problem(model, steps=6, batch=3, seed=3, scale=3, dtype="float32")
    y, *final = run_onnxruntime(model, data)
    found = run_reference(model, data.weights, data.x, data.state)
    np.testing.assert_allclose(found.y, y.transpose(0, 2, 1, 3).reshape(found.y.shape), atol=5e-6)
    for expected, array in zip(final, found.final.values(), strict=True):
        np.testing.assert_allclose(array, expected, atol=5e-6)
