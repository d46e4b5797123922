"""RNN-T against PyTorch's modules, of which its source is made, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from torch_lstm import lstm

from rnnbench.rnn import draw_inputs, draw_weights, run_reference
from rnnbench.rnn.networks.rnnt import SYMBOLS, RnntDecoder, RnntEncoder1

torch: Any = pytest.importorskip("torch")


def test_an_encoder_is_pytorchs_lstm_of_several_layers() -> None:
    network = RnntEncoder1(input=4, hidden=5, layers=3)
    weights, x = draw_weights(network, 0, "float64"), draw_inputs(network, 6, 2, 1, "float64")
    with torch.no_grad():
        expected, _ = lstm(weights, 4, 5, 3)(torch.tensor(x))
    np.testing.assert_allclose(run_reference(network, weights, x).y, expected.numpy(), rtol=1e-10, atol=1e-12)


def test_the_decoder_embeds_symbols_and_joins_them_with_the_sound() -> None:
    network = RnntDecoder(input=SYMBOLS + 6, hidden=5)
    weights, sound = draw_weights(network, 0, "float64"), np.random.default_rng(1).standard_normal((7, 2, 6))
    symbols = np.random.default_rng(2).integers(0, SYMBOLS, (7, 2))
    arrays = {name: torch.tensor(array) for name, array in weights.arrays.items()}
    with torch.no_grad():
        embedded = torch.nn.functional.embedding(torch.tensor(symbols), arrays["embedding_weight"].T)
        said, _ = lstm(weights, 5, 5, 2)(embedded)
        joined = torch.cat([torch.tensor(sound), said], dim=2)
        joint = torch.nn.functional.linear(joined, arrays["joint_weight"], arrays["joint_bias"]).relu()
        expected = torch.nn.functional.linear(joint, arrays["logits_weight"], arrays["logits_bias"])
    x = np.concatenate([np.eye(SYMBOLS)[symbols], sound], axis=2)
    np.testing.assert_allclose(run_reference(network, weights, x).y, expected.numpy(), rtol=1e-10, atol=1e-12)
