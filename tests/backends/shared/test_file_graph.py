"""A user's file in the form of the suite's graphs gives what the oracle gives, however its arrays lie."""

from __future__ import annotations

import numpy as np
import onnx_files as files
import onnxruntime
import pytest
from onnx import helper

from rnnbench.backends.base import Precision, Request
from rnnbench.backends.shared.onnx_graphs import NEXT, build_graph
from rnnbench.cases import Strategy
from rnnbench.model_files import FileSection, UserInputs, describe, network_of, section_of
from rnnbench.rnn import Weights, draw_inputs, draw_state, run_reference

ODD = {"state": {"s": "next_s"}, "constants": {"gain": 0.5}, "batch": 0}
NOTHING = UserInputs()


def network(path, beside=NOTHING, **said):
    description = describe(path)
    return network_of(path, FileSection(**{**vars(section_of(description, path.name)), **said}), description, beside)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("chunk", [1, 4])
@pytest.mark.parametrize("operator", ["LSTM", "GRU"])
def test_the_graph_of_a_recurrent_operator_gives_what_the_reference_does(tmp_path, operator, chunk, batch):
    found = network(files.saved(files.recurrent(operator), tmp_path / "network.onnx"))
    assert_same(found, chunk, batch)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_file_may_have_several_arrays_constants_and_names_of_the_suite(tmp_path, batch):
    found = network(files.saved(files.odd(), tmp_path / "odd.onnx"), **ODD)
    assert_same(found, 1, batch)


@pytest.mark.parametrize("state", ["x", "y", "lengths", "next_h", "state.x", "~laid/in/0"])
def test_a_state_may_have_the_name_of_an_array_of_the_suite(tmp_path, state):
    proto = files.cell("u", [state, "h"], ["after", "h_after"], "out")
    found = network(files.saved(proto, tmp_path / "cell.onnx"), state={state: "after", "h": "h_after"})
    assert found.state_shapes(1) == {f"state.{state}": (1, 1, 4), "h": (1, 1, 4)}
    assert_same(found, 1, 1)


@pytest.mark.parametrize("opset", [7, 9, 10, 13])
def test_several_inputs_of_a_file_with_older_operators(tmp_path, opset):
    """Slice has had its ends as inputs since set 10 only."""
    nodes = [
        helper.make_node("Concat", ["a", "b"], ["both"], axis=2),
        helper.make_node("Add", ["both", "h"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["h_out"]),
        helper.make_node("Relu", ["h_out"], ["y"]),
    ]
    ins = files.arrays(("a", (1, "B", 2)), ("b", (1, "B", 3)), ("h", (1, "B", 5)))
    outs = files.arrays(("y", (1, "B", 5)), ("h_out", (1, "B", 5)))
    path = files.saved(files.model(nodes, ins, outs, opset=opset), tmp_path / "old.onnx")
    assert_same(network(path, state={"h": "h_out"}, time=0, batch=1), 1, 3)


@pytest.mark.parametrize("shape", [(1,), ("B",), (1, 1)])
def test_a_constant_has_the_shape_of_its_input(tmp_path, shape):
    proto = files.odd()
    proto.graph.input[3].CopyFrom(files.arrays(("gain", shape))[0])
    proto.graph.node[4].CopyFrom(helper.make_node("Mul", ["line", "wide_gain"], ["kept"]))
    proto.graph.node.insert(4, helper.make_node("Reshape", ["gain", "column"], ["wide_gain"]))
    proto.graph.initializer.append(files.weight("column", np.array([-1, 1, 1])))
    assert_same(network(files.saved(proto, tmp_path / "odd.onnx"), **ODD), 1, 3)


def test_a_cell_whose_only_output_is_its_state(tmp_path):
    proto = files.cell("x", ["h"], ["next_h"])
    del proto.graph.output[0], proto.graph.node[-1]
    assert_same(network(files.saved(proto, tmp_path / "cell.onnx"), state={"h": "next_h"}), 1, 1)


def test_rows_of_three_axes_stay_apart(tmp_path):
    """An input [2, B, 3] is laid out by rows, and not as a state of two layers is."""
    nodes = [
        helper.make_node("ReduceSum", ["x", "first"], ["sum"], keepdims=0),
        helper.make_node("Add", ["sum", "h"], ["h_out"]),
        helper.make_node("Tanh", ["x"], ["y"]),
    ]
    ins, outs = files.arrays(("x", (2, "B", 3)), ("h", ("B", 3))), files.arrays(("y", (2, "B", 3)), ("h_out", ("B", 3)))
    path = files.saved(files.model(nodes, ins, outs, [files.weight("first", np.array([0]))]), tmp_path / "rows.onnx")
    found = network(path, state={"h": "h_out"}, batch=1)
    assert_same(found, 1, 3)
    x = draw_inputs(found, 1, 3, 0)
    np.testing.assert_allclose(run_reference(found, Weights(), x[:, :1]).y, run_reference(found, Weights(), x).y[:, :1])


def test_an_input_of_whole_numbers_is_fed_as_floats(tmp_path):
    path = files.saved(files.embedding(), tmp_path / "embedding.onnx")
    assert_same(network(path, UserInputs(ranges={"tokens": (0, 9)}), state={"h": "next_h"}, batch=0), 1, 3)


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
