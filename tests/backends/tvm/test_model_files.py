"""A user's ONNX file through TVM's importer."""

from __future__ import annotations

import numpy as np
import onnx_files as files
import pytest

from rnnbench.backends.base import Request
from rnnbench.backends.tvm import TvmBackend
from rnnbench.cases import Precision, Strategy
from rnnbench.model_files import FileSection, describe, network_of, section_of
from rnnbench.rnn import Weights, draw_inputs, draw_state, run_reference


def request(path, **said):
    description = describe(path)
    section = FileSection(**{**vars(section_of(description, path.name)), **said})
    network = network_of(path, section, description)
    return Request("onnx", network, Weights(), Strategy("given", "stitched", 1), 2, Precision.of("float32"))


def test_a_stream_is_the_oracles(tmp_path):
    path = files.saved(files.odd(), tmp_path / "odd.onnx")
    asked = request(path, state={"s": "next_s"}, constants={"gain": 0.5}, batch=0)
    x, start = draw_inputs(asked.model, 4, 2, 0), draw_state(asked.model, 2, 0)
    expected = run_reference(asked.model, Weights(), x, start)
    program = TvmBackend().build(asked, tmp_path / "cache")
    session = program.open()
    session.set_state(start)
    np.testing.assert_allclose(session.step({"x": x})["y"], expected.y, atol=1e-5)
    np.testing.assert_allclose(session.get_state()["s"], expected.final["s"], atol=1e-5)
    assert (program.artifact.lowered, program.artifact.origin) == ("given", "imported")


@pytest.mark.parametrize("operator", ["LSTM", "GRU"])
def test_an_operator_that_the_importer_lacks_is_unsupported(tmp_path, operator):
    support = TvmBackend().support(request(files.saved(files.recurrent(operator), tmp_path / "network.onnx")))
    assert support.level == "unsupported"
    assert f"TVM's ONNX importer has no {operator}." in support.reason
