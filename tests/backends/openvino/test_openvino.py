"""The OpenVINO backend: operators for every model, native state, compiled models, and exports."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_network import Mixed, built_and_right, request_for
from quick_tests import examples, for_proof
from random_models import models, problem
from small_networks import small
from waiting import LONG_S

from rnnbench.backends.base import Request
from rnnbench.backends.openvino import OpenVinoBackend, backend
from rnnbench.backends.openvino.device import config
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.model_files import describe, network_of, section_of
from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.networks.kws import KwsCrnn
from rnnbench.rnn.networks.mamba2 import Mamba2Block
from rnnbench.rnn.networks.rnnoise import RNNoise
from rnnbench.rnn.networks.silero_vad import SileroVad
from rnnbench.rnn.quantised import quantised
from rnnbench.rnn.reference import run_in, run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights, draw_inputs, draw_weights

helper = pytest.importorskip("onnx.helper")
files = pytest.importorskip("onnx_files")
ov = pytest.importorskip("openvino")
opset = pytest.importorskip("openvino.opset13")

BACKEND = OpenVinoBackend()
LSTM = Model(cell="lstm", input=4, hidden=6)
LOADS = "from rnnbench.backends.openvino import OpenVinoBackend; OpenVinoBackend().load(); import openvino.tools.ovc"


def make_request(
    model: Model = LSTM,
    time: str = "fused",
    state: Any = "stitched",
    route: str = "opset",
    chunk: int = 4,
    batch: int = 2,
    dtype: str = "float32",
) -> Request:
    weights = draw_weights(model, 1, dtype)
    return Request(route, model, weights, Strategy(time, state, chunk), batch, Precision.of(dtype))


@examples(20)
@given(
    model=models(),
    route=st.sampled_from(["onnx", "opset"]),
    time=st.sampled_from(["fused", "looped", "unrolled"]),
    steps=st.integers(1, 4),
    batch=st.integers(1, 3),
)
def test_every_model_is_the_oracle(model: Model, route: str, time: str, steps: int, batch: int) -> None:
    data = problem(model, steps, batch, dtype="float32")
    request = Request(route, model, data.weights, Strategy(time, "none", steps), batch, Precision.of("float32"))
    if BACKEND.support(request).level == "unsupported":
        request = replace(request, strategy=Strategy("looped", "none", steps))
    with TemporaryDirectory() as folder:
        program = BACKEND.build(request, Path(folder))
        y = program.open().step({"x": data.x})["y"]
        program.close()
    np.testing.assert_allclose(y, run_reference(model, data.weights, data.x).y, rtol=2e-5, atol=2e-5)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("route", "cell", "state"),
    [
        *(("onnx", "lstm", "stitched"), ("onnx", "gru", "stateful"), ("onnx", "rnn", "stitched")),
        *(("opset", "lstm", "stateful"), ("opset", "gru", "stitched"), ("opset", "rnn", "stateful")),
    ],
)
def test_operators_stream_batches(tmp_path: Path, route: str, cell: Any, state: str) -> None:
    """Also after a second build, which loads: an exported operator over a batch would have the wrong first axis."""
    request = make_request(Model(cell=cell, input=4, hidden=6, layers=2), state=state, route=route, batch=3)
    x = draw_inputs(request.model, 12, 3, 1)
    expected = run_reference(request.model, request.weights, x).y
    for cached in (False, True):
        program = BACKEND.build(request, tmp_path)
        assert program.cached is cached
        np.testing.assert_allclose(program.open().step({"x": x})["y"], expected, rtol=2e-5, atol=2e-5)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("route", "time", "state"),
    [
        *(("onnx", "looped", "none"), ("onnx", "unrolled:2", "stateful"), ("onnx", "unrolled", "stitched")),
        *(("opset", "looped", "stitched"), ("opset", "unrolled:2", "none"), ("opset", "unrolled", "stateful")),
    ],
)
def test_a_network_of_other_layers_is_right(tmp_path: Path, route: str, time: str, state: Any) -> None:
    built_and_right(BACKEND, request_for(Mixed(passes_on=False), route, Strategy(time, state, 4)), tmp_path)


@pytest.mark.first(2)
@pytest.mark.parametrize("route", ["onnx", "opset"])
@pytest.mark.parametrize(
    ("model", "products"), [(Mamba2Block(input=5, hidden=6, heads=2, keys=4), 3), (SileroVad(input=32, hidden=6), 13)]
)
def test_what_one_product_computes_is_not_many_operations(
    tmp_path: Path, route: str, model: Any, products: int
) -> None:
    """A row by the matrices of heads took 1.3 times as long, and the frames of a spectrum 1.1 times."""
    request = request_for(model, route, Strategy("unrolled", "stitched", 1))
    assert built_and_right(BACKEND, request, tmp_path).artifact.operations["input"]["MatMul"] == products


@pytest.mark.first(1)
@pytest.mark.parametrize("route", ["onnx", "opset"])
@pytest.mark.parametrize(
    ("time", "state"), [("looped", "stitched"), *for_proof(("unrolled", "stateful"), ("unrolled:2", "none"))]
)
def test_a_convolution_over_time_and_frequency_is_one_operation(
    tmp_path: Path, route: str, time: str, state: Any
) -> None:
    """Slices and a product for each frequency took 1.5 times as long."""
    request = request_for(KwsCrnn(input=9, filters=3, hidden=6), route, Strategy(time, state, 4))
    built_and_right(BACKEND, request, tmp_path)
    operations = BACKEND.build(request, tmp_path).artifact.operations["input"]
    assert operations["Convolution"] == 2 * {"looped": 1, "unrolled": 4, "unrolled:2": 2}[time]


@pytest.mark.parametrize("last", ["Identity", "Tanh"])
def test_a_variable_of_a_file_has_the_shape_of_the_file(tmp_path: Path, last: str) -> None:
    """OpenVINO adds reshaped x to a reshaped variable wrongly, and the file has no reshape."""
    nodes = [helper.make_node("Add", ["x", "h"], ["y"]), helper.make_node(last, ["y"], ["h_out"])]
    arrays = files.arrays(("x", [1, 4]), ("h", [1, 4])), files.arrays(("y", [1, 4]), ("h_out", [1, 4]))
    path = files.saved(files.model(nodes, *arrays), tmp_path / "sum.onnx")
    description = describe(path)
    network = network_of(path, section_of(description, path.name), description)
    strategy = Strategy("given", "stateful", 1)
    program = BACKEND.build(Request("onnx", network, Weights(), strategy, 1, Precision.of("float32")), tmp_path)
    x = draw_inputs(network, 6, 1, 0)
    expected = run_reference(network, Weights(), x)
    with closing(program), closing(program.open()) as session:
        got = np.concatenate([session.step({"x": step})["y"] for step in np.split(x, 6)])
        np.testing.assert_allclose(got, expected.y, atol=1e-5)
        np.testing.assert_allclose(session.get_state()["h"], expected.final["h"], atol=1e-5)


@pytest.mark.proof
@pytest.mark.parametrize("route", ["onnx", "opset"])
@pytest.mark.parametrize(("time", "state", "chunk"), [("looped", "stitched", 4), ("unrolled", "stateful", 1)])
def test_a_state_that_is_only_passed_on_is_still_wrong_upstream(
    tmp_path: Path, route: str, time: str, state: Any, chunk: int
) -> None:
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        built_and_right(BACKEND, request_for(Mixed(), route, Strategy(time, state, chunk)), tmp_path)


@pytest.mark.first(1)
@pytest.mark.parametrize("route", ["onnx", "opset"])
@pytest.mark.parametrize(("time", "form"), [("unrolled:2", "looped 5 of 2"), ("unrolled", "unrolled 20")])
def test_copies_are_counted_for_each_layer_with_state(tmp_path: Path, route: str, time: str, form: str) -> None:
    request = request_for(RNNoise(input=5, hidden=6), route, Strategy(time, "stitched", 4))
    assert BACKEND.build(request, tmp_path).artifact.lowered == form


@pytest.mark.parametrize("route", ["onnx", "opset"])
def test_a_loop_stays_a_loop(tmp_path: Path, route: str) -> None:
    artifact = BACKEND.build(make_request(time="looped", route=route), tmp_path).artifact
    assert artifact.operations["input"]["TensorIterator"] == 1
    assert artifact.operations["compiled"]["TensorIterator"] == 1
    assert (artifact.lowered, artifact.origin) == ("looped 1", "authored")


@pytest.mark.each_value
@pytest.mark.parametrize("route", ["onnx", "opset"])
@pytest.mark.parametrize(
    ("time", "lowered"), [("fused", "fused"), ("unrolled", "unrolled 4"), ("unrolled:2", "looped 1 of 2")]
)
def test_lowered_is_read_from_the_compiled_model(tmp_path: Path, route: str, time: str, lowered: str) -> None:
    assert BACKEND.build(make_request(time=time, route=route), tmp_path).artifact.lowered == lowered


@pytest.mark.parametrize("route", ["onnx", "opset"])
def test_an_operator_with_a_clip_is_run_as_a_loop(tmp_path: Path, route: str) -> None:
    """The operator is requested, but the device's kernels have no clip."""
    artifact = BACKEND.build(make_request(LSTM.model_copy(update={"clip": 0.5}), route=route), tmp_path).artifact
    assert (artifact.lowered, artifact.origin) == ("looped 1", "library")


