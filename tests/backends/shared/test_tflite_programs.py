"""Programs of a user's TFLite file: LiteRT and OpenVINO give what the oracle gives, from any state, by either path."""

from __future__ import annotations

import numpy as np
import pytest
import tflite_files as files
import typed_streams as typed

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.litert import LitertBackend
from rnnbench.backends.openvino import OpenVinoBackend
from rnnbench.cases import Precision, Strategy
from rnnbench.conformance.rounding import Y, expected_rounding
from rnnbench.conformance.tolerance import FACTOR
from rnnbench.model_files import describe, network_of, section_of
from rnnbench.rnn import Weights, draw_inputs, run_reference

TARGETS = [(LitertBackend, "tensorflow"), (OpenVinoBackend, "opset")]
STEPS = 6


FILES = {
    "alone": files.elman,
    "behind another": lambda: files.behind_another(files.elman()),
    "without a signature": lambda: files.without_signature(files.elman()),
    "adding x": files.adding,
    "giving its state": lambda: files.giving_its_state(files.elman()),
}


@pytest.fixture(params=list(FILES))
def network(tmp_path, request):
    path = files.saved(FILES[request.param](), tmp_path / "cell.tflite")
    description = describe(path)
    return network_of(path, section_of(description, path.name), description)


def request(network, route, state):
    return Request(route, network, Weights(), Strategy("given", state, 1), 2, Precision.of("float32"))


@pytest.mark.first(6)
@pytest.mark.parametrize("state", ["stitched", "stateful"])
@pytest.mark.parametrize(("backend", "route"), TARGETS)
def test_a_stream_is_the_oracles(network, tmp_path, backend, route, state):
    asked = request(network, route, state)
    program = backend().build(asked, tmp_path / "cache")
    typed.assert_as_the_oracle(program, asked)
    assert program.artifact.lowered == "given"
    program.close()


@pytest.mark.parametrize("kind", ["int8", "int16"])
@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_quantised_ends_are_float32_and_within_the_tolerance_in_litert(tmp_path, state, kind):
    path = files.saved(files.quantised(files.elman(), kind), tmp_path / "cell.tflite")
    description = describe(path)
    network = network_of(path, section_of(description, path.name), description)
    x = draw_inputs(network, STEPS, 2, 0)
    expected = run_reference(network, Weights(), x)
    allowed = FACTOR * expected_rounding(network, Weights(), x, None, "float32", 0)[Y].over(STEPS)
    assert 1e-5 < allowed.max() < (0.3 if kind == "int8" else 0.003)
    backend, route = next(target for target in TARGETS if target[1] == "tensorflow")
    program = backend().build(request(network, route, state), tmp_path / "cache")
    session = program.open()
    y = session.step({"x": x})["y"]
    assert y.dtype == np.float32
    assert (np.abs(y - expected.y) <= allowed).all()
    held = session.get_state()["h"]
    assert np.abs(held - expected.final["h"]).max() <= allowed[-1].max()
    session.reset()
    bound = session.bind([{"x": x[:1]}])
    bound()
    np.testing.assert_array_equal(bound.output()["y"], y[:1])
    assert "it has QUANTIZE and DEQUANTIZE at its ends" in program.artifact.notes[0]
    session.close()
    program.close()


@pytest.mark.first(2)
@pytest.mark.parametrize("state", ["stitched", "stateful"])
@pytest.mark.parametrize(("backend", "route"), TARGETS)
@pytest.mark.parametrize("shape", [(-1, 1), ()])
def test_a_counter_is_a_state_of_whole_numbers(tmp_path, backend, route, state, shape):
    path = files.saved(files.counting(shape), tmp_path / "cell.tflite")
    asked = typed.asked(path, route, ("state.n=n_out", *(() if shape else ("batch=0", "time=null"))), state)
    assert asked.model.types == {"float32", "int32"}
    typed.assert_right(backend(), asked, tmp_path)


@pytest.mark.first(1)
@pytest.mark.parametrize("state", ["stitched", "stateful"])
@pytest.mark.parametrize(("backend", "route"), TARGETS)
def test_variables_are_states(tmp_path, backend, route, state):
    path = files.saved(files.in_variables(gain=2.0), tmp_path / "cell.tflite")
    typed.assert_right(backend(), typed.asked(path, route, ("batch=0", "time=null"), state), tmp_path)


@pytest.mark.parametrize("state", ["stitched", "stateful"])
@pytest.mark.parametrize(("backend", "route"), TARGETS)
def test_a_tensor_that_is_two_outputs_of_a_file_without_a_signature(tmp_path, backend, route, state):
    """As onnx2tf writes a cell that gives its state. The outputs are called by their places."""
    path = files.saved(files.without_signature(files.giving_its_state(files.elman())), tmp_path / "cell.tflite")
    typed.assert_right(backend(), typed.asked(path, route, ("state.h=output0",), state), tmp_path)


def test_a_route_that_does_not_read_the_format_says_which_does(network, tmp_path):
    with pytest.raises(BuildError, match="openvino:onnx reads no tflite files; use openvino:opset"):
        OpenVinoBackend().build(request(network, "onnx", "stitched"), tmp_path)
