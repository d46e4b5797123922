"""Branches that depend on constants alone take the place of their Ifs, and the numbers stay."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from rnnbench.backends.shared.onnx_graphs.known_branches import put_known_branches

FLOAT = TensorProto.FLOAT
OPSET = 17


def branch(nodes, weights=()):
    """A graph that gives `out`."""
    made = helper.make_tensor_value_info("out", FLOAT, None)
    return helper.make_graph(
        nodes, "branch", [], [made], [numpy_helper.from_array(np.float32(v), n) for n, v in weights]
    )


def scaled(factor, source="x", *after):
    """A branch that multiplies by a weight, which has the same name in all of them."""
    nodes = [helper.make_node("Mul", [source, "factor"], ["product"]), *after]
    return branch([*nodes, helper.make_node("Neg", ["product"], ["out"])], [("factor", factor)])


def chosen(condition, output, then, other):
    return helper.make_node("If", [condition], [output], then_branch=then, else_branch=other)


def two_rates(rate):
    """An If by the rate in a branch of another, after one of the same names; and one that depends on x."""
    reads_around = chosen("positive", "inner", branch([helper.make_node("Neg", ["product"], ["out"])]), scaled(7.0))
    inside = scaled(3.0, "x", reads_around)
    nested = branch([chosen("is_fast", "out", inside, scaled(5.0))])
    nodes = [
        helper.make_node("Constant", [], ["fast"], value=numpy_helper.from_array(np.array(16000), "value")),
        helper.make_node("Equal", ["rate", "fast"], ["is_fast"]),
        helper.make_node("Not", ["is_fast"], ["is_slow"]),
        helper.make_node("ReduceMin", ["x"], ["least"], keepdims=0),
        helper.make_node("Greater", ["least", "zero"], ["positive"]),
        chosen("is_fast", "first", scaled(2.0), scaled(11.0)),
        chosen("is_slow", "second", scaled(13.0), nested),
        chosen("positive", "third", scaled(17.0), scaled(19.0)),
        helper.make_node("Sum", ["first", "second", "third"], ["y"]),
    ]
    weights = [numpy_helper.from_array(np.array(rate), "rate"), numpy_helper.from_array(np.float32(0), "zero")]
    ends = [[helper.make_tensor_value_info(name, FLOAT, [2])] for name in ("x", "y")]
    return helper.make_graph(nodes, "graph", *ends, weights)


def result(graph, x):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    return ReferenceEvaluator(model).run(None, {"x": np.float32(x)})[0].tolist()


@pytest.mark.parametrize(("rate", "factor"), [(16000, 2 + 3), (8000, 11 + 13)])
@pytest.mark.parametrize("x", [[1.0, 2.0], [-1.0, 2.0]])
def test_the_branch_of_the_rate_stands_in_the_place_of_its_if(rate, factor, x):
    graph = two_rates(rate)
    before = result(graph, x)
    put_known_branches(graph, OPSET)
    third = 17 if x[0] > 0 else 19
    assert result(graph, x) == before == [-(factor + third) * each for each in x]
    left = [node for node in graph.node if node.op_type == "If"]
    assert [node.input[0] for node in left] == (["positive", "positive"] if rate == 16000 else ["positive"])


def test_names_are_made_once():
    graph = two_rates(16000)
    put_known_branches(graph, OPSET)
    made = [name for node in graph.node for name in node.output] + [each.name for each in graph.initializer]
    assert len({*made}) == len(made)
