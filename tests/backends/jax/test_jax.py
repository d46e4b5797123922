"""What is JAX's own: what XLA made of each strategy, its cache, dtypes, environment and refusals."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from quick_tests import for_proof
from waiting import PATIENCE_S

from rnnbench.backends.base import Artifact, BuildError, Request
from rnnbench.backends.jax import JaxBackend
from rnnbench.backends.program_store import described
from rnnbench.cases.trial import Precision, State, Strategy
from rnnbench.rnn.network import Network
from rnnbench.rnn.networks.kws import KwsCrnn
from rnnbench.rnn.networks.rnnoise import RNNoise
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights, draw_inputs, draw_weights

pytest.importorskip("jax")

LSTM = Model(cell="lstm", input=4, hidden=6)
COUNTER = Model(cell="counter", input=4, hidden=4)
RNNOISE = RNNoise(input=5, hidden=6)
"""Five layers with a state, and two without one."""


def ask(
    model: Network = LSTM, time: str = "looped", state: State = "stitched", chunk: int = 4, dtype: str = "float32"
) -> Request:
    return Request(
        "jit", model, draw_weights(model, 0), Strategy(time, state, chunk), batch=2, precision=Precision.of(dtype)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of programs that several tests look at."""
    return tmp_path_factory.mktemp("jax")


def artifact(folder: Path, request: Request) -> Artifact:
    return described(JaxBackend().build(request, folder), request)


@pytest.mark.first(1)
@pytest.mark.parametrize(("batch", "barriers"), [(1, 1), (2, 0)])
def test_y_is_read_off_the_state_of_one_row_alone(folder: Path, batch: int, barriers: int) -> None:
    """With 32 rows, XLA's kernel that joins the state made a step take 2.3 times as long."""
    given = artifact(folder, replace(ask(chunk=1), batch=batch)).operations["input"]
    assert given.get("stablehlo.optimization_barrier", 0) == barriers


@pytest.mark.first(4)
@pytest.mark.parametrize(
    ("request_", "lowered"),
    [
        (ask(chunk=1), "unrolled 1"),
        (ask(COUNTER), "looped 1"),
        (ask(COUNTER, time="unrolled:2"), "looped 1 of 2"),
        (ask(COUNTER, time="unrolled"), "unrolled 4"),
        (ask(RNNOISE, chunk=1), "unrolled 5"),
        *for_proof(
            (ask(time="unrolled:4"), "unrolled 4"), (ask(RNNOISE, time="unrolled:2", state="none"), "looped 5 of 2")
        ),
    ],
    ids=lambda value: (
        value if isinstance(value, str) else f"{value.model.label}-{value.strategy}-{value.strategy.chunk}"
    ),
)
def test_loops_and_copies_are_found_in_what_xla_made(folder: Path, request_: Request, lowered: str) -> None:
    """The common suite has other cells and directions."""
    assert artifact(folder, request_).lowered == lowered


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("request_", "has_loop"),
    [
        (ask(), True),
        (ask(time="unrolled:2"), True),
        (ask(chunk=1), False),
        (ask(time="unrolled:4"), False),
        (ask(time="unrolled"), False),
    ],
    ids=["loop", "loop of copies", "loop of one step", "loop of one pass", "copies"],
)
def test_programs_with_a_loop_have_a_level_of_optimisation(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_: Request, has_loop: bool
) -> None:
    """The flags say it, and XLA is given it: an option that it does not know ends the build."""
    from rnnbench.backends.jax import placement

    if has_loop:
        assert "xla_backend_optimization_level=1" in artifact(folder, request_).flags
    monkeypatch.setattr(placement, "IN_LOOPS", {"xla_no_such_option": 1})
    if has_loop:
        with pytest.raises(BuildError, match="xla_no_such_option"):
            artifact(tmp_path, request_)
    else:
        assert "xla_no_such_option=1" not in artifact(tmp_path, request_).flags


def test_operations_are_counted_before_and_after_xla(folder: Path) -> None:
    operations = artifact(folder, ask()).operations
    assert operations["input"]["stablehlo.while"] == operations["compiled"]["while"] == 1
    assert operations["input"]["stablehlo.dot_general"] == operations["compiled"]["dot"] == 2


@pytest.mark.proof
@pytest.mark.parametrize(("time", "state", "copies"), [("unrolled", "none", 4), *for_proof(("looped", "stitched", 1))])
def test_a_convolution_over_time_and_frequency_is_one_operation(
    tmp_path: Path, time: str, state: State, copies: int
) -> None:
    """Slices and a product for each frequency took 1.8 times as long."""
    request = ask(KwsCrnn(input=9, filters=3, hidden=6), time, state)
    assert artifact(tmp_path, request).operations["input"]["stablehlo.convolution"] == 2 * copies
    x = draw_inputs(request.model, 4, 2, 0)
    y = JaxBackend().build(request, tmp_path).open().step({"x": x})["y"]
    np.testing.assert_allclose(y, run_reference(request.model, request.weights, x).y, atol=2e-5)


