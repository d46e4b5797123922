"""Programs that reach TVM through an importer: what they become, and that what stops at the import still does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mixed_network import Mixed, built_and_right, request_for
from quick_tests import for_proof

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.tvm import TvmBackend
from rnnbench.cases.trial import Precision, State, Strategy
from rnnbench.rnn.networks.rnnoise import RNNoise
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs, draw_weights

pytest.importorskip("tvm")

LSTM = Model(cell="lstm", input=4, hidden=6)
CHUNK = 2
MODELS = [
    Model(cell="lstm", input=4, hidden=6, projection=3, bias=False),
    Model(cell="rnn", input=4, hidden=6, direction="bidirectional"),
    Model(cell="gru", input=4, hidden=6),
    Model(cell="rnn", input=4, hidden=6, activation="relu"),
]


def ask(route: str, model: Model = LSTM, time: str = "fused", state: State = "stitched") -> Request:
    state = state if model.direction == "forward" else "none"
    strategy = Strategy(time, state, CHUNK)
    return Request(route, model, draw_weights(model, 0), strategy, batch=2, precision=Precision.of("float32"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all tests: they build a program once."""
    return tmp_path_factory.mktemp("imported")


@pytest.mark.proof
@pytest.mark.parametrize(
    "model",
    [MODELS[0], *for_proof(*MODELS[1:])],
    ids=lambda model: f"{model.cell}-{model.direction}-{model.projection}",
)
def test_torchs_modules_arrive_unrolled(folder: Path, model: Model) -> None:
    pytest.importorskip("torch")
    request = ask("torch", model)
    program = TvmBackend().build(request, folder)
    assert program.artifact.lowered == f"unrolled {CHUNK * model.layers * model.directions}"
    assert program.artifact.origin == "imported"
    x = draw_inputs(model, CHUNK, 2, seed=1)
    expected = run_reference(model, request.weights, x).y
    np.testing.assert_allclose(program.open().step({"x": x})["y"], expected, atol=1e-6)


def test_no_weight_of_torch_is_transposed_when_the_program_runs(folder: Path) -> None:
    pytest.importorskip("torch")
    compiled = TvmBackend().build(ask("torch", MODELS[0]), folder).artifact.operations["compiled"]
    assert not [name for name in compiled if "transpose" in name or "permute" in name]


def test_an_onnx_graph_without_a_state_has_y_as_its_only_result(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    request = ask("onnx", time="unrolled", state="none")
    program = TvmBackend().build(request, tmp_path)
    assert (program.artifact.lowered, program.artifact.origin) == (f"unrolled {CHUNK}", "imported")
    session = program.open()
    x = draw_inputs(LSTM, CHUNK, 2, seed=1)
    expected = run_reference(LSTM, request.weights, x).y
    np.testing.assert_allclose(session.step({"x": x})["y"], expected, atol=1e-6)
    bound = session.bind([{"x": x}])
    bound()
    np.testing.assert_allclose(bound.output()["y"], expected, atol=1e-6)


@pytest.mark.proof
def test_a_graph_of_other_layers_than_cells_is_imported(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    built_and_right(TvmBackend(), request_for(Mixed(), "onnx", Strategy("unrolled", "stitched", CHUNK)), tmp_path)


@pytest.mark.proof
def test_copies_are_counted_for_each_layer_with_a_state(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    request = request_for(RNNoise(input=5, hidden=6), "onnx", Strategy("unrolled", "stitched", CHUNK))
    assert TvmBackend().build(request, tmp_path).artifact.lowered == f"unrolled {5 * CHUNK}"


@pytest.mark.parametrize(
    ("time", "cell", "operator"),
    [("fused", "lstm", "LSTM"), ("fused", "gru", "GRU"), ("fused", "rnn", "RNN"), ("looped", "lstm", "Scan")],
)
def test_onnx_operators_that_are_refused_are_still_missing_upstream(time: str, cell: str, operator: str) -> None:
    pytest.importorskip("onnx")
    from rnnbench.backends.tvm.imported_module import from_onnx

    request = ask("onnx", Model(cell=cell, input=4, hidden=6), time)
    support = TvmBackend().support(request)
    assert (support.level, support.upstream) == ("unsupported", "apache/tvm#20124")
    assert "stops at the import" in support.reason
    assert operator in support.reason
    with pytest.raises(BuildError, match=rf"operators are not supported for frontend ONNX: {operator}"):
        from_onnx(request)


def test_what_stands_in_is_said() -> None:
    support = TvmBackend().support(ask("torch", state="stateful"))
    assert support.level == "emulated"
    assert "a copy of the cell for each step" in support.reason
    assert "the session holds the state's tensors" in support.reason
    assert TvmBackend().support(ask("onnx", time="unrolled")).level == "native"


@pytest.mark.parametrize("time", ["unrolled", *for_proof("fused")])
def test_copies_of_a_counter_and_of_long_chunks_are_counted(tmp_path: Path, time: str) -> None:
    model = MODELS[-1] if time == "fused" else Model(cell="counter", input=4, hidden=4)
    pytest.importorskip("torch" if time == "fused" else "onnx")
    request = ask("torch" if time == "fused" else "onnx", model, time)
    request = replace(request, strategy=replace(request.strategy, chunk=10))
    assert TvmBackend().build(request, tmp_path).artifact.lowered == "unrolled 10"
