"""Converted models: what the converter makes, and that they run without TensorFlow."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite_files as files
from quick_tests import for_proof
from waiting import PATIENCE_S

from rnnbench.backends.base import BuildError, Program, Request
from rnnbench.backends.litert import LitertBackend
from rnnbench.backends.litert.convert import convert
from rnnbench.backends.litert.flatbuffer import Flatbuffer
from rnnbench.backends.shared import ChunkedSession
from rnnbench.backends.tensorflow.process import prepare_process
from rnnbench.cases.trial import Precision, State, Strategy
from rnnbench.model_files import FileNetwork, answered, describe, network_of, section_of
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights, draw_inputs, draw_state, draw_weights

pytest.importorskip("ai_edge_litert")
pytest.importorskip("tensorflow")

RUN = """
import json, pickle, sys
from rnnbench.backends.litert import LitertBackend
request, folder, x = pickle.load(sys.stdin.buffer)
backend = LitertBackend()
backend.load()
program = backend.build(request, folder)
y = program.open().step({"x": x})["y"]
print(json.dumps({"cached": program.cached, "tensorflow": "tensorflow" in sys.modules, "y": y.tolist()}))
"""


def make_request(
    time: str = "looped", state: State = "stateful", chunk: int = 4, dtype: str = "float32", **model: Any
) -> Request:
    spec = Model(**{"cell": "lstm", "input": 5, "hidden": 17, **model})
    weights = draw_weights(spec, 0, dtype)
    return Request("tensorflow", spec, weights, Strategy(time, state, chunk), 1, Precision.of(dtype))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("litert")


@pytest.fixture(scope="session")
def build(folder: Path) -> Callable[..., Program]:
    backend = LitertBackend()
    backend.load()

    @cache
    def built(**options: Any) -> Program:
        return backend.build(make_request(**options), folder)

    return built


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "looped 1"),
        ({"time": "unrolled:2"}, "looped 1 of 2"),
        ({"time": "fused"}, "fused"),
        ({"cell": "gru", "layers": 2}, "looped 2"),
        ({"cell": "rnn", "time": "unrolled", "state": "stitched"}, "unrolled 4"),
        *for_proof(
            ({"chunk": 1}, "looped 1"),
            ({"time": "unrolled"}, "unrolled 4"),
            ({"cell": "rnn", "activation": "relu"}, "looped 1"),
            ({"cell": "counter", "input": 4, "hidden": 4, "time": "unrolled"}, "unrolled 4"),
        ),
    ],
    ids=str,
)
def test_lowered_is_read_from_the_operators_of_a_model(build, options: dict[str, Any], expected: str) -> None:
    artifact = build(**options).artifact
    assert artifact.lowered == expected
    assert artifact.operations["compiled"].get("WHILE", 0) == (0 if "looped" not in expected else int(expected[7]))


def test_a_loop_writes_rows_of_y_in_place(build) -> None:
    operations = build().artifact.operations["compiled"]
    assert operations["DYNAMIC_UPDATE_SLICE"] == 1
    assert "SLICE" not in operations


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("options", "products"),
    [
        ({"projection": 5}, 3),
        ({"time": "unrolled", "cell": "gru"}, 5),
    ],
    ids=str,
)
def test_every_product_of_a_matrix_has_int8_weights(build, options: dict[str, Any], products: int) -> None:
    """One of x for all steps, and one of each other matrix for each copy of the cell."""
    artifact = build(dtype="int8_dynamic", **options).artifact
    assert artifact.int8_operations == ("FULLY_CONNECTED int8",)
    assert artifact.operations["compiled"]["FULLY_CONNECTED int8"] == products
    assert "FULLY_CONNECTED" not in artifact.operations["compiled"]


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("strategy", "level"),
    [
        ({"time": "unrolled", "chunk": 1}, "unsupported"),
        ({"time": "looped", "chunk": 1}, "native"),
        ({"time": "unrolled", "chunk": 2}, "native"),
    ],
    ids=str,
)
def test_one_step_from_zeros_has_no_recurrent_product_to_be_in_int8(strategy: dict[str, Any], level: str) -> None:
    """The converter folds it away. Where it stays, the program is built with all of its matrices in int8."""
    request = make_request(state="none", dtype="int8_dynamic", **strategy)
    assert LitertBackend().support(request).level == level
    if level == "unsupported":
        with pytest.raises(BuildError, match="1 of 2 matrices are in no FULLY_CONNECTED"):
            Flatbuffer(convert(request)).set_int8_weights(request.weights)
    else:
        Flatbuffer(convert(request)).set_int8_weights(request.weights)


def test_a_matrix_that_is_in_no_product_is_not_passed_over() -> None:
    request = make_request(time="unrolled", cell="rnn", chunk=1, dtype="int8_dynamic")
    model = Flatbuffer(convert(request))
    others = draw_weights(request.stack, 1, "int8_dynamic")
    with pytest.raises(BuildError, match="2 of 2 matrices are in no FULLY_CONNECTED as a whole"):
        model.set_int8_weights(others)


@pytest.mark.parametrize("cell_clip", [None, 0.2])
def test_the_fused_operator_clips_what_the_model_clips_and_not_at_ten(build, cell_clip: float | None) -> None:
    request = make_request(time="fused", cell_clip=cell_clip)
    program = build(time="fused", cell_clip=cell_clip)
    session, x = program.open(), draw_inputs(request.model, 4, 1, seed=1)
    state = {name: (200 if name == "c" else 1) * array for name, array in draw_state(request.model, 1, seed=1).items()}
    session.set_state(state)
    expected = run_reference(request.model, request.weights, x, state)
    np.testing.assert_allclose(session.step({"x": x})["y"], expected.y, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(session.get_state()["c"], expected.final["c"], rtol=2e-5, atol=2e-5)
    assert (abs(expected.final["c"]).max() > 10) == (cell_clip is None)


def test_an_interpreter_has_the_threads_of_the_request(build, monkeypatch: pytest.MonkeyPatch) -> None:
    from ai_edge_litert import interpreter

    made, threads = interpreter.Interpreter, []

    def noted(**options: Any) -> Any:
        threads.append(options["num_threads"])
        return made(**options)

    program = build()
    monkeypatch.setattr(interpreter, "Interpreter", noted)
    monkeypatch.setattr(program, "request", replace(program.request, threads=3))
    program.open().close()
    assert threads == [3]


@pytest.mark.first(1)
@pytest.mark.parametrize("time", ["looped", "fused"])
def test_a_converted_model_runs_without_tensorflow(build, folder: Path, time: str) -> None:
    program, request = build(time=time), make_request(time=time)
    x = draw_inputs(request.model, 4, 1, seed=1)
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=pickle.dumps((request, folder, x)),
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    result = json.loads(done.stdout)
    assert (result["cached"], result["tensorflow"]) == (True, False)
    np.testing.assert_array_equal(np.array(result["y"], np.float32), program.open().step({"x": x})["y"])


def save_loop(path: Path) -> None:
    """A loop, with a flag as an argument, and another signature with the same names."""
    prepare_process(1)
    import tensorflow as tf

    weights = tf.constant(np.random.default_rng(0).standard_normal((8, 8)), tf.float32)
    signature = [tf.TensorSpec((1, 4, 8), tf.float32, "x"), tf.TensorSpec((), tf.bool, "reset")]

    def loop(x: Any, reset: Any) -> dict[str, Any]:
        start = (
            0,
            tf.where(reset, tf.zeros((1, 8)), tf.ones((1, 8))),
            tf.TensorArray(tf.float32, 4, element_shape=(1, 8)),
        )

        def step(at: Any, h: Any, made: Any) -> tuple[Any, Any, Any]:
            h = tf.tanh(x[:, at] + h @ weights)
            return at + 1, h, made.write(at, h)

        *_, made = tf.while_loop(lambda at, *_: at < 4, step, start)
        return {"y": tf.transpose(made.stack(), [1, 0, 2])}

    network = tf.Module()
    network.weights = weights
    network.loop = tf.function(loop, input_signature=signature, autograph=False)
    network.other = tf.function(lambda x, reset: {"y": x * 3.0}, input_signature=signature, autograph=False)
    signatures = {"other": network.other, "serving_default": network.loop}
    saved = str(path.with_name("saved"))
    tf.saved_model.save(network, saved, signatures=signatures)
    path.write_bytes(tf.lite.TFLiteConverter.from_saved_model(saved, signature_keys=[*signatures]).convert())


def test_a_file_with_a_loop_a_flag_and_several_signatures_runs_as_the_oracle(tmp_path: Path) -> None:
    """A loop moves tensors in the interpreter's memory. Another signature has the same names."""
    path = tmp_path / "loop.tflite"
    save_loop(path)
    found = describe(path)
    section = answered(section_of(found, path.name), found, ["constants.reset=true"])
    network = network_of(path, section, found)
    x = draw_inputs(network, 6, 1, 0)
    expected = [run_reference(network, Weights(), step[None], {}).y[0] for step in x]
    request = Request("tensorflow", network, Weights(), Strategy("given", "none", 1), 1, Precision.of("float32"))
    session = LitertBackend().build(request, tmp_path / "cache").open()
    bound = session.bind([{"x": step[None]} for step in x])
    for step in range(60):
        bound()
        np.testing.assert_allclose(bound.output()["y"][0], expected[step % 6], atol=1e-6)


