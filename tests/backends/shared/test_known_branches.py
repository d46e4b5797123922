"""Branches that follow from constants or from fixed sizes take the place of their Ifs, and the numbers stay."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from rnnbench.backends.shared.onnx_graphs.known_branches import with_known_branches

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


def model_of(graph):
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def result(model, x):
    return ReferenceEvaluator(model).run(None, {"x": np.float32(x)})[0].tolist()


def conditions(graph):
    """The conditions of all Ifs that are left, those inside others included."""
    for node in graph.node:
        if node.op_type == "If":
            yield node.input[0]
            for attribute in node.attribute:
                yield from conditions(attribute.g)


@pytest.mark.parametrize(("rate", "factor"), [(16000, 2 + 3), (8000, 11 + 13)])
@pytest.mark.parametrize("x", [[1.0, 2.0], [-1.0, 2.0]])
def test_the_branch_of_the_rate_stands_in_the_place_of_its_if(rate, factor, x):
    model = model_of(two_rates(rate))
    before = result(model, x)
    made = with_known_branches(model)
    third = 17 if x[0] > 0 else 19
    assert result(made, x) == before == [-(factor + third) * each for each in x]
    assert [*conditions(made.graph)] == (["positive", "positive"] if rate == 16000 else ["positive"])


def test_names_are_made_once():
    graph = with_known_branches(model_of(two_rates(16000))).graph
    made = [name for node in graph.node for name in node.output] + [each.name for each in graph.initializer]
    assert len({*made}) == len(made)


def parsed(body, rows=2):
    head = f'<ir_version: 8, opset_import: ["": {OPSET}]> g (float[{rows}, 3] x, bool q) => (float[n, 3] y)'
    return onnx.parser.parse_model(f"{head} {{\n{body}\n}}")


BY_SIZES = """
  sizes = Shape(x)
  zero = Constant <value_int = 0> ()
  two = Constant <value_int = 2> ()
  rows = Gather(sizes, zero)
  rest = Mod(rows, two)
  even = Equal(rest, zero)
  y = If (even) <
    then_branch = t () => (float[a, 3] r) {
      halves = Constant <value_ints = [-1, 2, 3]> ()
      p = Reshape(x, halves)
      first = Gather(p, zero)
      count = Size(first)
      six = Constant <value_int = 6> ()
      whole = Equal(count, six)
      r = If (whole) <
        then_branch = t2 () => (float[b, 3] s) {
          s = If (q) <
            then_branch = t3 () => (float[c, 3] n1) { n1 = Neg(first) },
            else_branch = e3 () => (float[c, 3] n2) { n2 = Identity(first) }>
        },
        else_branch = e2 () => (float[b, 3] o) { o = Identity(x) }>
    },
    else_branch = e () => (float[a, 3] odd) { odd = Abs(x) }>
"""
"""An If by the number of rows, in its branch one by a size that is known once that branch is chosen, and one by q."""


@pytest.mark.parametrize(("size", "left"), [(2, ["q"]), (3, [])])
@pytest.mark.parametrize("q", [True, False])
def test_an_if_by_sizes_is_replaced_and_so_is_one_by_sizes_in_its_branch(size, left, q):
    model = parsed(BY_SIZES, size)
    given = {"x": np.arange(size * 3, dtype=np.float32).reshape(size, 3) - 4, "q": np.array(q)}
    before = ReferenceEvaluator(model).run(None, given)[0].tolist()
    made = with_known_branches(model)
    assert ReferenceEvaluator(made).run(None, given)[0].tolist() == before
    assert [*conditions(made.graph)] == left


def test_an_if_by_a_size_that_is_open_stays():
    model = parsed(BY_SIZES)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
    assert [*conditions(with_known_branches(model).graph)] == ["even", "whole", "q"]


def test_an_if_by_constants_in_a_branch_that_is_not_known_is_replaced():
    made = with_known_branches(
        parsed("""
  yes = Constant <value_int = 1> ()
  known = Cast <to = 9> (yes)
  y = If (q) <
    then_branch = t () => (float[a, 3] r) {
      r = If (known) <
        then_branch = t2 () => (float[a, 3] s) { s = Neg(x) },
        else_branch = e2 () => (float[a, 3] o) { o = Abs(x) }>
    },
    else_branch = e () => (float[a, 3] p) { p = Identity(x) }>
""")
    )
    assert [*conditions(made.graph)] == ["q"]
    given = {"x": np.ones((2, 3), np.float32), "q": np.array(True)}
    assert ReferenceEvaluator(made).run(None, given)[0].tolist() == [[-1.0] * 3] * 2
