"""The LSTM with peepholes and a projection, against ONNX and against PyTorch, which have one of them each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn_layers import Drawn, drawn

from rnnbench.rnn.layers import PeepholeLstm

SIZE = 5


def of_onnx(rows: np.ndarray) -> np.ndarray:
    """i f g o as ONNX's i o f c."""
    i, f, g, o = np.split(rows, 4)
    return np.concatenate([i, o, f, g])[None]


def run_onnx(layer: Drawn) -> np.ndarray:
    helper = pytest.importorskip("onnx.helper")
    from onnx.reference import ReferenceEvaluator

    weights, state = layer.weights, layer.state
    feed = {
        "X": layer.x,
        "W": of_onnx(weights["weight_ih"]),
        "R": of_onnx(weights["weight_hh"]),
        "B": np.concatenate([of_onnx(weights["bias"]), np.zeros((1, 4 * SIZE))], axis=1),
        "H": state["h"][None],
        "C": state["c"][None],
        "P": np.concatenate([weights[f"peephole_{gate}"] for gate in "iof"])[None],
    }
    double = 11
    node = helper.make_node("LSTM", ["X", "W", "R", "B", "", "H", "C", "P"], ["Y"], hidden_size=SIZE)
    inputs = [helper.make_tensor_value_info(name, double, array.shape) for name, array in feed.items()]
    graph = helper.make_graph([node], "lstm", inputs, [helper.make_tensor_value_info("Y", double, None)])
    (y,) = ReferenceEvaluator(helper.make_model(graph)).run(None, feed)
    return np.asarray(y)[:, 0]


def test_the_gates_see_the_cell_state_as_in_onnx() -> None:
    layer = drawn(PeepholeLstm(4, SIZE, SIZE))
    layer.weights["weight_hr"] = np.eye(SIZE)
    np.testing.assert_allclose(layer.run(), run_onnx(layer), rtol=1e-12, atol=1e-14)


def test_without_peepholes_it_is_pytorchs_lstm_with_a_projection() -> None:
    torch = pytest.importorskip("torch")
    layer = drawn(PeepholeLstm(4, SIZE, 3))
    weights = {name: torch.from_numpy(array) for name, array in layer.weights.items()}
    for gate in "ifo":
        layer.weights[f"peephole_{gate}"][:] = 0
    module = torch.nn.LSTM(4, SIZE, proj_size=3, dtype=torch.float64)
    module.load_state_dict(
        {
            "weight_ih_l0": weights["weight_ih"],
            "weight_hh_l0": weights["weight_hh"],
            "bias_ih_l0": weights["bias"],
            "bias_hh_l0": torch.zeros_like(weights["bias"]),
            "weight_hr_l0": weights["weight_hr"],
        }
    )
    start = tuple(torch.from_numpy(layer.state[name])[None] for name in "hc")
    with torch.no_grad():
        y, (_, c) = module(torch.from_numpy(layer.x), start)
    np.testing.assert_allclose(layer.run(), y.numpy(), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(layer.final()["c"], c[0].numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("gate", "ifo")
def test_every_peephole_matters(gate: str) -> None:
    layer = drawn(PeepholeLstm(4, SIZE, 3))
    without = replace(layer, weights={**layer.weights, f"peephole_{gate}": np.zeros(SIZE)})
    assert np.abs(layer.run() - without.run()).max() > 1e-4