KINDS = pytest.mark.parametrize(("kind", "error"), [("float32", 1e-6), ("weights", 0.03), ("int8", 0.05)])


def session_of(path: Path, state: State, answers: list[str], cache: Path) -> tuple[FileNetwork, ChunkedSession]:
    found = describe(path)
    section = answered(section_of(found, path.name), found, answers)
    network = network_of(path, section, found)
    request = Request("tensorflow", network, Weights(), Strategy("given", state, 1), 1, Precision.of("float32"))
    return network, LitertBackend().build(request, cache).open()


@KINDS
@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_an_operators_own_state_is_kept_reset_read_and_set(
    tmp_path: Path, state: State, kind: str, error: float
) -> None:
    path = files.saved(files.lstm(kind), tmp_path / "lstm.tflite")
    network, session = session_of(path, state, [], tmp_path / "cache")
    x = draw_inputs(network, 4, 1, 0)
    expected = run_reference(network, Weights(), x).y
    for _ in range(2):
        for step in range(4):
            np.testing.assert_allclose(session.step({"x": x[step][None]})["y"][0], expected[step], atol=error)
            if step == 1:
                kept = session.get_state()
        session.reset()
    bound = session.bind([{"x": step[None]} for step in x])
    for step in range(4):
        bound()
        np.testing.assert_allclose(bound.output()["y"][0], expected[step], atol=error)
    session.set_state(kept)
    for name, value in session.get_state().items():
        np.testing.assert_array_equal(value, kept[name])
    np.testing.assert_allclose(session.step({"x": x[2][None]})["y"][0], expected[2], atol=error)


