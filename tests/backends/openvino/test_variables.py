"""Variables through the C API's requests and through Python's: the same states, names of any length, nothing kept."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from rnnbench.backends.base import Request
from rnnbench.backends.openvino import OpenVinoBackend, variables
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs, draw_state, draw_weights

ov = pytest.importorskip("openvino")
opset = pytest.importorskip("openvino.opset13")
c_api = pytest.importorskip("rnnbench.backends.openvino.c_api")
device = pytest.importorskip("rnnbench.backends.openvino.device")

STACK = Model(cell="lstm", input=4, hidden=6, layers=2)
WIDE = Model(cell="lstm", input=4, hidden=256, layers=2)


def request_of(route: str = "onnx", time: str = "fused", state: Any = "stateful") -> Request:
    return Request(route, STACK, draw_weights(STACK, 1), Strategy(time, state, 3), 2, Precision.of("float32"))


@pytest.fixture(params=["c", "python"])
def api(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Python's where the functions of the variables are not in the library under their names."""
    if request.param == "python":
        monkeypatch.setattr(variables, "QUERY_STATE", "_ZN2ov12InferRequest11query_stateE_renamed")
        monkeypatch.setattr(variables, "FUNCTIONS", (variables.QUERY_STATE,))
    return str(request.param)


@pytest.mark.first(2)
@pytest.mark.parametrize(("route", "time"), [("onnx", "fused"), ("opset", "looped"), ("onnx", "unrolled")])
def test_a_state_is_kept_read_written_and_reset(tmp_path: Path, api: str, route: str, time: str) -> None:
    request = request_of(route, time)
    program = OpenVinoBackend().build(request, tmp_path)
    assert isinstance(program.compiled, c_api.Model) is (api == "c")
    x, given = draw_inputs(STACK, 9, 2, 1), draw_state(STACK, 2, 5)
    from_zeros = run_reference(STACK, request.weights, x)
    from_given = run_reference(STACK, request.weights, x, given)
    session, other = program.open(), program.open()
    for expected in (from_zeros, from_given, from_zeros):
        if expected is from_given:
            session.set_state(given)
            for name, value in session.get_state().items():
                np.testing.assert_array_equal(value, given[name])
        else:
            session.reset()
        y = session.step({"x": x})["y"]
        np.testing.assert_allclose(y, expected.y, atol=2e-5)
        for name, value in session.get_state().items():
            np.testing.assert_allclose(value, expected.final[name], atol=2e-5)
        assert all(not value.any() for value in other.get_state().values())


def test_notes_say_which_api_makes_the_calls(tmp_path: Path, api: str) -> None:
    notes = OpenVinoBackend().build(request_of(), tmp_path).artifact.notes
    assert any("Calls use the C API" in note for note in notes) is (api == "c")


def test_an_older_openvino_takes_an_exported_model_as_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class OlderCore(ov.Core):  # type: ignore[misc]
        def import_model(self, model: Any, *rest: Any) -> Any:
            if isinstance(model, ov.Tensor):
                raise TypeError("incompatible function argument: `model_stream` must be an io.BytesIO object or bytes")
            return super().import_model(model, *rest)

    monkeypatch.setattr(variables, "FUNCTIONS", ("_renamed",))
    monkeypatch.setattr(device.ov, "Core", OlderCore)
    request = request_of()
    x = draw_inputs(STACK, 3, 2, 1)
    y = OpenVinoBackend().build(request, tmp_path).open().step({"x": x})["y"]
    np.testing.assert_allclose(y, run_reference(STACK, request.weights, x).y, atol=2e-5)


@pytest.mark.parametrize("name", ["h", "h" * 15, "h" * 16, "h" * 70])
def test_a_variable_is_found_by_its_whole_name(tmp_path: Path, name: str) -> None:
    x, before = opset.parameter([1, 4], np.float32, name="x"), opset.constant(np.zeros((1, 4), np.float32))
    total = opset.add(opset.read_value(before, name, np.float32, [1, 4]), x)
    result = opset.result(total)
    for array, node in (("x", x), ("y", result)):
        node.output(0).get_tensor().set_names({array})
    device.save(ov.Model([result], [opset.assign(total, name)], [x]), tmp_path)
    model = c_api.Model(tmp_path, request_of())
    arrays = {"x": np.ones((1, 4), np.float32), "y": np.zeros((1, 4), np.float32)}
    request = model.request(arrays)
    found = variables.Variables(request)
    assert found.names == (name,)
    found.write(name, np.full((1, 4), 5, np.float32))
    c_api.inference(request)()
    np.testing.assert_array_equal(found.read(name), [6, 6, 6, 6])


@pytest.mark.proof
def test_sessions_that_come_and_go_leave_no_memory(tmp_path: Path) -> None:
    """A session has a megabyte of states. Each one that was kept would show."""
    request = replace(request_of(), model=WIDE, weights=draw_weights(WIDE, 1), batch=256)
    program = OpenVinoBackend().build(request, tmp_path)
    x = draw_inputs(WIDE, 3, 256, 1)

    def use(times: int) -> None:
        for _ in range(times):
            session = program.open()
            session.step({"x": x})
            session.set_state(session.get_state())
            session.close()
            del session
        gc.collect()

    use(20)
    before = psutil.Process().memory_info().rss
    use(60)
    assert psutil.Process().memory_info().rss - before < 16 << 20
