"""A user's file in the form of the suite's graphs gives what the oracle gives, however its arrays lie."""

from __future__ import annotations

import numpy as np
import onnx_files as files
import onnxruntime
import pytest

from rnnbench.backends.base import Precision, Request
from rnnbench.backends.shared.onnx_graphs import NEXT, build_graph
from rnnbench.cases import Strategy
from rnnbench.model_files import FileSection, Given, describe, network_of, section_of
from rnnbench.rnn import Weights, draw_inputs, draw_state, run_reference

ODD = {"state": {"s": "next_s"}, "constants": {"gain": 0.5}, "batch": 0}
NOTHING = Given()


def network(path, beside=NOTHING, **said):
    description = describe(path)
    return network_of(path, FileSection(**{**vars(section_of(description, path.name)), **said}), description, beside)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("chunk", [1, 4])
@pytest.mark.parametrize("operator", ["LSTM", "GRU"])
def test_a_recurrent_operator(tmp_path, operator, chunk, batch):
    found = network(files.saved(files.recurrent(operator), tmp_path / "network.onnx"))
    assert_same(found, chunk, batch)


@pytest.mark.parametrize("batch", [1, 3])
def test_several_inputs_and_outputs_constants_and_names_that_the_suite_uses_too(tmp_path, batch):
    found = network(files.saved(files.odd(), tmp_path / "odd.onnx"), **ODD)
    assert_same(found, 1, batch)


def test_whole_numbers(tmp_path):
    path = files.saved(files.embedding(), tmp_path / "embedding.onnx")
    assert_same(network(path, Given(ranges={"tokens": (0, 9)}), state={"h": "next_h"}, batch=0), 1, 3)


def assert_same(network, chunk, batch):
    state = "stitched" if network.state_shapes(batch) else "none"
    request = Request("onnx", network, Weights(), Strategy("given", state, chunk), batch, Precision.of("float32"))
    graph = build_graph(request)
    x, states = draw_inputs(network, chunk, batch, 0), draw_state(network, batch, 1)
    expected = run_reference(network, Weights(), x, states)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    given = {"x": x, **{name: np.asarray(array) for name, array in states.items()}}
    names = [output.name for output in session.get_outputs()]
    got = dict(zip(names, session.run(None, given), strict=True))
    assert names == ["y", *(NEXT + name for name in states)]
    np.testing.assert_allclose(got["y"], expected.y, atol=3e-6)
    for name, array in expected.final.items():
        np.testing.assert_allclose(got[NEXT + name], array, atol=3e-6)