@pytest.mark.parametrize(
    ("made", "state", "level", "reason"),
    [
        (files.lstm, "stateful", "native", ""),
        (files.lstm, "stitched", "emulated", "in tensors of their own"),
        (partial(files.elman, batch=1), "stateful", "emulated", "in its buffers"),
        (partial(files.elman, batch=1), "stitched", "native", ""),
    ],
)
def test_litert_keeps_the_states_of_operators_own_and_takes_those_that_are_inputs(
    tmp_path: Path, made: Callable[[], Any], state: State, level: str, reason: str
) -> None:
    path = files.saved(made(), tmp_path / "net.tflite")
    found = describe(path)
    network = network_of(path, section_of(found, path.name), found)
    request = Request("tensorflow", network, Weights(), Strategy("given", state, 1), 1, Precision.of("float32"))
    support = LitertBackend().support(request)
    assert support.level == level
    assert reason in support.reason


@KINDS
def test_an_operators_own_state_may_be_zero_in_every_call(tmp_path: Path, kind: str, error: float) -> None:
    path = files.saved(files.lstm(kind), tmp_path / "lstm.tflite")
    zero = ["state={}", "constants.lstm_h=0", "constants.lstm_c=0", "outputs=[y]"]
    network, session = session_of(path, "none", zero, tmp_path / "cache")
    x = draw_inputs(network, 3, 1, 0)
    expected = [run_reference(network, Weights(), step[None], {}).y[0] for step in x]
    for step in (0, 1, 2, 1, 0):
        np.testing.assert_allclose(session.step({"x": x[step][None]})["y"][0], expected[step], atol=error)
    bound = session.bind([{"x": x[:1]}])
    bound()
    first = bound.output()["y"].copy()
    bound()
    np.testing.assert_array_equal(bound.output()["y"], first)