@pytest.mark.proof
def test_a_loop_over_copies_is_what_scan_makes_of_unroll(tmp_path: Path) -> None:
    import jax
    import jax.numpy as jnp

    from rnnbench.backends.jax.lowered import operations
    from rnnbench.backends.jax.primitives import JaxPrimitives
    from rnnbench.rnn.cells import cell_body

    request = ask(time="unrolled:4", chunk=16)
    body = cell_body(JaxPrimitives(np.dtype("float32")), LSTM, request.weights.row(0))

    def step(x, h, c):
        def advance(state, projected):
            y, state = body.advance(projected, state)
            return state, y

        return jax.lax.scan(advance, (h, c), body.project(x.reshape(32, 4)).reshape(16, 2, 24), unroll=4)

    zeros = jnp.zeros((2, 6))
    unrolled = operations(jax.jit(step).lower(jnp.zeros((16, 2, 4)), zeros, zeros).compile().as_text())
    compiled = artifact(tmp_path, request).operations["compiled"]
    assert (compiled["while"], compiled["dot"]) == (unrolled["while"], unrolled["dot"]) == (1, 5)


def test_equal_programs_have_equal_digests(folder: Path, tmp_path: Path) -> None:
    built = [artifact(place, ask()) for place in (folder, tmp_path)]
    assert built[0].digest == built[1].digest
    assert built[0].source_digest == built[1].source_digest
    other = replace(ask(), weights=draw_weights(LSTM, 1))
    assert artifact(tmp_path, other).digest != built[0].digest


FRESH = """
import pickle, sys
from pathlib import Path
import jax
from rnnbench.backends.jax import JaxBackend
from rnnbench.measure.threads import ThreadTimes

def refuse(*arguments, **options):
    raise AssertionError("lowered or compiled")

request, folder = pickle.loads(sys.stdin.buffer.read())
built = JaxBackend().build(request, Path(folder)).cached
jax.stages.Lowered.compile = jax.stages.Traced.lower = refuse
program = JaxBackend().build(request, Path(folder))
x = __import__("numpy").ones((request.strategy.chunk, 2, 4), program.signature.of("input")[0].dtype)
session, times = program.open(), ThreadTimes()
y = session.step({"x": x})["y"].sum()
bound = session.bind([{"x": x}] * 8)

def call(times):
    for _ in range(times):
        bound()
        bound.sync()

call(500)
with times.watched():
    call(2000)
print(built, program.cached, y, times.busy)
"""


def in_a_fresh_process(request: Request, folder: Path) -> list[str]:
    environment = {**os.environ, **JaxBackend().support(request).environment}
    answer = subprocess.run(
        [sys.executable, "-c", FRESH],
        input=pickle.dumps((request, str(folder))),
        capture_output=True,
        env=environment,
        timeout=PATIENCE_S,
        check=True,
    )
    return answer.stdout.decode().split()


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), *for_proof(("float64", 1e-12))])
def test_a_build_is_loaded_without_compiling_and_computes_on_the_thread_that_calls(
    tmp_path: Path, dtype: str, tolerance: float
) -> None:
    """In the process that built it, and in another one: of one type, since each process imports JAX."""
    request = replace(ask(dtype=dtype), weights=draw_weights(LSTM, 0, dtype))
    *cached, y, threads = in_a_fresh_process(request, tmp_path)
    assert (cached, threads) == (["False", "True"], "1")
    expected = run_reference(LSTM, request.weights, np.ones((4, 2, 4))).y.sum()
    assert abs(float(y) - expected) < tolerance
    if dtype == "float32":
        assert in_a_fresh_process(request, tmp_path) == ["True", "True", y, "1"]


def test_float64_needs_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAX_ENABLE_X64", raising=False)
    with pytest.raises(BuildError, match="float64 needs JAX_ENABLE_X64=true in the environment"):
        artifact(tmp_path, ask(dtype="float64"))


@pytest.mark.first(1)
@pytest.mark.parametrize(("dtype", "digits"), [("float16", 11), ("bfloat16", 8)])
def test_half_precision_is_right_within_its_rounding(tmp_path: Path, dtype: str, digits: int) -> None:
    import jax.numpy as jnp

    stored = getattr(jnp, dtype)
    exchanged = "float16" if dtype == "float16" else "float32"
    request = ask(dtype=dtype, chunk=8)
    (layer,) = request.weights.layers
    rounded = {
        name: array.astype(stored).astype("float32")
        for name, array in vars(layer).items()
        if isinstance(array, np.ndarray)
    }
    request = replace(request, weights=Weights((replace(layer, **rounded),)))
    x = draw_inputs(LSTM, 8, 2, seed=1).astype(stored)
    session = JaxBackend().build(request, tmp_path).open()
    y = session.step({"x": x.astype(exchanged)})["y"]
    assert y.dtype == session.get_state()["h"].dtype == exchanged
    expected = run_reference(LSTM, request.weights, x.astype("float64")).y
    error = np.abs(y.astype("float64") - expected).max()
    assert 0 < error < 8 * 2.0**-digits


def test_half_precision_says_what_stands_in() -> None:
    support = JaxBackend().support(ask(dtype="bfloat16", state="stateful"))
    assert support.level == "emulated"
    assert "donated" in support.reason
    assert "rounded to bfloat16" in support.reason


def test_one_thread_is_asked_of_pools_and_compiler() -> None:
    one, two = (JaxBackend().support(replace(ask(), threads=threads)).environment for threads in (1, 2))
    assert (one["NPROC"], one["XLA_FLAGS"]) == ("1", "--xla_cpu_multi_thread_eigen=false")
    assert two["NPROC"] == "2"
    assert "XLA_FLAGS" not in two


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (ask(time="fused"), "does not run on the CPU"),
        (replace(ask(), route="pjit"), "not pjit"),
    ],
    ids=["fused", "route"],
)
def test_what_is_refused_says_why(request_: Request, reason: str) -> None:
    support = JaxBackend().support(request_)
    assert support.level == "unsupported"
    assert reason in support.reason
