"""A state that an exporter lost: PyTorch's exporter makes a constant of a buffer that each call changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import onnx_files as files
import pytest
import torch
from harness_trials import make_trial

from rnnbench.backends.base import request_of
from rnnbench.backends.onnxruntime import OnnxRuntimeBackend
from rnnbench.cases import Strategy
from rnnbench.conformance import CHECKS, ReferenceTrajectories
from rnnbench.conformance.suite import Opener
from rnnbench.model_files import UserInputs, describe, network_of, section_of
from rnnbench.rnn import Weights

STEPS = 6


class Streaming(torch.nn.Module):
    """One step of a GRU whose state is in a buffer."""

    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(3, 4)
        self.register_buffer("h", torch.zeros(1, 4))

    def forward(self, x):
        h = self.cell(x, self.h)
        self.h.copy_(h)
        return h * 2


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The file, its inputs, and what PyTorch gives for them: with the state, and with every call from the first one.

    The first state is the one that the exporter made a constant: what the buffer was after it had called the module.
    """
    folder = tmp_path_factory.mktemp("lost")
    torch.manual_seed(0)
    network = Streaming().eval()
    path = files.exported(network, [torch.zeros(1, 3)], folder / "streaming.onnx", ["x"], ["y"])
    (start,) = (files.numpy_helper.to_array(each) for each in onnx.load(path).graph.initializer if each.name == "h")
    x = np.random.default_rng(0).standard_normal((STEPS, 1, 3)).astype(np.float32)
    np.savez(folder / "x.npz", x=x)
    for name, resets in (("streamed", False), ("separate", True)):
        network.h.copy_(torch.tensor(start))
        y = []
        for step in x:
            if resets:
                network.h.copy_(torch.tensor(start))
            with torch.no_grad():
                y.append(network(torch.from_numpy(step)).numpy())
        np.savez(folder / f"{name}.npz", y=np.stack(y))
    return path


def results(path, expected, folder):
    description = describe(path)
    beside = UserInputs(path.parent / "x.npz", path.parent / f"{expected}.npz")
    network = network_of(path, section_of(description, path.name), description, beside)
    trial = replace(make_trial(), model=network, strategy=Strategy("given", "none", 1), batch=1, steps=STEPS)
    trial = replace(trial, target=replace(trial.target, backend="onnxruntime", route="onnx"))
    program = OnnxRuntimeBackend().build(request_of(trial, Weights()), folder / "cache")
    reference, found = ReferenceTrajectories(trial, folder), {}
    for check in CHECKS:
        if check.name in ("values", "state-lost"):
            with Opener(program) as open_session:
                found[check.name] = check.run(open_session, reference)
    return found


def test_the_file_has_no_state_and_says_why(exported):
    description = describe(exported)
    assert description.state == ()
    assert [array.name for array in description.arrays] == ["x", "y"]


def test_expected_outputs_show_that_it_is_lost(exported, tmp_path):
    found = results(exported, "streamed", tmp_path)
    assert found["state-lost"].verdict == "fail"
    assert "the first call gives what the case expects, and a later one does not" in found["state-lost"].detail
    assert found["values"].verdict == "fail"
    assert "as the case expects it" in found["values"].detail


def test_outputs_of_separate_calls_are_met(exported, tmp_path):
    found = results(exported, "separate", tmp_path)
    assert {name: result.verdict for name, result in found.items()} == {"values": "pass", "state-lost": "pass"}
