"""A user's ONNX file through TVM's importer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_files as files
import pytest
import typed_streams as typed
from onnx import helper
from quick_tests import for_proof

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


@pytest.mark.parametrize("operator", ["Conv", "ReduceSum"])
def test_an_operator_that_the_schedule_cannot_take_keeps_tvms_loops(tmp_path, operator):
    """The suite's schedule is for products of matrices. A file may have any sums."""
    nodes = [
        helper.make_node("Concat", ["ring", "x"], ["all"], axis=2),
        helper.make_node("Slice", ["all", "from", "to", "axis"], ["next_ring"]),
        helper.make_node(operator, ["all", *(["kernel"] if operator == "Conv" else [])], ["z"]),
        helper.make_node("Add", ["z", "x"], ["y"]),
    ]
    numbers = {"from": [-3], "to": [9], "axis": [2]}
    weights = [files.weight(name, np.array(value)) for name, value in numbers.items()]
    weights.append(files.weight("kernel", np.random.default_rng(0).standard_normal((4, 4, 4)).astype(np.float32)))
    ends = files.arrays(("x", (1, 4, 1)), ("ring", (1, 4, 3))), files.arrays(("y", (1, 4, 1)), ("next_ring", (1, 4, 3)))
    path = files.saved(files.model(nodes, *ends, weights), tmp_path / "ring.onnx")
    asked = replace(request(path, state={"ring": "next_ring"}), batch=1)
    x = draw_inputs(asked.model, 4, 1, 0)
    session = TvmBackend().build(asked, tmp_path / "cache").open()
    np.testing.assert_allclose(session.step({"x": x})["y"], run_reference(asked.model, Weights(), x).y, atol=1e-5)


@pytest.mark.parametrize("operator", ["LSTM", "GRU"])
def test_an_operator_that_the_importer_lacks_is_unsupported(tmp_path, operator):
    support = TvmBackend().support(request(files.saved(files.recurrent(operator), tmp_path / "network.onnx")))
    assert support.level == "unsupported"
    assert f"TVM's ONNX importer has no {operator}." in support.reason


@pytest.mark.parametrize("dtype", ["float16", *for_proof("bfloat16", "float64")])
def test_a_file_of_another_type_of_floats(tmp_path, dtype):
    typed.assert_right(TvmBackend(), typed.cell_request(dtype, tmp_path), tmp_path)


@pytest.mark.parametrize("dtype", ["uint8", *for_proof("int64", "int32", "bool")])
def test_a_state_of_whole_numbers(tmp_path, dtype):
    typed.assert_right(TvmBackend(), typed.ring_request(dtype, tmp_path), tmp_path)


def test_an_lstm_that_onnx_runtime_quantised_is_unsupported(tmp_path):
    request = typed.cell_request("float16", tmp_path)
    quantised = request.model.model_copy(update={"operators": ("com.microsoft.DynamicQuantizeLSTM",)})
    support = TvmBackend().support(replace(request, model=quantised))
    assert support.level == "unsupported"
    assert "has no com.microsoft.DynamicQuantizeLSTM" in support.reason
