"""Users' ONNX files whose arrays are not float32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_files as files
import pytest
import typed_streams as typed
from onnx import TensorProto, helper

from rnnbench.backends.base import BuildError
from rnnbench.backends.openvino import OpenVinoBackend
from rnnbench.cases.expected_failures import read_expected_failures
from rnnbench.cases.files import SHIPPED
from rnnbench.conformance import CHECKS_BY_NAME
from rnnbench.model_files import FileSection


@pytest.mark.first(1)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_a_file_in_a_narrow_type(tmp_path, state, dtype):
    typed.assert_right(OpenVinoBackend(), typed.cell_request(dtype, tmp_path, state), tmp_path)


def test_a_file_in_float64_is_unsupported(tmp_path):
    support = OpenVinoBackend().support(typed.cell_request("float64", tmp_path))
    assert support.level == "unsupported"
    assert "it converts the model to float32" in support.reason


@pytest.mark.first(2)
@pytest.mark.parametrize("state", ["stitched", "stateful"])
@pytest.mark.parametrize("dtype", typed.WHOLE)
def test_a_state_of_whole_numbers(tmp_path, dtype, state):
    typed.assert_right(OpenVinoBackend(), typed.ring_request(dtype, tmp_path, state), tmp_path)


@pytest.mark.first(1)
@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_a_flag_that_makes_the_state_zero(tmp_path, state):
    typed.assert_right(OpenVinoBackend(), typed.flag_request(tmp_path, state), tmp_path)


@pytest.mark.first(1)
@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_an_operator_whose_rows_and_steps_are_those_of_the_file_is_right(tmp_path, state):
    """The suite has one row and one step. An exported operator over several of both would change them round."""
    nodes = [
        helper.make_node("Add", ["x", "h"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["next_h"]),
        helper.make_node("LSTM", ["next_h", "W", "R", "B"], ["y"], hidden_size=4),
    ]
    ends = files.arrays(("x", (3, 2, 3)), ("h", (3, 2, 3))), files.arrays(("y", (3, 1, 2, 4)), ("next_h", (3, 2, 3)))
    path = files.saved(files.model(nodes, *ends, files.recurrent_weights("LSTM", 3, 4)), tmp_path / "inner.onnx")
    request = typed.request_for(path, state, FileSection(path.name, {"h": "next_h"}))
    typed.assert_right(OpenVinoBackend(), request, tmp_path)


def branch(name, sign):
    """A branch whose first node only gives x another axis."""
    nodes = [
        helper.make_node("Unsqueeze", ["x", "axis"], [f"{name}_x"]),
        helper.make_node("ReduceMean", [f"{name}_x"], [f"{name}_mean"], axes=[1], keepdims=0),
        helper.make_node(sign, [f"{name}_mean"], [f"{name}_signed"]),
        helper.make_node("Add", [f"{name}_signed", "h"], [f"{name}_sum"]),
    ]
    return helper.make_graph(nodes, name, [], files.arrays((f"{name}_sum", (1, 4))))


@pytest.mark.first(1)
@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_a_branch_whose_condition_is_known_gives_no_name_to_an_input(tmp_path, state):
    """Silero VAD has such an If, by the sample rate. OpenVINO puts the branch in its place, with its names."""
    branches = {"then_branch": branch("then", "Identity"), "else_branch": branch("else", "Neg")}
    nodes = [
        helper.make_node("Equal", ["sr", "known"], ["is_known"]),
        helper.make_node("If", ["is_known"], ["sum"], **branches),
        helper.make_node("Tanh", ["sum"], ["next_h"]),
        helper.make_node("Identity", ["next_h"], ["y"]),
    ]
    inputs = files.arrays(("x", (1, 4)), ("h", (1, 4)), ("sr", TensorProto.INT64, ()))
    weights = [files.weight("known", np.array(16000)), files.weight("axis", np.array([1]))]
    proto = files.model(nodes, inputs, files.arrays(("y", (1, 4)), ("next_h", (1, 4))), weights)
    section = FileSection("vad.onnx", {"h": "next_h"}, {"sr": 16000})
    path = files.saved(proto, tmp_path / "vad.onnx")
    typed.assert_right(OpenVinoBackend(), typed.request_for(path, state, section), tmp_path)


def test_operations_of_both_branches_are_counted(tmp_path):
    branches = {"then_branch": branch("then", "Sin"), "else_branch": branch("else", "Cos")}
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["largest"], keepdims=0),
        helper.make_node("Greater", ["largest", "zero"], ["is_loud"]),
        helper.make_node("If", ["is_loud"], ["sum"], **branches),
        helper.make_node("Tanh", ["sum"], ["next_h"]),
        helper.make_node("Identity", ["next_h"], ["y"]),
    ]
    ends = files.arrays(("x", (1, 4)), ("h", (1, 4))), files.arrays(("y", (1, 4)), ("next_h", (1, 4)))
    weights = [files.weight("zero", np.array(0.0, np.float32)), files.weight("axis", np.array([1]))]
    path = files.saved(files.model(nodes, *ends, weights), tmp_path / "loud.onnx")
    request = typed.request_for(path, "stitched", FileSection(path.name, {"h": "next_h"}))
    found = OpenVinoBackend().build(request, tmp_path / "cache").artifact.operations["input"]
    assert (found["If"], found["Sin"], found["Cos"]) == (1, 1, 1)


def test_an_operator_that_the_importer_lacks_is_named(tmp_path):
    nodes = [
        helper.make_node("Optional", ["x"], ["maybe"]),
        helper.make_node("OptionalGetElement", ["maybe"], ["it"]),
        helper.make_node("Add", ["it", "h"], ["next_h"]),
        helper.make_node("Tanh", ["next_h"], ["y"]),
    ]
    ends = files.arrays(("x", (1, 4)), ("h", (1, 4))), files.arrays(("y", (1, 4)), ("next_h", (1, 4)))
    path = files.saved(files.model(nodes, *ends, opset=18), tmp_path / "optional.onnx")
    request = typed.request_for(path, "stitched", FileSection(path.name, {"h": "next_h"}))
    with pytest.raises(BuildError, match=r"(?s)importer refused the graph: .*OptionalGetElement"):
        OpenVinoBackend().build(request, tmp_path / "cache")


@pytest.mark.proof
@pytest.mark.parametrize(("length", "streams"), [(3, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
def test_an_operator_whose_rows_come_first_does_not_build_with_a_state_as_expected(tmp_path, operator, length, streams):
    """Its rows are taken for steps, so that a state of as many rows does not fit."""
    entries = read_expected_failures(SHIPPED[0], CHECKS_BY_NAME)
    (entry,) = (each for each in entries if "rows-first-operator" in each.contains and each.outcome == "build-failed")
    path = files.saved(files.with_layout(operator, 1), tmp_path / "rows.onnx")
    request = typed.request_for(path, "stateful", FileSection(path.name, {"h0": "hn"}, time=1, batch=0))
    request = replace(request, strategy=replace(request.strategy, chunk=length), batch=streams)
    with pytest.raises(BuildError) as error:
        OpenVinoBackend().build(request, tmp_path / "cache")
    assert any(text in str(error.value) for text in entry.says)


@pytest.mark.proof
@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_reduction_with_axes_of_version_13_does_not_build_as_expected(tmp_path, keepdims):
    """It takes all axes, so that its result has one element."""
    entries = read_expected_failures(SHIPPED[0], CHECKS_BY_NAME)
    (entry,) = (each for each in entries if "older-operators" in each.contains and each.outcome == "build-failed")
    nodes = [
        helper.make_node("Add", ["x", "h"], ["h_next"]),
        helper.make_node("ReduceL1", ["h_next"], ["y"], axes=[1], keepdims=keepdims),
    ]
    ends = files.arrays(("x", (1, 2, 3)), ("h", (1, 2, 3)))
    results = files.arrays(("y", (1, 1, 3) if keepdims else (1, 3)), ("h_next", (1, 2, 3)))
    path = files.saved(files.model(nodes, ends, results, opset=13), tmp_path / "reduction.onnx")
    request = typed.request_for(path, "stitched", FileSection(path.name, {"h": "h_next"}, outputs=("y",)))
    assert "older-operators" in request.model.traits
    with pytest.raises(BuildError) as error:
        OpenVinoBackend().build(request, tmp_path / "cache")
    assert any(text in str(error.value) for text in entry.says)
