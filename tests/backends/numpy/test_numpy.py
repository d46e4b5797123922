"""What is NumPy's own: the numbers of every model, what it counts and digests, what it refuses, its cache."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples
from random_models import models, problem

from rnnbench.backends.base import Artifact, BuildError, Request
from rnnbench.backends.numpy import NumpyBackend
from rnnbench.backends.program_store import described
from rnnbench.cases.trial import Precision, State, Strategy
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights, draw_weights

LSTM = Model(cell="lstm", input=4, hidden=6)


def ask(
    model: Model = LSTM, state: State = "stitched", chunk: int = 3, dtype: str = "float32", seed: int = 0
) -> Request:
    strategy = Strategy("looped", state, chunk)
    return Request("eager", model, draw_weights(model, seed, dtype), strategy, 2, Precision.of(dtype))


def artifact(folder: Path, request: Request) -> Artifact:
    return described(NumpyBackend().build(request, folder), request)


@examples(20)
@given(model=models(), steps=st.integers(1, 5), batch=st.integers(1, 3), scale=st.sampled_from([1.0, 4.0]))
def test_every_model_in_float64_is_the_oracle(model: Model, steps: int, batch: int, scale: float) -> None:
    data = problem(model, steps, batch, scale=scale)
    strategy = Strategy("looped", "none", steps)
    request = Request("eager", model, data.weights, strategy, batch, Precision.of("float64"))
    with TemporaryDirectory() as folder:
        session = NumpyBackend().build(request, Path(folder)).open()
        y = session.step({"x": data.x})["y"]
    assert y.dtype == np.float64
    np.testing.assert_allclose(y, run_reference(model, data.weights, data.x).y, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_saturated_gates_are_right_and_do_not_warn(tmp_path: Path, cell: str) -> None:
    model = Model(cell=cell, input=4, hidden=6)
    data = problem(model, steps=5, batch=2, scale=500, dtype="float32")
    session = NumpyBackend().build(replace(ask(model, chunk=5), weights=data.weights), tmp_path).open()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = session.step({"x": data.x})["y"]
    # At this scale a gate's input is rounded by up to 1e-3.
    np.testing.assert_allclose(y, run_reference(model, data.weights, data.x).y, atol=1e-3)


def test_the_errors_state_of_the_caller_is_left_alone(tmp_path: Path) -> None:
    before = np.geterr()
    NumpyBackend().build(ask(), tmp_path).open()
    assert np.geterr() == before


def test_operations_are_the_calls_of_a_chunk_and_of_a_step(tmp_path: Path) -> None:
    built = artifact(tmp_path, ask())
    assert list(built.operations) == ["compiled"]
    assert built.operations["compiled"]["dot"] == 1 + 1
    assert built.operations["compiled"]["exp"] == 3
    assert built.operations["compiled"]["tanh"] == 2


@pytest.mark.parametrize(
    ("model", "lowered"),
    [
        (LSTM, "looped 1"),
        (LSTM.model_copy(update={"layers": 3}), "looped 3"),
        (LSTM.model_copy(update={"layers": 2, "direction": "bidirectional"}), "looped 4"),
    ],
)
def test_there_is_a_loop_for_each_layer_and_direction(tmp_path: Path, model: Model, lowered: str) -> None:
    assert artifact(tmp_path, ask(model, state="none")).lowered == lowered


def test_who_carries_the_state_changes_no_program(tmp_path: Path) -> None:
    stitched, stateful, none = (artifact(tmp_path, ask(state=s)) for s in ("stitched", "stateful", "none"))
    assert stitched == stateful
    assert none.source_digest != stitched.source_digest
    assert none.digest != stitched.digest


@pytest.mark.parametrize(
    "other",
    [
        ask(seed=1),
        ask(chunk=4),
        ask(dtype="float64"),
        ask(LSTM.model_copy(update={"clip": 1.0})),
        ask(LSTM.model_copy(update={"cell_clip": 1.0})),
        replace(ask(), batch=3),
    ],
    ids=["weights", "chunk", "dtype", "clip", "cell_clip", "batch"],
)
def test_another_program_has_another_digest(tmp_path: Path, other: Request) -> None:
    one, two = artifact(tmp_path, ask()), artifact(tmp_path, other)
    assert one.source_digest != two.source_digest
    assert one.digest != two.digest


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"route": "jit"}, "has the route eager, and not jit"),
        ({"precision": Precision.of("bfloat16")}, "float32 and float64 only"),
        ({"precision": Precision("float32", "float32", "float64", "float32")}, "a program has one dtype"),
        ({"strategy": Strategy("fused", "stitched", 3)}, "no RNN operator"),
        ({"strategy": Strategy("unrolled", "stitched", 3)}, "executes eagerly"),
        ({"strategy": Strategy("unrolled:2", "none", 4)}, "executes eagerly"),
    ],
)
def test_what_is_unsupported_is_told_and_not_built(tmp_path: Path, changed: dict[str, object], reason: str) -> None:
    request = replace(ask(), **changed)
    support = NumpyBackend().support(request)
    assert support.level == "unsupported"
    assert reason in support.reason
    with pytest.raises(BuildError, match=reason):
        NumpyBackend().build(request, tmp_path)


def test_blas_gets_the_threads_of_the_request() -> None:
    assert set(NumpyBackend().support(replace(ask(), threads=3)).environment.values()) == {"3"}


@pytest.mark.parametrize(("state", "level"), [("none", "native"), ("stitched", "native"), ("stateful", "emulated")])
def test_a_state_inside_the_program_is_emulated(state: State, level: str) -> None:
    support = NumpyBackend().support(ask(state=state))
    assert support.level == level
    assert support.environment["OPENBLAS_NUM_THREADS"] == "1"


def test_a_build_leaves_whole_files(tmp_path: Path) -> None:
    request = ask(Model(cell="gru", input=4, hidden=6, layers=2))
    first = NumpyBackend().build(request, tmp_path)
    (file,) = first.files.program
    assert sorted(tmp_path.iterdir()) == sorted((*first.files.program, *first.files.identity))
    assert described(first, request).nbytes == file.stat().st_size > request.weights.nbytes
    # A second build reads that file: weights that are not there cannot be what it runs.
    with np.load(file) as archive:
        np.savez(file, **{name: np.zeros_like(array) for name, array in archive.items()})
    second = NumpyBackend().build(request, tmp_path)
    assert second.cached
    assert not second.open().step({"x": np.ones((3, 2, 4), np.float32)})["y"].any()


@pytest.mark.parametrize("length", [0, 100])
def test_a_torn_file_of_weights_is_built_again(tmp_path: Path, length: int) -> None:
    first = NumpyBackend().build(ask(), tmp_path)
    (file,) = first.files.program
    whole = file.read_bytes()
    file.write_bytes(whole[:length])
    assert not NumpyBackend().build(ask(), tmp_path).cached
    assert file.read_bytes() == whole


def test_a_counter_builds_without_weights(tmp_path: Path) -> None:
    request = ask(Model(cell="counter", input=3, hidden=3))
    assert request.weights == Weights(())
    session = NumpyBackend().build(request, tmp_path).open()
    x = np.ones((3, 2, 3), np.float32)
    np.testing.assert_array_equal(session.step({"x": x})["y"][:, 0, 0], [1, 2, 3])