@pytest.mark.parametrize("route", ["onnx", "opset"])
def test_a_stateful_program_keeps_its_state_in_variables(tmp_path: Path, route: str) -> None:
    operations = BACKEND.build(make_request(state="stateful", route=route), tmp_path).artifact.operations
    assert (operations["input"]["ReadValue"], operations["input"]["Assign"]) == (2, 2)
    assert operations["compiled"]["MemoryOutput"] == 2


def test_every_state_is_native() -> None:
    assert {BACKEND.support(make_request(state=state)).level for state in ("none", "stitched", "stateful")} == {
        "native"
    }


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (make_request(dtype="float64"), "only stores float64"),
        (make_request(dtype="float16"), "in float32 (INFERENCE_PRECISION_HINT=f32), and with int8 weights"),
        (make_request(dtype="int8_weights"), "makes float32 of int8 weights of its sequence operators"),
        (make_request(time="looped", route="onnx", dtype="int8_dynamic"), "models of route opset"),
        (make_request(time="looped", dtype="int8_dynamic"), "leaves operands of fewer elements in float32"),
        (replace(make_request(), route="torch"), "has the routes onnx, opset, and not torch"),
        (make_request(LSTM.model_copy(update={"projection": 2})), "has no projection"),
    ],
)
def test_what_it_refuses_has_a_reason(request_: Request, reason: str) -> None:
    support = BACKEND.support(request_)
    assert (support.level, reason in support.reason) == ("unsupported", True)


