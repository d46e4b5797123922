"""A stream of a file's program, held to the reference and to the file's types."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx_files as files
from onnx import TensorProto

from rnnbench.backends.base import Backend, Program, Request
from rnnbench.backends.shared.sessions import rnn_signature
from rnnbench.cases import Precision, State, Strategy
from rnnbench.conformance.rounding import Y, expected_rounding
from rnnbench.conformance.tolerance import Errors
from rnnbench.model_files import FileSection, answered, describe, network_of, section_of
from rnnbench.rnn import Weights, draw_inputs, draw_state, run_reference

STEPS = 4
FLOATS = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16, "float64": TensorProto.DOUBLE}
WHOLE = {"int64": TensorProto.INT64, "int32": TensorProto.INT32, "uint8": TensorProto.UINT8, "bool": TensorProto.BOOL}


def asked(path: Path, route: str, answers: Sequence[str], state: State) -> Request:
    """A file with the answers that a user gives."""
    found = describe(path)
    network = network_of(path, answered(section_of(found, path.name), found, answers), found)
    return Request(route, network, Weights(), Strategy("given", state, 1), 1, Precision.of(network.dtype))


def request_for(path: Path, state: State, section: FileSection) -> Request:
    network = network_of(path, section, describe(path))
    return Request("onnx", network, Weights(), Strategy("given", state, 1), 1, Precision.of(network.dtype))


def cell_request(dtype: str, folder: Path, state: State = "stitched", activation: str = "Tanh") -> Request:
    """A cell by hand whose arrays are all of a type."""
    proto = files.typed(files.cell("x", ["h"], ["next_h"]), FLOATS[dtype])
    for node in proto.graph.node:
        node.op_type = activation if node.op_type == "Tanh" else node.op_type
    path = files.saved(proto, folder / "cell.onnx")
    return request_for(path, state, FileSection(path.name, {"h": "next_h"}))


def ring_request(dtype: str, folder: Path, state: State = "stitched") -> Request:
    """A buffer, and where its next value goes, of whole numbers of a type."""
    path = files.saved(files.ring_buffer(WHOLE[dtype]), folder / "ring.onnx")
    states = {"buffer": "next_buffer", "step": "next_step"}
    return request_for(path, state, FileSection(path.name, states, batch=0))


def flag_request(folder: Path, state: State = "stitched") -> Request:
    """A cell with a flag that makes its state zero, new in each call."""
    path = files.saved(files.reset(), folder / "reset.onnx")
    return request_for(path, state, FileSection(path.name, {"h": "next_h"}, outputs=("y",)))


def assert_as_the_oracle(program: Program, request: Request) -> None:
    """A float32 program gives the oracle's numbers from a state that is not zero, by either path."""
    network = request.model
    x, start = draw_inputs(network, STEPS, request.batch, 0), draw_state(network, request.batch, 0)
    expected = run_reference(network, Weights(), x, start)
    session = program.open()
    session.set_state(start)
    np.testing.assert_allclose(session.step({"x": x})["y"], expected.y, atol=1e-6)
    np.testing.assert_allclose(session.get_state()["h"], expected.final["h"], atol=1e-6)
    session.set_state(start)
    bound = session.bind([{"x": x[:1]}, {"x": x[1:2]}])
    for step in range(2):
        bound()
        np.testing.assert_allclose(bound.output()["y"], expected.y[step : step + 1], atol=1e-6)
    session.close()


def assert_right(backend: Backend, request: Request, cache: Path) -> None:
    network, dtype = request.model, request.precision.state
    assert backend.support(request).level in ("native", "emulated")
    x, start = draw_inputs(network, STEPS, 1, 0, dtype), draw_state(network, 1, 0, dtype)
    exact = run_reference(network, Weights(), x, start)
    rounding = expected_rounding(network, Weights(), x, start, dtype, 0)
    session = backend.build(request, cache).open()
    fresh = session.get_state()
    session.set_state(start)
    read = session.get_state()
    y, errors = session.step({"x": x})["y"], Errors()
    errors.add("y", y, exact.y, rounding[Y].at(STEPS - 1))
    for name, array in session.get_state().items():
        errors.add(f"state {name}", array, exact.final[name], rounding[name].at(STEPS - 1))
    verdict = errors.verdict()
    assert verdict.verdict == "pass", verdict.detail
    signature = rnn_signature(request)
    assert {spec.name: spec.dtype for spec in signature.of("state")} == {n: a.dtype.name for n, a in read.items()}
    assert y.dtype.name == signature.of("output")[0].dtype
    session.set_state(start)
    bound = session.bind([{"x": x[:1]}, {"x": x[1:2]}])
    for step in range(2):
        bound()
        bound.sync()
        errors.add("bound y", bound.output()["y"], exact.y[step : step + 1], rounding[Y].at(step))
    assert errors.verdict().verdict == "pass", errors.verdict().detail
    for name, array in start.items():
        np.testing.assert_array_equal(read[name], array)
        assert not fresh[name].any()
