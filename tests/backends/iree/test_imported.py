"""Programs that reach IREE through an importer: what they become, what is left out, and that this is still so."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mixed_network import Mixed, built_and_right, request_for
from quick_tests import for_proof
from waiting import PATIENCE_S

from rnnbench.backends.base import BuildError, OperationStage, Request
from rnnbench.backends.iree import IreeBackend, imported, runtime
from rnnbench.backends.iree.compile import SUMS, flags_of
from rnnbench.backends.iree.imported_apart import import_apart
from rnnbench.backends.iree.imported_program import build_imported
from rnnbench.cases.trial import Precision, State, Strategy
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Direction, Model
from rnnbench.rnn.weights import Weights, draw_inputs, draw_weights

pytest.importorskip("iree.runtime")

LSTM = Model(cell="lstm", input=4, hidden=6)
GRU = Model(cell="gru", input=4, hidden=6)
RNN = Model(cell="rnn", input=4, hidden=6)


def ask(route: str, model: Model = LSTM, time: str = "fused", state: State = "stitched", chunk: int = 3) -> Request:
    strategy = Strategy(time, state, chunk)
    return Request(route, model, draw_weights(model, 0), strategy, batch=1, precision=Precision.of("float32"))


def needs(route: str) -> None:
    for package in imported.PACKAGES[route]:
        pytest.importorskip(package.replace("-", "_"))
    if route == "tensorflow":
        # Other tests of this process run TensorFlow on one thread, which has to be said first.
        from rnnbench.backends.tensorflow.process import prepare_process

        prepare_process(1)


def test_an_importer_in_a_process_of_its_own_makes_the_same_module() -> None:
    needs("onnx")
    request = ask("onnx", GRU)
    assert import_apart(request, {}) == imported.import_here(request)


def test_an_importer_that_fails_in_a_process_of_its_own_says_why() -> None:
    needs("onnx")
    with pytest.raises(BuildError, match="the importer of no-such-route failed\n"):
        import_apart(replace(ask("onnx"), route="no-such-route"), {})


@pytest.mark.parametrize("device", ["vulkan", "cuda"])
def test_tensorflow_is_not_in_one_process_with_the_driver_of_a_gpu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, device: str
) -> None:
    """Mesa's driver binds to the LLVM of TensorFlow's library there, and dies of SIGSEGV."""
    if lack := IreeBackend().probe().lack("tensorflow"):
        pytest.skip(f"{lack.reason}; {lack.install}")
    seen: list[Mapping[str, str]] = []

    def recorded(_request: Request, variables: Mapping[str, str]) -> str:
        seen.append(variables)
        return '{"text": "module {}", "x": [1], "state": []}'

    monkeypatch.setattr(imported, "import_apart", recorded)
    request = replace(ask("tensorflow", time="looped"), device=device)
    assert imported.imported(request, tmp_path).text == "module {}"
    assert seen[0]["CUDA_VISIBLE_DEVICES"] == "-1"
    assert imported.environment(request) == {}


@pytest.mark.proof
@pytest.mark.parametrize("route", ["onnx", *for_proof("torch")])
def test_products_of_one_row_with_many_weights_have_several_sums(folder: Path, route: str) -> None:
    needs(route)
    large = Model(cell="gru", input=32, hidden=208)
    request = ask(route, large, chunk=2)
    others = (ask(route, GRU), replace(request, batch=8), replace(request, route="stablehlo"))
    assert [SUMS in flags_of(other) for other in (request, *others)] == [True, False, False, False]
    x = draw_inputs(large, 2, 1, seed=1)
    y = IreeBackend().build(request, folder).open().step({"x": x})["y"]
    np.testing.assert_allclose(y, run_reference(large, request.weights, x).y, atol=1e-5)


@pytest.mark.parametrize(
    ("route", "time", "lowered"),
    [
        ("onnx", "fused", "looped 1"),
        *for_proof(
            ("torch", "fused", "unrolled 3"),
            ("tensorflow", "fused", "unrolled 3"),
            ("stablehlo", "looped", "looped 1"),
            ("onnx", "looped", "looped 1"),
            ("onnx", "unrolled", "unrolled 3"),
            ("onnx", "unrolled:3", "unrolled 3"),
            ("stablehlo", "unrolled", "unrolled 3"),
        ),
    ],
)
def test_what_an_import_becomes_is_read_off_the_compiled_form(
    folder: Path, route: str, time: str, lowered: str
) -> None:
    """Of an RNN: the common suite has LSTMs and GRUs through each importer."""
    needs(route)
    request = ask(route, RNN, time)
    program = IreeBackend().build(request, folder)
    assert (program.artifact.lowered, program.artifact.origin) == (lowered, "imported")
    x = draw_inputs(RNN, 3, 1, seed=1)
    expected = run_reference(RNN, request.weights, x).y
    np.testing.assert_allclose(program.open().step({"x": x})["y"], expected, atol=1e-6)


@pytest.mark.proof
def test_a_graph_of_other_layers_than_cells_is_imported(tmp_path: Path) -> None:
    """The common suite has one with loops."""
    needs("onnx")
    built_and_right(IreeBackend(), request_for(Mixed(), "onnx", Strategy("unrolled", "none", 2)), tmp_path)


LOADED = """
import pickle, sys
from pathlib import Path
from rnnbench.backends.iree import IreeBackend

