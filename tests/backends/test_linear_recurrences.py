"""Networks whose state is linear in itself, many steps at once, in real backends: what the recurrence gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from quick_tests import for_proof
from small_networks import small

from rnnbench.backends import find
from rnnbench.backends.base import BuildError, Program, Request
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn import Model, draw_inputs, draw_state, draw_weights, run_reference

STEPS, BATCH = 12, 2


def request_for(route: str, name: str, time: str, chunk: int) -> Request:
    network = small(name)
    strategy = Strategy(time, "stitched", chunk)
    return Request(route, network, draw_weights(network, 0), strategy, BATCH, Precision.of("float32"))


def built(cache_for: Callable[[str], Path], written: str, name: str, time: str, chunk: int) -> tuple[Request, Program]:
    """A request and its program, where the route is installed."""
    backend, _, route = written.partition(":")
    if lack := find(backend).probe().lack(route):
        pytest.skip(f"{written} {lack.reason}; {lack.install}")
    request = request_for(route, name, time, chunk)
    return request, find(backend).build(request, cache_for(written))


@pytest.mark.parametrize(
    ("written", "name", "time", "chunk", "lowered"),
    [
        *(
            ("numpy:eager", name, time, chunk, lowered)
            for name in ("mingru", "gla", "mamba2", "kws-svdf")
            for time, chunk, lowered in (
                ("parallel", 5, "parallel {}"),
                ("chunked:3", 6, "chunked {} of 3"),
                ("chunked:4", 4, "chunked {}"),
            )
        ),
        ("torch:eager", "mingru", "parallel", 5, "parallel {}"),
        ("torch:eager", "gla", "chunked:3", 6, "chunked {} of 3"),
        ("torch:eager", "mamba2", "parallel", 5, "parallel {}"),
        ("jax:jit", "mingru", "chunked:3", 6, "chunked {} of 3"),
        ("onnxruntime:onnx", "mingru", "parallel", 5, "parallel {}"),
        ("onnxruntime:onnx", "gla", "chunked:3", 6, "chunked {} of 3"),
        *(("onnxruntime:onnx", name, "fused", 5, "fused") for name in ("gla", "mamba2", "kws-svdf")),
        ("onnxruntime:loop", "mamba2", "chunked:3", 6, "chunked {} of 3"),
        ("torch:script", "gla", "chunked:3", 6, "chunked {} of 3"),
        ("openvino:opset", "gla", "parallel", 5, "parallel {}"),
        ("tensorflow:graph", "mingru", "parallel", 5, "parallel {}"),
        *for_proof(
            ("jax:jit", "mamba2", "parallel", 5, "parallel {}"),
            ("openvino:opset", "mingru", "chunked:3", 6, "chunked {} of 3"),
            ("openvino:opset", "mamba2", "chunked:4", 4, "chunked {}"),
            ("iree:linalg", "mingru", "chunked:3", 6, "chunked {} of 3"),
            ("tvm:relax", "mamba2", "chunked:3", 6, "chunked {} of 3"),
            ("tensorflow:xla", "mingru", "chunked:3", 6, "chunked {} of 3"),
            ("torch:compile", "mingru", "parallel", 6, "parallel {}"),
            *(("tvm:relax", name, "parallel", 5, "parallel {}") for name in ("gla", "kws-svdf")),
            ("tvm:relax", "mingru", "chunked:3", 6, "chunked {} of 3"),
        ),
    ],
)
def test_many_steps_at_once_are_the_recurrence(
    cache_for: Callable[[str], Path], written: str, name: str, time: str, chunk: int, lowered: str
) -> None:
    request, program = built(cache_for, written, name, time, chunk)
    network, session = request.model, program.open()
    assert program.artifact.lowered == lowered.format(sum(bool(layer.states) for layer in network.graph))
    x, start = draw_inputs(network, STEPS, BATCH, 1), draw_state(network, BATCH, 2)
    session.set_state(start)
    # Chunks of 5 leave a rest of 2 steps, which run as scans of one step: a second build, which costs most in Inductor.
    y = session.step({"x": x})["y"]
    expected = run_reference(network, request.weights, x, start)
    np.testing.assert_allclose(y, expected.y, rtol=1e-4, atol=1e-5)
    for key, array in session.get_state().items():
        np.testing.assert_allclose(array, expected.final[key], rtol=1e-4, atol=1e-5)
    session.close()
    program.close()


@pytest.mark.parametrize("written", ["numpy:eager", "torch:eager"])
def test_an_output_that_is_also_the_state_stays_after_a_reset(cache_for: Callable[[str], Path], written: str) -> None:
    request, program = built(cache_for, written, "mingru", "parallel", 1)
    session = program.open()
    bound = session.bind([{"x": draw_inputs(request.model, 1, BATCH, 1)}])
    bound()
    y = bound.output()["y"].copy()
    session.reset()
    np.testing.assert_array_equal(bound.output()["y"], y)
    assert np.abs(y).max() > 0
    session.close()
    program.close()


def test_a_route_without_a_primitive_refuses_it_by_name(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"onnx has not the primitive .*, which mingru.* needs with time parallel"):
        find("tvm").build(request_for("onnx", "mingru", "parallel", 4), tmp_path)


@pytest.mark.parametrize(
    ("backend", "route", "name", "reason"),
    [
        ("onnxruntime", "loop", "gla", "has not the operator linear_attention, which gla"),
        ("openvino", "onnx", "kws-svdf", "has not the operator causal_convolution, which kws-svdf"),
        ("onnxruntime", "onnx", "mingru", "No runtime has operators for all states of mingru"),
    ],
)
def test_a_route_without_an_operator_refuses_it_by_name(
    tmp_path: Path, backend: str, route: str, name: str, reason: str
) -> None:
    with pytest.raises(BuildError, match=reason):
        find(backend).build(request_for(route, name, "fused", 4), tmp_path)


def test_an_lstm_has_no_scan(tmp_path: Path) -> None:
    lstm = Model(cell="lstm", input=3, hidden=4)
    strategy = Strategy("parallel", "stitched", 4)
    request = Request("eager", lstm, draw_weights(lstm, 0), strategy, 1, Precision.of("float32"))
    with pytest.raises(BuildError, match="parallel needs states that are linear in themselves"):
        find("numpy").build(request, tmp_path)
