"""Silero VAD against its source, with PyTorch's layers in float64 in place of tinygrad's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rnnbench.rnn import draw_inputs, draw_weights, run_reference
from rnnbench.rnn.networks.silero_vad import SileroVad

torch: Any = pytest.importorskip("torch")
functional: Any = torch.nn.functional


class Published:
    """One step of 576 samples, or as many as the network's input asks for."""

    def __init__(self, arrays: dict[str, np.ndarray], part: int) -> None:
        self.arrays = {name: torch.tensor(array) for name, array in arrays.items()}
        self.part = part

    def __call__(self, sound: Any, state: Any) -> tuple[Any, Any]:
        x = functional.pad(sound[:, None], (0, self.part), mode="reflect")
        x = functional.conv1d(x, self.arrays["spectrum_basis"][:, None], stride=2 * self.part)
        bins = x.shape[1] // 2
        x = (x[:, :bins] ** 2 + x[:, bins:] ** 2).sqrt()
        for number, stride in enumerate([1, 2, 2, 1], start=1):
            weight, bias = (self.arrays[f"conv{number}_{name}"] for name in ("weight", "bias"))
            x = functional.conv1d(x, weight, bias, stride=stride, padding=1).relu()
        weights = [self.arrays[f"lstm_{name}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        h, c = torch.lstm_cell(x.squeeze(-1), state, *weights)
        y = functional.linear(h.relu(), self.arrays["speech_weight"], self.arrays["speech_bias"]).sigmoid()
        return y, (h, c)


@pytest.mark.parametrize("network", [SileroVad(input=32, hidden=5), SileroVad()])
def test_is_the_published_network_with_the_last_samples_before_each_step(network: SileroVad) -> None:
    weights, x = draw_weights(network, 0, "float64"), draw_inputs(network, 4, 2, 1, "float64")
    part, zeros = network.input // 8, torch.zeros(2, network.hidden, dtype=torch.float64)
    published, state, expected = Published(dict(weights.arrays), part), (zeros, zeros), []
    sound = np.concatenate([np.zeros((2, part)), *x], axis=1)
    for start in range(0, x.shape[0] * network.input, network.input):
        piece = torch.from_numpy(sound[:, start : start + part + network.input])
        y, state = published(piece, state)
        expected.append(y.numpy())
    np.testing.assert_allclose(run_reference(network, weights, x).y, np.stack(expected), rtol=1e-10, atol=1e-12)