@pytest.mark.parametrize(("time", "state"), [("looped", "none"), ("unrolled", "stitched")])
@pytest.mark.parametrize(
    ("dtype", "least", "most"), [("int8_weights", 0.0, 1e-6), ("int8_dynamic", 1e-5, 0.05)], ids=["weights", "dynamic"]
)
def test_int8_weights_alone_are_exact_and_8_bit_activations_are_seen(
    tmp_path: Path, time: str, state: str, dtype: str, least: float, most: float
) -> None:
    if dtype == "int8_dynamic" and backend.overflows():
        pytest.skip("this processor has no VNNI: OpenVINO quantises no x and h on it")
    model = Model(cell="lstm", input=32, hidden=64)
    request, x = make_request(model, time, state, dtype=dtype), draw_inputs(model, 4, 2, 1)
    y = BACKEND.build(request, tmp_path).open().step({"x": x})["y"]
    assert least < np.abs(y - run_reference(model, request.weights, x).y).max() < most


def in_7_bits(weight: np.ndarray) -> np.ndarray:
    """Int8 weights that are half as large but for one, so that no two products overflow 16 bits."""
    small = weight / 2
    small.flat[np.abs(small).argmax()] *= 2
    return quantised(small).values


@pytest.mark.first(1)
@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize("time", ["looped", "unrolled"])
def test_fixed_ranges_are_constants_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: Any, time: str
) -> None:
    """y is that of the suite's own bytes: off by what float32 rounds, and not by a step of 8 bits."""
    monkeypatch.setattr(backend, "overflows", lambda: False)
    model = Model(cell=cell, input=20, hidden=48, layers=2)
    request, x = make_request(model, time, dtype="int8_static"), 2 * draw_inputs(model, 4, 2, 1)
    layers = (replace(w, w_ih=in_7_bits(w.w_ih), w_hh=in_7_bits(w.w_hh)) for w in request.weights.layers)
    request = replace(request, weights=Weights(tuple(layers)))
    program = BACKEND.build(request, tmp_path)
    y = program.open().step({"x": x})["y"]
    np.testing.assert_allclose(y, run_in(Arithmetic("int8_static"), model, request.weights, x).y, rtol=0, atol=1e-5)
    assert np.abs(y - run_reference(model, request.weights, x).y).max() > 1e-4
    assert program.artifact.int8_operations


