"""The ONNX Runtime backend: operators and graphs for every model, optimised files, refused requests."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_network import Mixed, built_and_right, request_for
from quick_tests import examples, for_proof
from random_models import models, problem, with_other_activations
from waiting import PATIENCE_S

from rnnbench.backends.base import Request
from rnnbench.backends.onnxruntime import OnnxRuntimeBackend
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.networks.kws import KwsCrnn, KwsSvdf
from rnnbench.rnn.networks.mamba2 import Mamba2Block
from rnnbench.rnn.networks.rnnoise import RNNoise
from rnnbench.rnn.networks.silero_vad import SileroVad
from rnnbench.rnn.reference import run_in, run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs, draw_weights

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

BACKEND = OnnxRuntimeBackend()
LSTM = Model(cell="lstm", input=4, hidden=6)


def make_request(time: str = "fused", state: Any = "stitched", route: str = "onnx", dtype: str = "float32") -> Request:
    weights = draw_weights(LSTM, 1, dtype)
    return Request(route, LSTM, weights, Strategy(time, state, 4), 2, Precision.of(dtype))


@examples(20)
@given(
    model=models() | with_other_activations(),
    form=st.sampled_from([("onnx", "fused"), ("onnx", "looped"), ("loop", "looped"), ("onnx", "unrolled")]),
    steps=st.integers(1, 4),
    batch=st.integers(1, 3),
)
def test_every_model_is_the_oracle(model: Model, form: tuple[str, str], steps: int, batch: int) -> None:
    data = problem(model, steps, batch, dtype="float32")
    route, time = form
    request = Request(route, model, data.weights, Strategy(time, "none", steps), batch, Precision.of("float32"))
    if BACKEND.support(request).level == "unsupported":
        request = replace(request, strategy=Strategy("looped", "none", steps))
    with TemporaryDirectory() as folder:
        y = BACKEND.build(request, Path(folder)).open().step({"x": data.x})["y"]
    np.testing.assert_allclose(y, run_reference(model, data.weights, data.x).y, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("time", "state"), [("looped", "stitched"), *for_proof(("unrolled", "stateful"), ("unrolled:2", "none"))]
)
def test_a_convolution_over_time_and_frequency_is_one_node(tmp_path: Path, time: str, state: Any) -> None:
    """Slices and a product for each frequency took 3.5 times as long."""
    request = request_for(KwsCrnn(input=9, filters=3, hidden=6), "onnx", Strategy(time, state, 4))
    built_and_right(BACKEND, request, tmp_path)
    operations = BACKEND.build(request, tmp_path).artifact.operations["input"]
    copies = {"looped": 1, "unrolled": 4, "unrolled:2": 2}[time]
    assert operations["Conv"] == 2 * copies
    assert operations["Slice"] == 2 * copies


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (KwsSvdf(input=5, hidden=6), {"ReduceSum": 6}),
        (Mamba2Block(input=5, hidden=6, heads=2, keys=4), {"MatMul": 3, "Transpose": 0}),
        (SileroVad(input=32, hidden=6), {"MatMul": 13}),
    ],
)
def test_what_one_node_computes_is_not_many_nodes(tmp_path: Path, model: Any, expected: dict[str, int]) -> None:
    """A sum of taps, a row by the matrices of heads, the frames of a spectrum: more nodes took 1.2 times as long."""
    request = request_for(model, "onnx", Strategy("unrolled", "stitched", 1))
    operations = built_and_right(BACKEND, request, tmp_path).artifact.operations["input"]
    assert {name: operations.get(name, 0) for name in expected} == expected


def test_no_node_takes_the_state_of_several_layers_apart_or_joins_it(tmp_path: Path) -> None:
    """With a Split and a Concat for h and for c, a step of two layers of 128 units took 1.13 times as long."""
    stack = Model(cell="lstm", input=4, hidden=6, layers=3)
    program = built_and_right(BACKEND, request_for(stack, "onnx", Strategy("fused", "stitched", 1)), tmp_path)
    assert program.artifact.operations["compiled"] == {"LSTM": 3, "Reshape": 2}


def test_a_convolution_in_float64_has_products_since_the_runtime_has_no_kernel(tmp_path: Path) -> None:
    request = request_for(KwsCrnn(input=9, filters=3, hidden=6), "onnx", Strategy("unrolled", "stitched", 1))
    weights = draw_weights(request.model, 0, "float64")
    request = replace(request, precision=Precision.of("float64"), weights=weights)
    x = draw_inputs(request.model, 3, request.batch, 0, "float64")
    program = BACKEND.build(request, tmp_path)
    assert "Conv" not in program.artifact.operations["input"]
    expected = run_reference(request.model, weights, x).y
    np.testing.assert_allclose(program.open().step({"x": x})["y"], expected, atol=1e-12)


def test_a_session_has_the_threads_of_its_request_and_is_not_optimised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    from rnnbench.backends.onnxruntime import options

    monkeypatch.setattr(options, "session", lambda model, chosen, *more: chosen)
    chosen = options.loaded(Path("program.onnx"), replace(make_request(), threads=3))
    assert (chosen.intra_op_num_threads, chosen.inter_op_num_threads) == (3, 1)
    assert not chosen.enable_cpu_mem_arena
    assert chosen.graph_optimization_level == onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


@pytest.mark.each_value
@pytest.mark.parametrize("state", ["none", "stitched", "stateful"])
@pytest.mark.parametrize("form", [("onnx", "looped"), ("loop", "unrolled:2"), ("onnx", "unrolled")])
def test_a_network_of_other_layers_is_right(tmp_path: Path, form: tuple[str, str], state: Any) -> None:
    route, time = form
    built_and_right(BACKEND, request_for(Mixed(), route, Strategy(time, state, 4)), tmp_path)


@pytest.mark.parametrize(("time", "form"), [("unrolled:2", "looped 5 of 2"), ("unrolled", "unrolled 20")])
def test_copies_are_counted_for_each_layer_with_state(tmp_path: Path, time: str, form: str) -> None:
    request = request_for(RNNoise(input=5, hidden=6), "onnx", Strategy(time, "stitched", 4))
    assert BACKEND.build(request, tmp_path).artifact.lowered == form


@pytest.mark.parametrize("time", ["looped", "unrolled", "unrolled:2"])
def test_authored_graphs_compute_in_float64(tmp_path: Path, time: str) -> None:
    request = make_request(time, "none", dtype="float64")
    x = draw_inputs(LSTM, 4, 2, 1, "float64")
    y = BACKEND.build(request, tmp_path).open().step({"x": x})["y"]
    np.testing.assert_allclose(y, run_reference(LSTM, request.weights, x).y, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (make_request(dtype="float64"), "float32 only"),
        (make_request("looped", dtype="float16"), "only store float16"),
        (make_request("unrolled", route="loop"), "only loops by ONNX's Loop"),
        (make_request(dtype="int8_static"), "quantises x and h by their range in each call"),
        (replace(make_request(), route="scan"), "has the routes onnx, loop, and not scan"),
    ],
)
def test_what_it_refuses_has_a_reason(request_: Request, reason: str) -> None:
    support = BACKEND.support(request_)
    assert (support.level, reason in support.reason) == ("unsupported", True)


def test_the_operators_are_a_library_and_graphs_are_authored(tmp_path: Path) -> None:
    artifacts = {time: BACKEND.build(make_request(time), tmp_path).artifact for time in ("fused", "looped", "unrolled")}
    assert {time: a.origin for time, a in artifacts.items()} == {
        "fused": "library",
        "looped": "authored",
        "unrolled": "authored",
    }
    assert {time: a.lowered for time, a in artifacts.items()} == {
        "fused": "fused",
        "looped": "looped 1",
        "unrolled": "unrolled 4",
    }


def test_the_route_loop_is_a_loop(tmp_path: Path) -> None:
    scan, loop = (
        BACKEND.build(make_request("looped", route=route), tmp_path).artifact.operations for route in ("onnx", "loop")
    )
    assert (scan["compiled"]["Scan"], loop["compiled"]["Loop"]) == (1, 1)
    assert "Scan" not in loop["compiled"]


@pytest.mark.each_value
@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize("form", [("onnx", "looped"), ("loop", "looped"), ("onnx", "unrolled")])
def test_fixed_ranges_are_constants_of_the_program(tmp_path: Path, cell: Any, form: tuple[str, str]) -> None:
    """y is that of the suite's own bytes: off by what float32 rounds, and not by a step of 8 bits."""
    (route, time), model = form, Model(cell=cell, input=20, hidden=48, layers=2)
    weights, x = draw_weights(model, 1, "int8_static"), 2 * draw_inputs(model, 4, 2, 1)
    request = Request(route, model, weights, Strategy(time, "stitched", 4), 2, Precision.of("int8_static"))
    program = BACKEND.build(request, tmp_path)
    y = program.open().step({"x": x})["y"]
    np.testing.assert_allclose(y, run_in(Arithmetic("int8_static"), model, weights, x).y, rtol=0, atol=1e-5)
    assert np.abs(y - run_reference(model, weights, x).y).max() > 1e-4
    assert program.artifact.int8_operations == ("MatMulIntegerToFloat",)
    assert "MatMul" not in program.artifact.operations["compiled"]


def test_a_state_in_the_session_is_emulated() -> None:
    assert BACKEND.support(make_request(state="stitched")).level == "native"
    support = BACKEND.support(make_request(state="stateful"))
    assert (support.level, support.reason) == ("emulated", "The session swaps the state buffers of two bindings.")


LOAD = """
import sys
from pathlib import Path
from rnnbench.backends.base import Request
from rnnbench.backends.onnxruntime import OnnxRuntimeBackend
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_weights

model = Model(cell="lstm", input=4, hidden=6)
request = Request("onnx", model, draw_weights(model, 1), Strategy("fused", "stitched", 4), 2, Precision.of("float32"))
print(OnnxRuntimeBackend().build(request, Path(sys.argv[1])).cached, "onnx" in sys.modules)
"""


def test_loading_in_another_process_needs_no_onnx(tmp_path: Path) -> None:
    BACKEND.build(make_request(), tmp_path)
    answer = run(
        [sys.executable, "-c", LOAD, str(tmp_path)], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert answer.stdout.split() == ["True", "False"]
