"""What TVM's programs turn out to be: their strategy, their digests, what a cache gives back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mixed_network import Delay, Mixed, built_and_right
from mixed_network import request_for as asked
from quick_tests import for_proof
from small_networks import small
from waiting import PATIENCE_S

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.program_store import described
from rnnbench.backends.tvm import TvmBackend, relax_session, store
from rnnbench.backends.tvm.buffers import DeviceBuffer, memory_on
from rnnbench.cases.trial import State, Strategy
from rnnbench.rnn.composed import ComposedNetwork, Placed
from rnnbench.rnn.networks.kws import KwsCrnn
from rnnbench.rnn.networks.rnnoise import RNNoise
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs, draw_state, draw_weights

pytest.importorskip("tvm")

Built = Callable[..., Any]
Requested = Callable[..., Request]


class Delays(ComposedNetwork):
    """Computes nothing: each y and each next state is an argument of the call."""

    network = "delays"
    input: int = 5

    def compose(self) -> list[Placed]:
        return [Placed("first", Delay(self.input)), Placed("second", Delay(self.input), ("first",))]


COUNTER = Model(cell="counter", input=4, hidden=4)
BOTH = pytest.mark.parametrize("route", ["tir", "relax"])


@pytest.mark.first(4)
@BOTH
@pytest.mark.parametrize(
    ("time", "state", "chunk", "expected"),
    [
        ("looped", "stitched", 6, "looped 1"),
        ("unrolled:3", "stateful", 6, "looped 1 of 3"),
        ("looped", "stateful", 1, "unrolled 1"),
    ],
)
def test_a_program_is_what_was_asked_for(
    built: Built, route: str, time: str, state: State, chunk: int, expected: str
) -> None:
    """Of programs that other tests look at, too. The common suite has more."""
    assert built(route, time, state, chunk).artifact.lowered == expected


@pytest.mark.first(1)
@BOTH
def test_a_loop_over_copies_goes_on_through_a_ragged_rest(built: Built, route: str) -> None:
    program = built(route, "unrolled:3", "stateful", 6)
    model = program.request.model
    x = draw_inputs(model, 8, 1, 0)
    expected = run_reference(model, program.request.weights, x).y
    np.testing.assert_allclose(program.open().step({"x": x})["y"], expected, atol=1e-6)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("time", "state", "rest"), [("looped", "stateful", 0), *for_proof(("unrolled:2", "stitched", 1))]
)
def test_a_network_of_other_layers_is_right(tmp_path: Path, time: str, state: State, rest: int) -> None:
    built_and_right(TvmBackend(), asked(Mixed(), "relax", Strategy(time, state, 4)), tmp_path, rest)


@pytest.mark.proof
@pytest.mark.parametrize(("time", "copies"), [("looped", 1), *for_proof(("unrolled", 4))])
def test_a_convolution_over_time_and_frequency_is_one_product(tmp_path: Path, time: str, copies: int) -> None:
    """Slices and a product for each of its frequencies took 1.6 times as long. Dense layers have three products."""
    request = asked(KwsCrnn(input=9, filters=3, hidden=6), "relax", Strategy(time, "stitched", 4))
    built_and_right(TvmBackend(), request, tmp_path)
    operations = TvmBackend().build(request, tmp_path).artifact.operations["input"]
    assert operations["relax.matmul"] == 3 * copies + 4


@pytest.mark.parametrize(
    ("name", "time", "state", "rest"),
    [
        ("mingru", "parallel", "stateful", 1),
        *for_proof(("mingru", "parallel", "none", 0), ("gla", "chunked:2", "stateful", 0)),
        *for_proof(("mingru", "looped", "stitched", 0)),
    ],
)
def test_linear_recurrences_keep_their_state(tmp_path: Path, name: str, time: str, state: State, rest: int) -> None:
    """Calls of 4 steps. `test_linear_recurrences` has the stitched ones of many steps at once."""
    built_and_right(TvmBackend(), asked(small(name), "relax", Strategy(time, state, 4)), tmp_path, rest)


def test_the_logarithm_of_a_sigmoid_keeps_its_digits() -> None:
    import tvm
    from tvm import relax

    from rnnbench.backends.tvm.relax_primitives import RelaxPrimitives
    from rnnbench.backends.tvm.vm_program import compiled_module

    z = np.array([[-104, -80, -20, -1, -1e-3, 0, 1e-3, 1, 9, 16, 17, 20, 80]], np.float32)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(z.shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            found = builder.emit_output(RelaxPrimitives(builder, builder).log_sigmoid(x))
        builder.emit_func_output(found)
    executable, _ = compiled_module(builder.get(), "cpu")
    result = tvm.relax.VirtualMachine(executable, tvm.cpu())["main"](tvm.runtime.tensor(z))
    np.testing.assert_allclose(result.numpy(), -np.logaddexp(0, -z.astype(np.float64)), rtol=1e-6)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("time", "chunk", "state"),
    [
        *(("unrolled", 1, "stateful"), ("looped", 3, "stateful")),
        *for_proof(("unrolled", 1, "stitched"), ("unrolled", 3, "stitched")),
    ],
)
def test_no_call_writes_over_what_it_still_returns(tmp_path: Path, time: str, chunk: int, state: State) -> None:
    built_and_right(TvmBackend(), asked(Delays(), "relax", Strategy(time, state, chunk)), tmp_path)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("time", "state", "chunk", "form"),
    [("unrolled", "stateful", 1, "unrolled 5"), *for_proof(("unrolled", "stateful", 2, "unrolled 10"))],
)
def test_copies_are_counted_for_each_layer_with_state(
    tmp_path: Path, time: str, state: State, chunk: int, form: str
) -> None:
    request = asked(RNNoise(input=5, hidden=6), "relax", Strategy(time, state, chunk))
    assert TvmBackend().build(request, tmp_path).artifact.lowered == form


@pytest.mark.first(1)
@pytest.mark.parametrize(("time", "form"), [("looped", "looped 1"), ("unrolled:2", "looped 1 of 2")])
def test_copies_of_a_counter_are_counted_by_its_sums(built: Built, time: str, form: str) -> None:
    assert built("relax", time, "stitched", 4, 1, COUNTER).artifact.lowered == form


def test_a_loop_over_tiles_of_time_is_one_loop(built: Built) -> None:
    assert built("tir", "looped", "stitched", 37).artifact.lowered == "looped 1"


@pytest.mark.proof
def test_digests_are_the_same_in_another_process_whose_tvm_leaves_torch_alone(built: Built, tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[2])\n"
        "from conftest import TvmBackend, requested\n"
        "from rnnbench.backends.program_store import described\n"
        "assert 'tvm' not in sys.modules\n"
        "TvmBackend().load()\n"
        "assert 'tvm' in sys.modules and 'torch' not in sys.modules\n"
        "for route in sys.argv[3:]:\n"
        "    request = requested(route)\n"
        "    artifact = described(TvmBackend().build(request, pathlib.Path(sys.argv[1])), request)\n"
        "    print(artifact.source_digest, artifact.digest)"
    )
    routes = ("tir", "relax")
    command = [sys.executable, "-c", script, str(tmp_path), str(Path(__file__).parent), *routes]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout.splitlines()
    artifacts = [described(built(route), built(route).request) for route in routes]
    assert found == [f"{artifact.source_digest} {artifact.digest}" for artifact in artifacts]


@pytest.mark.first(1)
@BOTH
def test_other_weights_are_another_program(request_for: Requested, built: Built, route: str, tmp_path: Path) -> None:
    request = request_for(route)
    other = TvmBackend().build(replace(request, weights=draw_weights(request.model, 2)), tmp_path)
    # The files differ, and not only the weights that the suite adds to the digest.
    assert described(other, request).digest != described(built(route), request).digest


@pytest.mark.first(2)
@pytest.mark.parametrize(("cell", "hidden"), [("gru", 1), ("lstm", 3), ("gru", 16), ("lstm", 127)])
def test_any_width_of_padding_is_right(built: Built, request_for: Requested, cell: str, hidden: int) -> None:
    """The common suite has a vector and one more, and two vectors and one more."""
    model = Model(cell=cell, input=3, hidden=hidden)
    program = built("tir", "looped", "stitched", 18, 3, model)
    x, state = draw_inputs(model, 36, 3, 0), draw_state(model, 3, 0)
    session = program.open()
    session.set_state(state)
    expected = run_reference(model, request_for("tir", model=model).weights, x, state)
    np.testing.assert_allclose(session.step({"x": x})["y"], expected.y, atol=2e-6)
    for name, array in session.get_state().items():
        np.testing.assert_allclose(array, expected.final[name], atol=2e-6)


@pytest.mark.first(1)
@BOTH
def test_no_result_depends_on_how_a_stream_was_cut(built: Built, route: str) -> None:
    """Blocks of weights are read to and fro from step to step, and the direction depends on the steps before."""
    whole, single = (built(route, "looped", "stateful", chunk).open() for chunk in (6, 1))
    x = draw_inputs(Model(cell="lstm", input=5, hidden=17), 6, 1, 0)
    rows = [single.step({"x": row[None]})["y"] for row in x]
    np.testing.assert_array_equal(whole.step({"x": x})["y"], np.concatenate(rows))


@BOTH
def test_a_nan_of_the_input_reaches_the_output(built: Built, route: str) -> None:
    session = built(route).open()
    x = draw_inputs(Model(cell="lstm", input=5, hidden=17), 6, 1, 0).copy()
    x[2] = np.nan
    y = session.step({"x": x})["y"]
    assert np.isfinite(y[:2]).all()
    assert np.isnan(y[2:]).all()


def test_math_and_origin_are_told(built: Built) -> None:
    relu = Model(cell="rnn", input=3, hidden=5, activation="relu")
    assert built("tir").artifact.math == "approximate"
    assert built("tir", "looped", "stitched", 6, 1, relu).artifact.math == "exact"
    assert built("relax").artifact.math == "approximate"
    assert built("relax", "looped", "stitched", 6, 1, relu).artifact.math == "exact"
    assert (built("tir").artifact.origin, built("relax").artifact.origin) == ("kernel", "authored")


def test_a_step_of_the_kernel_calls_no_function(built: Built) -> None:
    compiled = built("tir").artifact.operations["compiled"]
    assert compiled["llvm.fmuladd"] > 0
    assert b"expf" not in built("tir").library.read_bytes()


def test_without_a_compiler_the_linker_does(request_for: Requested, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("tvm.support.cc.get_cc", lambda: None)
    program = TvmBackend().build(request_for("tir", state="none"), tmp_path)
    assert program.open().step({"x": draw_inputs(program.request.model, 6, 1, 0)})["y"].shape == (6, 1, 17)


def test_without_any_linker_the_error_says_what_to_install(
    request_for: Requested, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("tvm.support.cc.get_cc", lambda: None)
    monkeypatch.setattr(store.shutil, "which", lambda name: None)
    with pytest.raises(BuildError, match=r"neither a C compiler .* nor ld .*Install one"):
        TvmBackend().build(request_for("tir", model=COUNTER), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("is_queued", [True, False])
@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_a_call_is_waited_for_where_its_buffers_are_on_a_device(
    built: Built, monkeypatch: pytest.MonkeyPatch, state: State, is_queued: bool
) -> None:
    """The processor stands in for the device."""
    program, of_processor, waits = built("relax", "looped", state), memory_on("cpu"), list[bool]()
    memory = replace(of_processor, device=SimpleNamespace(sync=lambda: waits.append(True)))
    if is_queued:
        memory = replace(memory, new=lambda shape: DeviceBuffer(of_processor.device, shape))
    monkeypatch.setattr(relax_session, "memory_on", lambda device: memory)
    bound = program.open().bind([{"x": draw_inputs(program.request.model, 6, 1, 0)}])
    bound()
    assert not waits
    bound.sync()
    assert len(waits) == is_queued
