"""Networks as people ship them, exported by PyTorch: described, checked, and computed as ONNX Runtime does."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import onnx_files as files
import pytest

from rnnbench.model_files import answered, check_state, describe, keys_of, open_questions, oracle_of, section_of
from rnnbench.rnn import RandomRounding

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")


class VoiceActivity(torch.nn.Module):
    """As Silero's: frames of sound, a convolution, one step of an LSTM whose two states are one array."""

    given = (torch.randn(1, 64), torch.zeros(2, 1, 8), torch.tensor(16000))
    names = (["input", "state", "sr"], ["output", "stateN"])
    axes: ClassVar = {}
    answers = ("constants.sr=16000",)
    states: ClassVar = {"state": "stateN"}

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(1, 8, 16, stride=8)
        self.cell = torch.nn.LSTMCell(8, 8)
        self.out = torch.nn.Linear(8, 1)

    def forward(self, x, state, sr):
        x = torch.nn.functional.pad(x, (0, 8), mode="reflect").unsqueeze(1)
        h, c = self.cell(torch.relu(self.conv(x))[:, :, -1], (state[0], state[1]))
        return torch.sigmoid(self.out(torch.relu(h))) * (sr / sr).float(), torch.stack([h, c])


class NoiseSuppression(torch.nn.Module):
    """As RNNoise: a causal convolution whose last inputs are a state, then two GRUs."""

    given = (torch.randn(1, 4, 6), torch.zeros(1, 2, 6), torch.zeros(1, 1, 8), torch.zeros(1, 1, 8))
    names = (["x", "ring", "g1", "g2"], ["y", "ring_out", "g1_out", "g2_out"])
    axes: ClassVar = {"x": {1: "T"}, "y": {1: "T"}}
    answers = ()
    states: ClassVar = {"ring": "ring_out", "g1": "g1_out", "g2": "g2_out"}

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(6, 8, 3)
        self.first, self.second = (torch.nn.GRU(8, 8, batch_first=True) for _ in range(2))
        self.out = torch.nn.Linear(16, 3)

    def forward(self, x, ring, g1, g2):
        whole = torch.cat([ring, x], 1)
        a, g1 = self.first(torch.tanh(self.conv(whole.permute(0, 2, 1))).permute(0, 2, 1), g1)
        b, g2 = self.second(a, g2)
        return torch.sigmoid(self.out(torch.cat([a, b], -1))), whole[:, -2:], g1, g2


class Prediction(torch.nn.Module):
    """As the prediction network of an RNN-T, of cells: a token, an embedding, two GRU cells, a normalisation."""

    given = (torch.tensor([3]), torch.zeros(1, 8), torch.zeros(1, 8))
    names = (["token", "h_a", "h_b"], ["logp", "h_a_out", "h_b_out"])
    axes: ClassVar = {}
    answers = ()
    states: ClassVar = {"h_a": "h_a_out", "h_b": "h_b_out"}

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(28, 6)
        self.a, self.b, self.norm = torch.nn.GRUCell(6, 8), torch.nn.GRUCell(8, 8), torch.nn.LayerNorm(8)

    def forward(self, token, h_a, h_b):
        h_a = self.a(self.embedding(token), h_a)
        h_b = self.b(self.norm(h_a), h_b)
        return torch.log_softmax(h_b, -1), h_a, h_b


NETWORKS = [VoiceActivity, NoiseSuppression, Prediction]


@pytest.fixture(params=NETWORKS, ids=lambda network: network.__name__)
def network(request):
    torch.manual_seed(0)
    return request.param()


@pytest.fixture
def path(network, tmp_path):
    return files.exported(network, network.given, tmp_path / "network.onnx", *network.names, dynamic_axes=network.axes)


def test_its_states_are_found_and_hold(network, path):
    description = describe(path)
    section = answered(section_of(description, path.name), description, network.answers)
    assert section.state == network.states
    assert not open_questions(section, description, keys_of(network.answers))
    check = check_state(oracle_of(path), description, section)
    assert check.ok
    assert (check.halves is None) == (not network.axes)


def test_onnxruntime_is_as_near_as_random_rounding_says(network, path):
    generator = np.random.default_rng(1)
    feed = {
        name: generator.standard_normal(value.shape).astype(np.float32) if value.is_floating_point() else value.numpy()
        for name, value in zip(network.names[0], network.given, strict=True)
    }
    oracle = oracle_of(path)
    wanted, noisy = oracle.run(feed), oracle.in_arithmetic(RandomRounding("float32", 0, 0))
    runs = [noisy.run(feed) for _ in range(8)]
    for name, theirs in zip(network.names[1], onnxruntime.InferenceSession(str(path)).run(None, feed), strict=True):
        spread = max(np.abs(run[name] - wanted[name]).max() for run in runs)
        assert np.abs(theirs - wanted[name]).max() <= 4 * spread
        assert spread < 1e-5
