"""Streams through a compiled program: against the oracle, again and again, and apart from one another."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from quick_tests import for_proof
from waiting import PATIENCE_S

from rnnbench.backends.iree import runtime
from rnnbench.backends.iree.runtime import VARIABLE, allocated, environment
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.weights import draw_inputs, draw_state

TOLERANCE = 2e-6
"""Some 20 times what these models were seen to differ by; states and outputs are below 1."""
STATES = ["stitched", "stateful"]


def stream(program: Any, chunks: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    request = program.request
    return (
        draw_inputs(request.model, chunks * request.strategy.chunk, request.batch, 5),
        draw_state(request.model, request.batch, 5),
    )


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "keywords",
    [
        {"state": "stitched"},
        {"state": "stateful"},
        *for_proof(
            {"state": "stitched", "input": 1, "hidden": 1, "time": "unrolled"},
            {"state": "stitched", "cell": "gru", "reset_after": False, "batch": 3},
            {
                "state": "stateful",
                "cell": "rnn",
                "hidden": 1,
                "layers": 2,
                "chunk": 1,
                "activation": "relu",
                "bias": False,
            },
        ),
    ],
    ids=str,
)
def test_calls_in_a_row_agree_with_the_oracle(build: Any, keywords: dict[str, Any]) -> None:
    """Twice over: a program that writes over its own weights or biases is right the first time at most.

    `test_common.py` has other cells, again and again through bound calls.
    """
    program = build(**keywords)
    session = program.open()
    x, start = stream(program, 3)
    expected = run_reference(program.request.model, program.request.weights, x, start)
    before = x.copy()
    for _ in range(2):
        session.set_state(start)
        y = session.step({"x": x})["y"]
        np.testing.assert_allclose(y, expected.y, rtol=0, atol=TOLERANCE)
        for name, array in session.get_state().items():
            np.testing.assert_allclose(array, expected.final[name], rtol=0, atol=TOLERANCE)
    np.testing.assert_array_equal(x, before)
    session.close()


@pytest.mark.proof
@pytest.mark.parametrize(
    "keywords",
    [
        {"direction": "reverse", "time": "looped", "layers": 2},
        {"direction": "bidirectional", "time": "unrolled", "cell": "rnn", "chunk": 2},
    ],
    ids=str,
)
def test_whole_sequences_run_backwards(build: Any, keywords: dict[str, Any]) -> None:
    program = build(state="none", batch=3, **keywords)
    x, _ = stream(program, 1)
    expected = run_reference(program.request.model, program.request.weights, x).y
    session = program.open()
    for _ in range(2):
        np.testing.assert_allclose(session.step({"x": x})["y"], expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("state", STATES)
def test_two_streams_of_one_program_are_apart(build: Any, state: str) -> None:
    program = build(state=state)
    first, second = program.open(), program.open()
    x, start = stream(program, 2)
    alone = first.step({"x": x})["y"]
    first.set_state(start)
    np.testing.assert_array_equal(second.step({"x": x})["y"], alone)
    for name, array in first.get_state().items():
        np.testing.assert_array_equal(array, start[name])


@pytest.mark.parametrize("state", STATES)
def test_a_bound_is_the_same_stream_as_step(build: Any, state: str) -> None:
    """It survives a state that is set, and steps may come between its calls."""
    program = build(state=state)
    session = program.open()
    x, start = stream(program, 8)
    chunks = np.split(x, 8)
    bound = session.bind([{"x": chunk} for chunk in chunks])
    session.set_state(start)
    expected = [session.step({"x": chunk})["y"] for chunk in chunks]

    session.set_state(start)
    for y in expected:
        bound()
        np.testing.assert_array_equal(bound.output()["y"], y)

    session.set_state(start)
    bound()
    np.testing.assert_array_equal(session.step({"x": chunks[1]})["y"], expected[1])
    np.testing.assert_array_equal(bound.output()["y"], expected[0])


@pytest.mark.parametrize("state", STATES)
def test_what_was_returned_stays_as_it_was(build: Any, state: str) -> None:
    """The runtime's own arrays are views of buffers that die or are used again."""
    program = build(state=state)
    session = program.open()
    x, _ = stream(program, 8)
    bound = session.bind([{"x": chunk} for chunk in np.split(x, 8)])
    bound()
    y, held = bound.output()["y"], session.get_state()
    copies = y.copy(), {name: array.copy() for name, array in held.items()}
    for _ in range(50):
        bound()
    session.close()
    np.testing.assert_array_equal(y, copies[0])
    for name, array in held.items():
        np.testing.assert_array_equal(array, copies[1][name])


def test_one_thread_is_the_callers_own() -> None:
    """Steps use no time of another thread. (The runtime's configuration starts one, which waits.)"""
    code = """
import numpy, pathlib, psutil, tempfile
from rnnbench.backends.base import Request
from rnnbench.backends.iree import IreeBackend
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights
model = Model(cell="counter", input=2, hidden=2)
request = Request("linalg", model, Weights(()), Strategy("looped", "stateful", 1), 1, Precision.of("float32"))
process = psutil.Process()
with tempfile.TemporaryDirectory() as cache:
    session = IreeBackend().build(request, pathlib.Path(cache)).open()
    x = {"x": numpy.ones((1, 1, 2), numpy.float32)}
    session.step(x)
    before = {thread.id: thread for thread in process.threads()}
    for _ in range(5000):
        session.step(x)
used = [(one.id, one.user_time - before[one.id].user_time) for one in process.threads() if one.id in before]
others = [seconds for thread, seconds in used if thread != process.pid]
print(len(process.threads()) - len(before), f"{sum(others):g}")
"""
    pytest.importorskip("iree.runtime")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == "0 0"


def test_more_threads_are_asked_for_through_the_environment(request_of: Any) -> None:
    assert environment(request_of()) == {}
    assert environment(replace(request_of(), threads=2)) == {VARIABLE: "--task_topology_group_count=2"}
    assert environment(replace(request_of(), device="vulkan")) == {"LP_NUM_THREADS": "1"}


def test_one_thread_is_of_the_device_without_workers_and_more_are_of_that_with_them(
    request_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import iree.runtime as rt

    monkeypatch.setattr(rt, "get_device", lambda driver: driver)
    monkeypatch.setenv(VARIABLE, "--task_topology_group_count=2")
    devices = [runtime._device(replace(request_of(), threads=threads)) for threads in (1, 2)]
    assert devices == ["local-sync", "local-task"]


def test_a_runtime_without_statistics_counts_nothing_and_loads_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    import iree.runtime as rt

    device = SimpleNamespace(allocator=SimpleNamespace(has_statistics=False, statistics={}))
    monkeypatch.setattr(rt, "get_device", lambda driver: device)
    runtime._counted_when_empty.cache_clear()
    assert runtime._counted_when_empty("vulkan") is None
    assert allocated("vulkan") is None
    assert allocated("cpu") is None
    runtime._counted_when_empty.cache_clear()