@pytest.mark.proof
def test_a_layer_of_keras_whose_loop_gives_its_states_runs_as_the_oracle(tmp_path: Path) -> None:
    """What a loop gives has no memory before the first call."""
    prepare_process(1)
    import keras
    import tensorflow as tf

    x, h, c = (keras.Input(shape, batch_size=1, name=name) for name, shape in (("x", (1, 3)), ("h", (4,)), ("c", (4,))))
    y, *after = keras.layers.LSTM(4, return_sequences=True, return_state=True)(x, initial_state=[h, c])
    converter = tf.lite.TFLiteConverter.from_keras_model(keras.Model([x, h, c], [y, *after]))
    path = tmp_path / "layer.tflite"
    path.write_bytes(converter.convert())
    found = describe(path)
    assert found.operators["WHILE"] == 1
    section = answered(section_of(found, path.name), found, ["state.h=output_1", "state.c=output_2"])
    network = network_of(path, section, found)
    x, start = draw_inputs(network, 4, 1, 0), draw_state(network, 1, 0)
    request = Request("tensorflow", network, Weights(), Strategy("given", "stitched", 1), 1, Precision.of("float32"))
    session = LitertBackend().build(request, tmp_path / "cache").open()
    session.set_state(start)
    y = np.concatenate([session.step({"x": step[None]})["y"] for step in x])
    np.testing.assert_allclose(y, run_reference(network, Weights(), x, start).y, atol=1e-6)


def test_a_bound_ring_of_a_file_is_the_callers_again(tmp_path: Path) -> None:
    """An input in the order of the file is no copy by itself."""
    path = files.saved(files.elman(batch=1), tmp_path / "cell.tflite")
    found = describe(path)
    network = network_of(path, section_of(found, path.name), found)
    request = Request("tensorflow", network, Weights(), Strategy("given", "stitched", 1), 1, Precision.of("float32"))
    session = LitertBackend().build(request, tmp_path / "cache").open()
    ring = [{"x": x[None].copy()} for x in draw_inputs(network, 2, 1, 0)]
    expected = [session.step(chunk)["y"].copy() for chunk in ring]
    session.reset()
    bound = session.bind(ring)
    for chunk in ring:
        chunk["x"].fill(7)
    for y in expected:
        bound()
        np.testing.assert_array_equal(bound.output()["y"], y)


def test_a_bound_stream_goes_on_from_a_state_that_was_set_and_after_another_one(build) -> None:
    """A call copies the state from where the last call left it, or from what was set since."""
    program = build(state="stitched", time="unrolled", chunk=1)
    model = program.request.model
    x, given = draw_inputs(model, 4, 1, 0), draw_state(model, 1, 5)
    expected = run_reference(model, program.request.weights, x, given)
    session = program.open()
    ring = [{"x": step} for step in np.split(x, 4)]
    first, second = session.bind(ring[:2]), session.bind(ring[2:])
    session.set_state(given)
    outputs = []
    for bound in (first, first, second, second):
        bound()
        outputs.append(bound.output()["y"])
    np.testing.assert_allclose(np.concatenate(outputs), expected.y, atol=2e-5)
    for name, value in session.get_state().items():
        np.testing.assert_allclose(value, expected.final[name], atol=2e-5)
