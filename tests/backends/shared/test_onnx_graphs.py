"""ONNX graphs mean what the oracle computes, by onnx's own reference evaluator, and are of the form that was asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples
from random_models import models, problem

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.shared.onnx_graphs import (
    NEXT,
    LoopOperator,
    build_graph,
    lowered,
    operations,
    row_names,
    unsupported,
)
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights, draw_weights

onnx = pytest.importorskip("onnx")

LSTM = Model(cell="lstm", input=3, hidden=4)
TIMES = ("looped", "unrolled", "unrolled:2")


def ask(model: Model = LSTM, time: str = "looped", state: Any = "stitched", chunk: int = 4, batch: int = 2) -> Request:
    weights = draw_weights(model, 1, "float64")
    return Request("onnx", model, weights, Strategy(time, state, chunk), batch, Precision.of("float64"))


def evaluated(graph: Any, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of a graph by name, from inputs that may have any shape of the right size."""
    from onnx.reference import ReferenceEvaluator

    feeds = {
        value.name: arrays[value.name].reshape([d.dim_value for d in value.type.tensor_type.shape.dim])
        for value in graph.graph.input
    }
    names = [value.name for value in graph.graph.output]
    return dict(zip(names, ReferenceEvaluator(graph).run(names, feeds), strict=True))


@examples(20)
@given(
    model=models(),
    time=st.sampled_from(TIMES),
    operator=st.sampled_from(["Scan", "Loop"]),
    passes=st.integers(1, 3),
    batch=st.integers(1, 3),
    rows_apart=st.booleans(),
)
def test_authored_graphs_compute_every_model(
    model: Model, time: str, operator: LoopOperator, passes: int, batch: int, rows_apart: bool
) -> None:
    chunk = 2 * passes if time == "unrolled:2" else passes
    data = problem(model, chunk, batch)
    if model.direction != "forward":
        # onnx's evaluator has no backward Scan, and joins a Loop's outputs where it should stack them.
        time = "unrolled"
    state = "stitched" if model.direction == "forward" else "none"
    request = Request("onnx", model, data.weights, Strategy(time, state, chunk), batch, Precision.of("float64"))
    graph = build_graph(request, operator, rows_apart=rows_apart)
    onnx.checker.check_model(graph, full_check=True)
    found = evaluated(graph, {"x": data.x, **inputs_of(data.state, rows_apart)})
    expected = run_reference(model, data.weights, data.x, data.state if state == "stitched" else None)
    np.testing.assert_allclose(found.pop("y").reshape(expected.y.shape), expected.y, rtol=1e-10, atol=1e-12)
    finals = inputs_of(expected.final, rows_apart) if state == "stitched" else {}
    assert found.keys() == {NEXT + name for name in finals}
    for name, final in finals.items():
        np.testing.assert_allclose(found[NEXT + name].reshape(final.shape), final, rtol=1e-10, atol=1e-12)


def inputs_of(state: Mapping[str, np.ndarray], rows_apart: bool) -> dict[str, np.ndarray]:
    """What the graph's inputs for a state hold, by name."""
    if not rows_apart:
        return dict(state)
    rows = ((row_names(name, len(array)), array) for name, array in state.items())
    return {name: row for names, array in rows for name, row in zip(names, array, strict=True)}


@pytest.mark.parametrize("operator", ["Scan", "Loop"])
def test_a_loop_is_one_of_its_operator(operator: LoopOperator) -> None:
    graph = build_graph(ask(), operator)
    assert operations(graph)[operator] == 1
    assert lowered(graph) == "looped 1"


@pytest.mark.parametrize(
    ("time", "layers", "form"),
    [
        ("fused", 2, "fused"),
        ("looped", 2, "looped 2"),
        ("unrolled:2", 1, "looped 1 of 2"),
        ("unrolled", 1, "unrolled 4"),
        ("unrolled", 2, "unrolled 8"),
    ],
)
def test_the_form_of_a_graph_is_read_off_it(time: str, layers: int, form: str) -> None:
    assert lowered(build_graph(ask(LSTM.model_copy(update={"layers": layers}), time))) == form


def test_operations_count_the_graphs_within() -> None:
    looped, unrolled = (operations(build_graph(ask(time=time))) for time in ("looped", "unrolled"))
    assert (looped["Tanh"], unrolled["Tanh"]) == (2, 8)


def test_copies_of_the_cell_share_their_weights() -> None:
    one, four = (build_graph(ask(time="unrolled", chunk=chunk)) for chunk in (1, 4))
    large = [sum(len(t.raw_data) > 64 for t in graph.graph.initializer) for graph in (one, four)]
    assert large == [3, 3]


def test_the_same_request_is_the_same_graph() -> None:
    assert build_graph(ask()).SerializeToString() == build_graph(ask()).SerializeToString()


@pytest.mark.parametrize(
    ("model", "strategy", "reason"),
    [
        (Model(cell="counter", input=4, hidden=4), Strategy("fused", "none", 4), "no operator for a counter"),
        (Model(cell="lstm", input=4, hidden=4, projection=2), Strategy("fused", "none", 4), "has no projection"),
        (Model(cell="lstm", input=4, hidden=4, cell_clip=1.0), Strategy("fused", "none", 4), "never its cell state"),
        (Model(cell="lstm", input=9, hidden=20_000), Strategy("looped", "none", 4), "larger than the 2 GiB"),
    ],
)
def test_what_no_graph_can_say_has_a_reason(model: Model, strategy: Strategy, reason: str) -> None:
    request = Request("onnx", model, Weights(()), strategy, 1, Precision.of("float32"))
    assert reason in unsupported(request)
    with pytest.raises(BuildError, match=reason):
        build_graph(request)