@pytest.mark.parametrize("dtype", ["int8_static", "int8_dynamic"])
def test_8_bit_activations_are_unsupported_without_vnni(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    request = make_request(LSTM.model_copy(update={"input": 32, "hidden": 32}), "looped", dtype=dtype)
    for overflows, level in ((True, "unsupported"), (False, "native")):
        monkeypatch.setattr(backend, "overflows", lambda overflows=overflows: overflows)
        assert BACKEND.support(request).level == level


def test_a_sequence_operator_is_compiled_to_float32_weights() -> None:
    """Where this fails, OpenVINO has int8 in its operators, and the suite may have it with time fused."""
    w = opset.multiply(opset.convert(opset.constant(np.ones((1, 256, 32), np.int8)), np.float32), np.float32(0.1))
    r = opset.multiply(opset.convert(opset.constant(np.ones((1, 256, 64), np.int8)), np.float32), np.float32(0.1))
    x, h, c = (opset.parameter(shape, np.float32) for shape in ([1, 4, 32], [1, 1, 64], [1, 1, 64]))
    lengths, bias = opset.constant(np.array([4], np.int32)), opset.constant(np.zeros((1, 256), np.float32))
    node = opset.lstm_sequence(x, h, c, lengths, w, r, bias, 64, "FORWARD")
    model = ov.Model([opset.result(output) for output in node.outputs()], [x, h, c])
    compiled = ov.Core().compile_model(model, "CPU", config(make_request()))
    facts = [node.get_rt_info() for node in compiled.get_runtime_model().get_ordered_ops()]
    kinds = {(each["layerType"].astype(str), each["runtimePrecision"].astype(str)) for each in facts}
    assert ("RNNSeq", "f32") in kinds
    assert ("Const", "i8") not in kinds


@pytest.mark.first(1)
@pytest.mark.parametrize("route", ["onnx", "opset"])
@pytest.mark.parametrize("state", ["stitched", "stateful"])
@pytest.mark.parametrize(("time", "chunk"), [("parallel", 1), ("parallel", 4), ("chunked:4", 8)])
def test_a_tensor_that_openvino_joins_with_another_keeps_its_name(tmp_path, time, chunk, state, route) -> None:
    """In a batch of one, some layouts change nothing, and OpenVINO joins the tensors before and after them."""
    request = make_request(small("mingru"), time, state, route, chunk, batch=1)
    built_and_right(BACKEND, request, tmp_path)


def test_its_makers_are_told_nothing_and_the_home_folder_stays_empty(tmp_path: Path) -> None:
    """Where `openvino-telemetry` is installed, an import sends an event and counts itself in ~/intel."""
    assert distribution("openvino-telemetry").files
    subprocess.run([sys.executable, "-c", LOADS], check=True, env={**os.environ, "HOME": str(tmp_path)}, timeout=LONG_S)
    assert list(tmp_path.iterdir()) == []
