"""A compound network on real backends: programs of its parts, joined by its loop, give what the reference gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from quick_tests import for_proof

from rnnbench.backends import BuildError, NoToolError, Program, Request, find, tool_for
from rnnbench.backends.base import OperationStage
from rnnbench.backends.shared import Abilities, refusal
from rnnbench.backends.shared.compound import joined_artifact
from rnnbench.cases import Precision, Strategy
from rnnbench.rnn import draw_inputs, draw_weights, run_reference
from rnnbench.rnn.networks.rnnt_greedy import Rnnt

NETWORK = Rnnt(input=16, hidden=12, prediction=12, max_symbols=4, blank_bias=6)
STEPS, CHUNK, BATCH = 12, 3, 2
TARGETS = {"numpy:eager": "numpy", "onnxruntime:onnx": "onnxruntime"}
IN_PROGRAM = NETWORK.model_copy(update={"search": "program"})


def request_of(target: str, state: str = "stitched", chunk: int = CHUNK, network: Rnnt = NETWORK) -> Request:
    strategy = Strategy("looped", state, chunk)
    weights = draw_weights(network, 0)
    return Request(target.partition(":")[2], network, weights, strategy, BATCH, Precision.of("float32"))


@pytest.fixture(scope="module", params=TARGETS)
def compound(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Program:
    pytest.importorskip(TARGETS[request.param])
    cache = tmp_path_factory.mktemp("cache")
    return find(request.param.partition(":")[0]).build(request_of(request.param), cache)


def test_a_stream_says_the_symbols_of_the_reference(compound: Program) -> None:
    x = draw_inputs(NETWORK, STEPS + 1, BATCH, 0)
    expected = run_reference(NETWORK, draw_weights(NETWORK, 0), x)
    session = compound.open()
    y = session.step({"x": x})["y"]
    most = NETWORK.max_symbols
    np.testing.assert_array_equal(y[..., :most], expected.y[..., :most])
    np.testing.assert_allclose(y[..., most:], expected.y[..., most:], rtol=1e-4, atol=1e-4)
    state = session.get_state()
    assert state.keys() == expected.final.keys()
    for name, array in expected.final.items():
        np.testing.assert_allclose(state[name], array, rtol=1e-4, atol=1e-4)


def test_bound_calls_are_those_of_the_public_path(compound: Program) -> None:
    ring = [{"x": chunk} for chunk in np.split(draw_inputs(NETWORK, STEPS, BATCH, 0), STEPS // CHUNK)]
    public, session = compound.open(), compound.open()
    bound = session.bind(ring)
    for chunk in ring:
        bound()
        bound.sync()
        np.testing.assert_array_equal(bound.output()["y"], public.step(chunk)["y"])


def test_a_ring_is_the_callers_again_once_it_is_bound(compound: Program) -> None:
    x = draw_inputs(NETWORK, CHUNK, BATCH, 0)
    ring = [{"x": x.copy()}]
    bound = compound.open().bind(ring)
    ring[0]["x"].fill(7)
    bound()
    bound.sync()
    np.testing.assert_array_equal(bound.output()["y"], compound.open().step({"x": x})["y"])


def test_the_artifact_has_all_parts(compound: Program) -> None:
    assert compound.artifact.lowered.count(" + ") == 2
    assert compound.artifact.hoisted is None
    assert "loop in Python" in compound.artifact.notes[-1]


def test_a_whole_utterance_starts_from_zeros_each_time(tmp_path: Path) -> None:
    x = draw_inputs(NETWORK, STEPS, BATCH, 0)
    session = find("numpy").build(request_of("numpy:eager", "none", STEPS), tmp_path).open()
    first, second = (session.step({"x": x})["y"] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert session.get_state() == {}


def test_a_second_build_is_cached(tmp_path: Path) -> None:
    cached = [find("numpy").build(request_of("numpy:eager"), tmp_path).cached for _ in range(2)]
    assert cached == [False, True]


def test_a_build_of_which_a_part_was_made_anew_is_not_cached(tmp_path: Path) -> None:
    first = find("numpy").build(request_of("numpy:eager"), tmp_path)
    for file in next(iter(first.programs.values())).files.identity:
        file.unlink()
    assert not find("numpy").build(request_of("numpy:eager"), tmp_path).cached


def test_one_approximate_part_makes_the_whole_approximate(tmp_path: Path) -> None:
    parts = list(find("numpy").build(request_of("numpy:eager"), tmp_path).programs.values())
    assert joined_artifact(NETWORK, parts).math == "exact"
    parts[1].artifact = parts[1].artifact.model_copy(update={"math": "approximate"})
    assert joined_artifact(NETWORK, parts).math == "approximate"


def test_another_source_of_any_part_is_another_source_of_the_whole(tmp_path: Path) -> None:
    parts = list(find("numpy").build(request_of("numpy:eager"), tmp_path).programs.values())
    before = joined_artifact(NETWORK, parts).source_digest
    parts[-1].artifact = parts[-1].artifact.model_copy(update={"source_digest": "0" * 64})
    assert joined_artifact(NETWORK, parts).source_digest != before


def test_what_a_backend_refuses_of_a_part_it_refuses_of_the_whole(tmp_path: Path) -> None:
    asked = request_of("numpy:eager")
    unrolled = replace(asked, strategy=replace(asked.strategy, time="unrolled"))
    answer = find("numpy").support(unrolled)
    assert answer.level == "unsupported"
    assert answer.reason.startswith("encoder1: NumPy executes eagerly")
    with pytest.raises(BuildError, match="encoder1: NumPy"):
        find("numpy").build(unrolled, tmp_path)


def test_no_tool_of_a_runtime_times_a_loop_in_the_host(tmp_path: Path) -> None:
    asked = request_of("numpy:eager")
    with pytest.raises(NoToolError, match="a loop in the host"):
        tool_for("onnxruntime", find("numpy").build(asked, tmp_path), asked, tmp_path)


@pytest.mark.parametrize(
    ("written", "state", "rest"),
    [
        *for_proof(("jax:jit", "stitched", 0), ("tensorflow:graph", "stateful", 0), ("tensorflow:xla", "stitched", 0)),
        ("onnxruntime:onnx", "stitched", 1),
    ],
)
def test_the_loop_in_a_program_says_the_same(written: str, state: str, rest: int, tmp_path: Path) -> None:
    """A rest is a second program, which takes as long to build."""
    backend = written.partition(":")[0]
    pytest.importorskip(backend)
    x = draw_inputs(IN_PROGRAM, STEPS + rest, BATCH, 0)
    expected = run_reference(IN_PROGRAM, draw_weights(IN_PROGRAM, 0), x)
    program = find(backend).build(request_of(written, state, network=IN_PROGRAM), tmp_path)
    session = program.open()
    y, most = session.step({"x": x})["y"], IN_PROGRAM.max_symbols
    np.testing.assert_array_equal(y[..., :most], expected.y[..., :most])
    np.testing.assert_allclose(y[..., most:], expected.y[..., most:], rtol=1e-4, atol=1e-4)
    for name, array in expected.final.items():
        np.testing.assert_allclose(session.get_state()[name], array, rtol=1e-4, atol=1e-4)
    assert {"while", "While", "Loop"} & program.artifact.operations[OperationStage.COMPILED].keys()


def test_a_route_without_loops_over_calls_refuses_a_search_in_the_program() -> None:
    request = request_of("numpy:eager", network=IN_PROGRAM)
    answer = refusal("numpy", request, Abilities.of(find("numpy").probe()))
    assert answer is not None
    assert "has not the primitive while" in answer.reason
