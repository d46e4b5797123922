"""A layer of a stack as a layer of another network."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from drawn_layers import drawn

from rnnbench.rnn import Model
from rnnbench.rnn.layers import LayerKind, Recurrent


def elements(kind: LayerKind) -> int:
    return sum(prod(spec.shape) for spec in kind.weight_specs())


def test_a_single_bias_is_the_sum_of_pytorchs_two() -> None:
    torch = pytest.importorskip("torch")
    model = Model(cell="lstm", input=4, hidden=5)
    layer = drawn(Recurrent(model, single_bias=True))
    assert elements(layer.kind) == elements(Recurrent(model)) - 4 * 5
    module = torch.nn.LSTM(4, 5, dtype=torch.float64)
    arrays = {f"{name}_l0": torch.from_numpy(array) for name, array in layer.weights.items()}
    half = arrays["bias_ih_l0"] / 2
    module.load_state_dict({**arrays, "bias_ih_l0": half, "bias_hh_l0": half})
    start = tuple(torch.from_numpy(layer.state[name])[None] for name in "hc")
    with torch.no_grad():
        y, _ = module(torch.from_numpy(layer.x), start)
    np.testing.assert_allclose(layer.run(), y.numpy(), rtol=1e-12, atol=1e-14)