FRAMEWORKS = {"torch", "torch_mlir", "jax", "onnx", "tensorflow"}
request, folder = pickle.loads(sys.stdin.buffer.read())
print(IreeBackend().build(request, Path(folder)).cached, *(FRAMEWORKS & sys.modules.keys()))
"""


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("route", "time"), [("onnx", "fused"), ("stablehlo", "looped"), ("torch", "fused"), ("tensorflow", "fused")]
)
def test_a_second_build_imports_no_other_framework(folder: Path, route: str, time: str) -> None:
    """Each route has a process of its own: torch_mlir aborts one that TensorFlow is loaded in."""
    needs(route)
    request = ask(route, RNN, time)
    IreeBackend().build(request, folder)
    answer = subprocess.run(
        [sys.executable, "-c", LOADED],
        input=pickle.dumps((request, str(folder))),
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert answer.stdout.decode().split() == ["True"]


def test_what_stands_in_is_said() -> None:
    support = IreeBackend().support(ask("onnx", state="stateful"))
    assert support.level == "emulated"
    assert "makes a loop over the cell of it" in support.reason
    assert "the session holds the state's buffers" in support.reason
    assert "a copy of the cell for each step" in IreeBackend().support(ask("torch")).reason
    assert IreeBackend().support(ask("stablehlo", time="looped")).level == "native"


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (ask("stablehlo"), "StableHLO has no RNN operator"),
        (ask("torch", time="looped"), "time fused only"),
        (ask("torch", GRU.model_copy(update={"reset_after": False})), "reset gate"),
        (ask("onnx", LSTM.model_copy(update={"projection": 3})), "no projection"),
        (ask("tensorflow", LSTM.model_copy(update={"projection": 3})), "no projection"),
    ],
    ids=["stablehlo", "torch-looped", "torch-gru", "onnx-projection", "keras-projection"],
)
def test_what_no_importer_makes_is_refused(request_: Request, reason: str) -> None:
    support = IreeBackend().support(request_)
    assert support.level == "unsupported"
    assert reason in support.reason


def test_the_variables_of_tensorflow_are_in_the_module(tmp_path: Path) -> None:
    needs("tensorflow")
    request = ask("tensorflow", time="looped", state="stateful")
    assert IreeBackend().support(request).level == "native"
    program = IreeBackend().build(request, tmp_path)
    assert program.artifact.lowered == "looped 1"
    assert program.artifact.operations[OperationStage.INPUT]["ml_program.global"] == 2, "h and c"
    x = draw_inputs(LSTM, 6, 1, seed=1)
    expected = run_reference(LSTM, request.weights, x).y
    session = program.open()
    found = [session.step({"x": part})["y"] for part in (x[:3], x[3:])]
    np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-6)
    session.reset()
    np.testing.assert_allclose(session.step({"x": x[:3]})["y"], expected[:3], atol=1e-6)


def test_equal_requests_have_equal_modules_from_tensorflow() -> None:
    """TensorFlow numbers its functions in the order in which a process makes them."""
    needs("tensorflow")
    from rnnbench.backends.iree import imported_tensorflow

    request = ask("tensorflow", RNN, time="looped", state="stateful")
    assert imported_tensorflow.import_module(request) == imported_tensorflow.import_module(request)


LEFT_OUT = [
    ask("onnx", LSTM.model_copy(update={"direction": "reverse"}), state="none"),
    ask("onnx", GRU.model_copy(update={"direction": "bidirectional"}), state="none"),
    ask("onnx", RNN.model_copy(update={"direction": "bidirectional"}), state="none"),
    ask("onnx", LSTM.model_copy(update={"clip": 0.4})),
    ask("onnx", GRU.model_copy(update={"clip": 0.4})),
]


@pytest.mark.proof
@pytest.mark.parametrize("request_", LEFT_OUT, ids=lambda request: f"{request.model.cell}-{request.model.direction}")
def test_operators_that_are_refused_are_still_not_lowered_upstream(tmp_path: Path, request_: Request) -> None:
    needs("onnx")
    assert IreeBackend().support(request_).level == "unsupported"
    with pytest.raises(BuildError, match=r"failed to legalize operation 'torch\.operator'"):
        build_imported(request_, tmp_path)


@pytest.mark.proof
def test_the_clip_of_an_rnn_is_still_ignored_upstream(tmp_path: Path) -> None:
    needs("onnx")
    request = ask("onnx", RNN.model_copy(update={"clip": 0.1}))
    assert IreeBackend().support(request).level == "emulated", "what is accepted is run, and is a known failure"
    x = draw_inputs(RNN, 3, 1, seed=1)
    y = build_imported(request, tmp_path).open().step({"x": x})["y"]
    np.testing.assert_allclose(y, run_reference(RNN, request.weights, x).y, atol=1e-6)
    assert np.abs(y - run_reference(request.model, request.weights, x).y).max() > 0.1


@pytest.mark.proof
@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_the_directions_of_a_scan_are_still_ignored_upstream(folder: Path, direction: Direction) -> None:
    """A backward Scan runs forwards, which shows from two passes on. What is accepted is run: a known failure."""
    needs("onnx")
    request = ask("onnx", RNN.model_copy(update={"direction": direction}), time="looped", state="none")
    assert IreeBackend().support(request).level == "native"
    x = draw_inputs(RNN, 3, 1, seed=1)
    y = build_imported(request, folder).open().step({"x": x})["y"]
    backward = Weights((request.weights.row(request.model.directions - 1),))
    np.testing.assert_allclose(y[..., -RNN.hidden :], run_reference(RNN, backward, x).y, atol=1e-6)


@pytest.mark.proof
def test_a_scan_of_one_pass_runs_backwards_as_it_should(tmp_path: Path) -> None:
    needs("onnx")
    request = ask("onnx", RNN.model_copy(update={"direction": "bidirectional"}), time="unrolled:3", state="none")
    x = draw_inputs(RNN, 3, 1, seed=1)
    y = build_imported(request, tmp_path).open().step({"x": x})["y"]
    np.testing.assert_allclose(y, run_reference(request.model, request.weights, x).y, atol=1e-6)


@pytest.mark.proof
@pytest.mark.parametrize("state", ["stitched", *for_proof("none")])
def test_every_call_of_a_session_has_the_context_of_its_device(
    monkeypatch: pytest.MonkeyPatch, folder: Path, state: State
) -> None:
    """On CUDA each thread needs it (`cuda_context`). Here the wrapper counts, and a call without it is not counted.

    Of programs that other tests build, too.
    """
    needs("onnx")
    counted: Counter[str] = Counter()

    def around(call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any, **named: Any) -> Any:
            counted[getattr(call, "__name__", "copy")] += 1
            return call(*arguments, **named)

        return noted

    monkeypatch.setattr(runtime, "around_calls", lambda _device: around)
    model = RNN if state == "stitched" else RNN.model_copy(update={"direction": "reverse"})
    session = build_imported(ask("onnx", model, time="looped", state=state), folder).open()
    bound = session.bind([{"x": draw_inputs(model, 3, 1, seed=1)}])
    counted.clear()
    for _ in range(3):
        bound()
    assert counted == {"invoke": 3}
