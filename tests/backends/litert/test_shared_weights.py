"""Programs of many copies, which share their packed weights: when they do, and that they run as in the interpreter."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quick_tests import for_proof

from rnnbench.backends.base import OperationStage, Request
from rnnbench.backends.litert import LitertBackend, shared_weights, store
from rnnbench.backends.litert.runtime import LitertProgram, LitertSession
from rnnbench.backends.litert.shared_weights import SharingSession, repeats_much
from rnnbench.cases.trial import Precision, State, Strategy
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights, draw_inputs, draw_state, draw_weights

STEPS = 4
FACTS = store.Facts("", {OperationStage.COMPILED: {}}, "unrolled 4", [], "")


def request_of(
    time: str = "unrolled", state: State = "stitched", chunk: int = STEPS, dtype: str = "float32", **model: Any
) -> Request:
    spec = Model(**{"cell": "lstm", "input": 5, "hidden": 17, **model})
    return Request(
        "tensorflow", spec, draw_weights(spec, 0, dtype), Strategy(time, state, chunk), 2, Precision.of(dtype)
    )


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., LitertProgram]:
    """Programs that share their weights, though they have few."""
    folder, backend = tmp_path_factory.mktemp("shared"), LitertBackend()
    backend.load()

    @cache
    def built(**options: Any) -> LitertProgram:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shared_weights, "LEAST_REPEATED_BYTES", 1)
            program = backend.build(request_of(**options), folder)
        assert isinstance(program, LitertProgram)
        return program

    return built


def opened_twice(program: LitertProgram) -> tuple[SharingSession, LitertSession]:
    """A session that shares its weights, and one in the interpreter."""
    shared = program.open()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "shares_weights", False)
        alone = program.open()
    assert isinstance(shared, SharingSession)
    assert isinstance(alone, LitertSession)
    return shared, alone


@pytest.mark.parametrize(
    ("options", "repeats"),
    [
        ({"hidden": 512, "chunk": 2}, True),
        ({"hidden": 511, "chunk": 2}, False),
        ({"hidden": 256, "chunk": 8}, True),
        ({"hidden": 256, "chunk": 4, "layers": 2}, True),
        ({"hidden": 256, "chunk": 8, "cell": "gru"}, False),
        ({"hidden": 512, "chunk": 1}, False),
        ({"hidden": 1024, "chunk": 1}, False),
        ({"hidden": 512, "chunk": 16, "time": "looped"}, False),
        ({"hidden": 512, "chunk": 16, "time": "fused", "state": "stateful"}, False),
        ({"hidden": 512, "chunk": 16, "time": "unrolled:2"}, True),
        ({"hidden": 256, "chunk": 16, "time": "unrolled:4"}, False),
        ({"hidden": 512, "chunk": 16, "dtype": "int8_dynamic"}, False),
        ({"cell": "counter", "input": 512, "hidden": 512, "chunk": 16}, False),
    ],
    ids=str,
)
def test_copies_share_their_weights_where_all_of_them_have_8_mib(options: dict[str, Any], repeats: bool) -> None:
    spec = {"cell": "lstm", "input": 5, **options}
    time, state, chunk = spec.pop("time", "unrolled"), spec.pop("state", "stitched"), spec.pop("chunk")
    precision = Precision.of(spec.pop("dtype", "float32"))
    request = Request("tensorflow", Model(**spec), Weights(), Strategy(time, state, chunk), 1, precision)
    assert repeats_much(request) == repeats


@pytest.mark.parametrize(
    "options",
    [
        {"state": "none"},
        {"state": "stateful", "cell": "gru", "layers": 2},
        {"state": "stitched", "projection": 5, "layers": 2},
        {"state": "stitched", "time": "unrolled:2"},
        *for_proof(
            {"state": "none", "cell": "rnn", "direction": "bidirectional"},
            {"state": "stateful"},
            {"state": "stateful", "time": "unrolled:2", "cell": "gru"},
            {"state": "stitched", "cell": "gru"},
            {"state": "none", "cell": "gru", "direction": "reverse"},
        ),
    ],
    ids=str,
)
def test_shared_weights_change_no_bit(build, options: dict[str, Any]) -> None:
    program = build(**options)
    sessions = opened_twice(program)
    x, given = draw_inputs(program.request.model, 7 * STEPS, 2, 1), draw_state(program.request.model, 2, 5)
    if program.request.strategy.state != "none":
        for session in sessions:
            session.set_state(given)
    bounds = [session.bind([{"x": chunk} for chunk in np.split(x[: 3 * STEPS], 3)]) for session in sessions]
    for turn, chunk in enumerate(np.split(x, 7)):
        for bound in bounds:
            bound()
        np.testing.assert_array_equal(*(bound.output()["y"] for bound in bounds))
        if turn % 3 == 1:
            np.testing.assert_array_equal(*(session.step({"x": chunk})["y"] for session in sessions))
        states = [session.get_state() for session in sessions]
        for name in states[0]:
            np.testing.assert_array_equal(*(state[name] for state in states))
        if turn == 4:
            for session in sessions:
                session.reset()


@pytest.mark.parametrize("state", ["stitched", *for_proof("stateful")])
def test_a_call_goes_on_where_the_last_one_ended_also_over_the_rest(build, state: State) -> None:
    """The rest of a call runs in the interpreter: one step repeats no weights."""
    program = build(state=state)
    model = program.request.model
    x, given = draw_inputs(model, 2 * STEPS + 3, 2, 0), draw_state(model, 2, 5)
    expected = run_reference(model, program.request.weights, x, given)
    session, other = program.open(), program.open()
    session.set_state(given)
    parts = [session.step({"x": part})["y"] for part in (x[: STEPS + 1], x[STEPS + 1 :])]
    np.testing.assert_allclose(np.concatenate(parts), expected.y, atol=2e-5)
    for name, value in session.get_state().items():
        np.testing.assert_allclose(value, expected.final[name], atol=2e-5)
        assert not other.get_state()[name].any()


def test_a_bound_ring_is_the_callers_again(build) -> None:
    program = build(state="stitched")
    x = draw_inputs(program.request.model, STEPS, 2, 0)
    session, given = program.open(), x.copy()
    expected = session.step({"x": x})["y"]
    session.reset()
    bound = session.bind([{"x": given}])
    given.fill(7)
    bound()
    np.testing.assert_array_equal(bound.output()["y"], expected)


def test_sessions_that_are_gone_leave_no_file_open(build) -> None:
    """Each has a cache of its own, in memory, to which it holds a descriptor."""

    def descriptors() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    program = build(state="stitched")
    program.open()
    before = descriptors()
    sessions = [program.open() for _ in range(5)]
    assert descriptors() > before
    del sessions
    assert descriptors() == before


def test_a_session_has_the_threads_of_the_request(build, monkeypatch: pytest.MonkeyPatch) -> None:
    made, threads = shared_weights.compiled, []

    def noted(path: Path, count: int) -> Any:
        threads.append(count)
        return made(path, count)

    program = build(state="stitched")
    monkeypatch.setattr(shared_weights, "compiled", noted)
    monkeypatch.setattr(program, "request", replace(program.request, threads=3))
    tasks = len(os.listdir("/proc/self/task"))
    session = program.open()
    assert threads == [3]
    assert len(os.listdir("/proc/self/task")) == tasks + 2
    session.close()


def test_a_torn_file_is_an_error_and_no_crash(build, tmp_path: Path) -> None:
    torn = tmp_path / "torn.tflite"
    content = build(state="stitched").stored.path.read_bytes()
    torn.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="not a valid Flatbuffer"):
        shared_weights.compiled(torn, 1)


def test_the_artifact_says_what_runs_the_program(build) -> None:
    (note,) = [note for note in build(state="stitched").artifact.notes if "CompiledModel" in note]
    assert "the copies share them" in note


@pytest.mark.parametrize(
    "error", [ImportError("no module"), RuntimeError("code=3\nmore"), TypeError("options"), RuntimeError()]
)
def test_a_program_that_cannot_be_compiled_runs_in_the_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def failing(path: Path, threads: int) -> None:
        raise error

    monkeypatch.setattr(shared_weights, "LEAST_REPEATED_BYTES", 1)
    monkeypatch.setattr(shared_weights, "compiled", failing)
    monkeypatch.setattr(store, "_converted", lambda request: (b"model", FACTS))
    programs = [LitertBackend().build(request_of(), tmp_path) for _ in range(2)]
    for program, cached in zip(programs, (False, True), strict=True):
        assert isinstance(program, LitertProgram)
        assert (program.shares_weights, program.cached) == (False, cached)
        (note,) = [note for note in program.artifact.notes if "CompiledModel" in note]
        reason = str(error).partition("\n")[0] or "RuntimeError"
        assert note == f"each copy of the cell has packed weights of its own: CompiledModel failed ({reason})"
