"""Normalisation of each step, against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_layers import drawn

from rnnbench.rnn.layers import InstantNorm


def test_it_computes_what_pytorchs_layer_norm_does() -> None:
    torch = pytest.importorskip("torch")
    layer = drawn(InstantNorm(6))
    gamma, beta = (torch.from_numpy(layer.weights[name]) for name in ("gamma", "beta"))
    y = torch.nn.functional.layer_norm(torch.from_numpy(layer.x), (6,), gamma, beta, eps=1e-7)
    np.testing.assert_allclose(layer.run(), y.numpy(), rtol=1e-12, atol=1e-12)


def test_steps_of_one_value_are_beta() -> None:
    layer = drawn(InstantNorm(6))
    layer.x[:] = 3
    np.testing.assert_array_equal(layer.run(), np.broadcast_to(layer.weights["beta"], layer.x.shape))
