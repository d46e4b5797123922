"""JAX on CUDA, as far as it shows without a GPU: where arrays are, what JAX and XLA make of a program, what is missing.

`rnn.lstm` is cuDNN's and runs on a GPU alone. JAX has a reference of its own for it (`rnn.lstm_ref`), which stands in
for it here where numbers are compared. Where JAX's plugin for CUDA is installed, XLA compiles for an H100, without one.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_programs import built_as_the_reference
from quick_tests import for_proof
from waiting import PATIENCE_S

from rnnbench.backends.base import LENGTHS, Lack, Request
from rnnbench.backends.jax import JaxBackend, backend
from rnnbench.cases.trial import Precision, State, Strategy
from rnnbench.devices import Device
from rnnbench.rnn.network import Network
from rnnbench.rnn.networks.mingru import MinGruStack
from rnnbench.rnn.networks.rnnoise import RNNoise
from rnnbench.rnn.networks.rnnt_greedy import Rnnt
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs, draw_state, draw_weights

jax = pytest.importorskip("jax")

H100 = Path(__file__).with_name("h100.txtpb")
LSTM = Model(cell="lstm", input=4, hidden=6)
STACK = LSTM.model_copy(update={"layers": 2})
BOTH_WAYS = STACK.model_copy(update={"direction": "bidirectional"})
NO_BIAS = LSTM.model_copy(update={"bias": False})
GRU = Model(cell="gru", input=4, hidden=6)
RNNOISE = RNNoise(input=5, hidden=6)
MIN_GRU = MinGruStack(input=4, hidden=6)
RNNT = Rnnt(input=16, hidden=12, prediction=12, max_symbols=4, search="program")


def ask(
    model: Network = LSTM, time: str = "looped", state: State = "stitched", chunk: int = 4, dtype: str = "float32"
) -> Request:
    strategy, precision = Strategy(time, state, chunk), Precision.of(dtype)
    return Request("jit", model, draw_weights(model, 0), strategy, batch=2, precision=precision, device="cuda")


def label(value: object) -> str:
    return f"{value.model.label}-{value.strategy}" if isinstance(value, Request) else str(value)


def graph(request: Request) -> Request:
    return replace(request, strategy=replace(request.strategy, launch="graph"))


@pytest.fixture
def on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX's first device of the processor stands in for the GPU."""
    from rnnbench.backends.jax import placement

    monkeypatch.setattr(placement, "device_of", lambda request: jax.devices("cpu")[0])


@pytest.fixture
def reference_for_cudnn(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """JAX's own reference in the place of cuDNN's operator, and what each call of it was given."""
    from jax.experimental import rnn

    calls: list[dict[str, Any]] = []

    def lstm(x: Any, h: Any, c: Any, weights: Any, lengths: Any, *sizes: Any) -> tuple[Any, Any, Any]:
        *sizes, precision = sizes
        calls.append({"precision": precision, "dtype": weights.dtype})
        unpacked = rnn.unpack_lstm_weights(weights, *sizes[:3], sizes[4])
        result: tuple[Any, Any, Any] = rnn.lstm_ref(x, h, c, *unpacked, lengths, *sizes)
        return result

    monkeypatch.setattr(rnn, "lstm", lstm)
    return calls


@pytest.mark.usefixtures("on_the_processor", "reference_for_cudnn")
def test_cudnns_operator_gets_and_gives_arrays_that_lie_as_their_shapes_say() -> None:
    """It names no layout, and XLA would leave the transpositions beside it out (docs/upstream/jax-cudnn-layout.md)."""
    from rnnbench.backends.jax.cudnn import fused_step

    request = ask(time="fused")
    x, state = np.zeros((4, 2, 4), np.float32), np.zeros(2 * 2 * 6, np.float32)
    lowered = jax.jit(fused_step(request)).lower(x, state).as_text()
    assert lowered.count("@LayoutConstraint") == 2


@pytest.mark.usefixtures("on_the_processor")
@pytest.mark.parametrize("model", [STACK, *for_proof(LSTM, NO_BIAS)], ids=["stack", "lstm", "no-bias"])
def test_fused_gives_cudnn_weights_and_states_in_its_order(
    tmp_path: Path, reference_for_cudnn: list[dict[str, Any]], model: Model
) -> None:
    request = ask(model, time="fused")
    x, state = draw_inputs(model, 8, 2, seed=1), draw_state(model, 2, seed=2)
    session = JaxBackend().build(request, tmp_path).open()
    session.set_state(state)
    y = np.concatenate([session.step({"x": part})["y"] for part in (x[:4], x[4:])])
    expected = run_reference(model, request.weights, x, state)
    np.testing.assert_allclose(y, expected.y, atol=2e-6)
    for name, array in session.get_state().items():
        np.testing.assert_allclose(array, expected.final[name], atol=2e-6)
    assert {call["precision"] for call in reference_for_cudnn} == {jax.lax.Precision.HIGHEST}


@pytest.mark.usefixtures("on_the_processor", "reference_for_cudnn")
def test_fused_runs_in_both_directions_and_up_to_the_length_of_each_row(tmp_path: Path) -> None:
    request = replace(ask(BOTH_WAYS, time="fused", state="none"), ragged=True)
    x, lengths = draw_inputs(BOTH_WAYS, 4, 2, seed=1), np.array([4, 2], np.int32)
    y = JaxBackend().build(request, tmp_path).open().step({"x": x, "lengths": lengths})["y"]
    for row, length in enumerate(lengths):
        expected = run_reference(BOTH_WAYS, request.weights, x[:length, row : row + 1]).y
        np.testing.assert_allclose(y[:length, row : row + 1], expected, atol=2e-6)
        assert not y[length:, row].any()


@pytest.mark.usefixtures("on_the_processor")
def test_cudnn_is_asked_for_float32_and_not_for_tf32(monkeypatch: pytest.MonkeyPatch) -> None:
    """cuDNN's answers about its workspace, which it gives on a GPU alone, are made up."""
    lowered, asked = lowered_for_cuda(ask(time="fused"), monkeypatch)
    assert lowered.count("stablehlo.custom_call @cudnn_rnn_ffi") == 1
    assert "stablehlo.dot_general" not in lowered
    assert {tf32 for *_, tf32 in asked} == {False}


@pytest.mark.usefixtures("on_the_processor")
@pytest.mark.parametrize(
    "request_",
    [
        ask(),
        ask(chunk=1),
        ask(time="unrolled:2"),
        ask(GRU, time="unrolled", state="stateful"),
        ask(BOTH_WAYS, state="none"),
        ask(RNNOISE),
        ask(MIN_GRU, time="parallel"),
        ask(MIN_GRU, time="chunked:2"),
        ask(dtype="bfloat16"),
    ],
    ids=label,
)
def test_a_program_for_cuda_multiplies_in_float32_and_calls_nothing_of_the_processor(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered, _ = lowered_for_cuda(request_, monkeypatch)
    products = [line for line in lowered.splitlines() if "stablehlo.dot_general" in line]
    assert products
    assert all("precision = [HIGHEST, HIGHEST]" in line for line in products)
    assert "custom_call" not in lowered


def lowered_for_cuda(request: Request, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[tuple[Any, ...]]]:
    """What JAX lowers a request to for CUDA, and the questions that it asked of cuDNN."""
    from jax.experimental import rnn
    from jax.interpreters import mlir

    from rnnbench.backends.jax import placement
    from rnnbench.backends.jax.program import traced

    asked: list[tuple[Any, ...]] = []

    class Library:
        """JAX's extension for cuDNN, without cuDNN."""

        @staticmethod
        def build_rnn_descriptor(*sizes: Any) -> bytes:
            return b"descriptor"

    def sizes_of_spaces(*question: Any) -> tuple[int, int]:
        asked.append(question)
        return 8, 16

    monkeypatch.setattr(rnn.gpu_rnn, "compute_rnn_workspace_reserve_space_sizes", sizes_of_spaces, raising=False)
    lowering = partial(rnn.gpu_rnn._rnn_fwd_lowering, Library, "cu")
    mlir.register_lowering(rnn.rnn_fwd_p, lowering, platform="cuda")
    with placement.placed(request):
        program = traced(request, np.dtype(getattr(jax.numpy, str(request.precision.uniform))))
        return program.lower(lowering_platforms=("cuda",)).as_text(), asked


SECOND_DEVICE = """
import pickle, sys
from pathlib import Path
import jax
import numpy as np
from rnnbench.backends.jax import JaxBackend, placement

request, folder, x = pickle.loads(sys.stdin.buffer.read())
first, second = jax.devices("cpu")
placement.device_of = lambda request: second

def streamed():
    program = JaxBackend().build(request, Path(folder))
    session = program.open()
    bound = session.bind([{"x": part} for part in (x[:4], x[4:])])
    y = session.step({"x": x})["y"]
    session.reset()
    bound(), bound()
    bound.sync()
    places = {device for array in jax.live_arrays() for device in array.devices()}
    assert places == {second}, places
    return program.cached, y, bound.output()["y"], session.get_state()

sys.stdout.buffer.write(pickle.dumps([streamed(), streamed()]))
"""


def test_every_array_of_a_program_is_on_its_device(tmp_path: Path) -> None:
    """The processor as two devices: the second one is the program's, and the first one is JAX's default.

    Of a program that was compiled, and of one that was loaded.
    """
    request = replace(ask(STACK), device="cpu")
    x = draw_inputs(STACK, 8, 2, seed=1)
    two = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    expected = run_reference(STACK, request.weights, x)
    answers = in_a_process(SECOND_DEVICE, (request, str(tmp_path), x), two)
    assert [cached for cached, *_ in answers] == [False, True]
    for _, y, last, state_after in answers:
        np.testing.assert_allclose(y, expected.y, atol=2e-6)
        np.testing.assert_allclose(last, expected.y[4:], atol=2e-6)
        np.testing.assert_allclose(state_after["h"], expected.final["h"], atol=2e-6)


def in_a_process(script: str, given: object, variables: dict[str, str]) -> Any:
    environment = {**os.environ, **variables}
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, input=pickle.dumps(given), capture_output=True, env=environment, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return pickle.loads(done.stdout)


COMPILED = """
import pickle, sys
import numpy as np
from jax.experimental import rnn, topologies
from rnnbench.backends.jax import placement, program, store

requests, h100 = pickle.loads(sys.stdin.buffer.read())
described = {"topology": "1x1x1", "target_config": h100}
gpu = topologies.get_topology_desc(platform="cuda", topology_name="1x1x1", **described).devices[0]
placement.device_of = lambda request: gpu
rnn.gpu_rnn.compute_rnn_workspace_reserve_space_sizes = lambda *question: (8, 16)

def compiled(request):
    made = program.compile_program(request, np.dtype("float32"))
    return len(made.serialised), store.without_origins(made.hlo), made.artifact.lowered, made.artifact.origin

sys.stdout.buffer.write(pickle.dumps([compiled(request) for request in (*requests, requests[0])]))
"""
FORMS = [
    (ask(), "looped 1"),
    (ask(chunk=1), "unrolled 1"),
    (ask(time="unrolled"), "unrolled 4"),
    (ask(time="unrolled:2"), "looped 1 of 2"),
    (ask(STACK, time="fused", state="none"), "fused"),
    (ask(RNNOISE), "looped 5"),
    (ask(MIN_GRU, time="parallel"), "parallel 3"),
]
DUMPED = """
import pickle, sys
from jax.experimental import topologies
from rnnbench.backends.jax import placement, program
import numpy as np

requests, h100 = pickle.loads(sys.stdin.buffer.read())
described = {"topology": "1x1x1", "target_config": h100}
gpu = topologies.get_topology_desc(platform="cuda", topology_name="1x1x1", **described).devices[0]
placement.device_of = lambda request: gpu
for request in requests:
    program.compile_program(request, np.dtype("float32"))
sys.stdout.buffer.write(pickle.dumps(None))
"""


@pytest.mark.parametrize("request_", [ask(), ask(chunk=1), ask(GRU, time="unrolled:2", state="stateful")], ids=label)
def test_a_launch_is_what_xla_does_with_the_operations_of_a_call(request_: Request, tmp_path: Path) -> None:
    """XLA's list of what a call launches, with launch `stream` and with launch `graph`."""
    pytest.importorskip("jax_cuda13_plugin", reason="XLA's compiler for CUDA is not installed: pip install jax[cuda13]")
    stream, graph = (replace(request_, strategy=replace(request_.strategy, launch=one)) for one in ("stream", "graph"))
    launched = {}
    for name, request in {"stream": stream, "graph": graph}.items():
        flags = f"--xla_dump_to={tmp_path / name}"
        in_a_process(DUMPED, ([request], H100.read_text()), {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags})
        (*_, listing) = sorted((tmp_path / name).glob("*.thunk_sequence*.txt"), key=lambda path: len(path.name))
        launched[name] = listing.read_text().splitlines()
    assert not any("kCommandBuffer" in line for line in launched["stream"])
    outermost = [line for line in launched["graph"] if line and not line.startswith(" ") and "condition:" not in line]
    assert len(outermost) == 1
    assert "kCommandBuffer" in outermost[0]


def test_loops_copies_and_cudnn_are_found_in_what_xla_makes_for_a_gpu() -> None:
    """XLA compiles for an H100 that is described to it. cuDNN's answers about its workspace are made up."""
    pytest.importorskip("jax_cuda13_plugin", reason="XLA's compiler for CUDA is not installed: pip install jax[cuda13]")
    requests = [request for request, _ in FORMS]
    *answers, again = in_a_process(COMPILED, (requests, H100.read_text()), {"JAX_PLATFORMS": "cpu"})
    assert again[1:] == answers[0][1:]
    for (request, lowered), (size, hlo, form, origin) in zip(FORMS, answers, strict=True):
        assert form == lowered, label(request)
        assert origin == ("library" if lowered == "fused" else "authored")
        assert size > 4 * request.model.weight_count
        operators = [line for line in hlo.splitlines() if "cudnn_rnn" in line]
        assert len(operators) == (lowered == "fused")
        assert all("{2,1,0}" in line and "{2,0,1}" not in line for line in operators)
        products = [line for line in hlo.splitlines() if " dot(" in line]
        assert all("operand_precision={highest,highest}" in line for line in products)


WITHOUT_A_GPU = """
import pickle, sys
from pathlib import Path
from rnnbench.backends.base import BuildError
from rnnbench.backends.jax import JaxBackend

request, folder = pickle.loads(sys.stdin.buffer.read())
try:
    JaxBackend().build(request, Path(folder))
except BuildError as error:
    sys.stdout.buffer.write(pickle.dumps(str(error)))
"""


TRACED_BY_DEFAULT = "placement.MATMUL_PRECISION = None\n"
"""What the suite would do if it left JAX's default."""


@pytest.mark.parametrize("fault", ["", TRACED_BY_DEFAULT], ids=["as-it-is", "jax-default"])
def test_a_product_of_float32_is_not_rounded_to_tf32(fault: str, tmp_path: Path) -> None:
    """In the code for an H100: XLA's own products, which no variable of NVIDIA's libraries reaches."""
    pytest.importorskip("jax_cuda13_plugin", reason="XLA's compiler for CUDA is not installed: pip install jax[cuda13]")
    model = Model(cell="lstm", input=32, hidden=64)
    request = replace(ask(model), batch=32)
    flags = f"--xla_dump_to={tmp_path} --xla_dump_emitter_re=.* --xla_gpu_dump_llvmir=true"
    script = DUMPED.replace("for request in", f"{fault}for request in")
    in_a_process(script, ([request], H100.read_text()), {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags})
    code = "".join(path.read_text() for path in tmp_path.glob("*.ptx"))
    assert "fma.rn.f32" in code or fault
    assert ("tf32" in code) == bool(fault)


def test_a_build_without_a_gpu_fails_and_does_not_compute_on_the_processor(tmp_path: Path) -> None:
    if JaxBackend().probe().device("cuda"):
        pytest.skip("there is a GPU here")
    said = in_a_process(WITHOUT_A_GPU, (ask(), str(tmp_path)), dict(JaxBackend().support(ask()).environment))
    assert said.startswith("JAX has no device cuda: ")
    assert len(said) > len("JAX has no device cuda: ")


def test_of_several_gpus_jax_starts_the_first() -> None:
    """It would start the others too, and end where another user has left one of them no memory."""
    JaxBackend().load()
    assert jax.config.read("jax_cuda_visible_devices") == "0"


def test_a_worker_on_cuda_takes_no_memory_beforehand_and_fails_without_a_gpu() -> None:
    environment = JaxBackend().support(ask()).environment
    assert environment == {
        "JAX_PLATFORMS": "cuda",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "NVIDIA_TF32_OVERRIDE": "0",
    }


def test_a_worker_on_the_processor_sees_no_gpu() -> None:
    environment = JaxBackend().support(replace(ask(), device="cpu")).environment
    assert environment["JAX_PLATFORMS"] == "cpu"
    assert environment["CUDA_VISIBLE_DEVICES"] == "-1"


@pytest.mark.usefixtures("on_the_processor")
def test_the_flags_say_how_products_and_launches_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    from rnnbench.backends.jax import placement

    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    flags = placement.flags(ask())
    assert {"NVIDIA_TF32_OVERRIDE=0", "jax_default_matmul_precision=highest"} < set(flags)
    assert "xla_gpu_enable_command_buffer=" in flags


class StandIn:
    """What JAX tells of a GPU."""

    platform_version = "PJRT C API\ncuda 13000"
    device_kind = "NVIDIA H100 80GB HBM3"

    def __init__(self, compute_capability: str) -> None:
        self.compute_capability = compute_capability
        self.client = self


def test_an_executable_is_for_a_kind_of_device_a_capability_and_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    from rnnbench.backends.jax import placement, store

    def key(request: Request, capability: str = "9.0") -> str:
        monkeypatch.setattr(placement, "device_of", lambda request: StandIn(capability))
        return store.key(request, np.dtype("float32"))

    keys = [key(replace(ask(), device="cpu")), key(ask()), key(ask(), "10.0"), key(graph(ask()))]
    assert len(set(keys)) == len(keys)
    assert key(ask()) == keys[1]
    assert key(replace(ask(), device="cpu"), "10.0") == keys[0]


PLUGIN = {"jax-cuda13-plugin": "0.11.2"}


@pytest.mark.parametrize(
    ("versions", "reason"),
    [
        ({}, "JAX's plugin for CUDA is not installed (jax-cuda13-plugin or jax-cuda12-plugin)"),
        (PLUGIN, "jax-cuda13-plugin is installed, and jax-cuda13-pjrt is not"),
        ({"jax-cuda12-plugin": "0.11.2", "jax-cuda13-pjrt": "0.11.2"}, "and jax-cuda12-pjrt is not"),
    ],
)
def test_what_is_missing_for_cuda_is_named(versions: dict[str, str], reason: str) -> None:
    lack = backend.cuda_lack(versions)
    assert isinstance(lack, Lack)
    assert reason in lack.reason
    assert lack.install == "pip install 'jax[cuda13]'"


def test_with_its_plugin_the_driver_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    h100 = Device("an H100", "NVIDIA 580", "sm_90")
    monkeypatch.setattr(backend, "cuda_versions", lambda: {**PLUGIN, "jax-cuda13-pjrt": "0.11.2"})
    monkeypatch.setattr("rnnbench.backends.shared.cuda.first_gpu", lambda: h100)
    monkeypatch.setattr("rnnbench.backends.shared.cuda.newest_cuda", lambda: 13)
    probe = JaxBackend().probe()
    assert probe.device("cuda") == h100
    assert probe.versions["jax-cuda13-plugin"] == "0.11.2"


@pytest.mark.parametrize(
    ("plugin", "major"), [("jax-cuda13-plugin", 13), ("jax-cuda12-plugin", 12), ("jax-rocm-plugin", None)]
)
def test_a_plugin_is_built_for_the_cuda_in_its_name(plugin: str, major: int | None) -> None:
    assert backend.built_for({"jax": "0.11.2", plugin: "0.11.2"}) == major


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (ask(GRU, time="fused"), "the LSTM alone"),
        (ask(RNNOISE, time="fused"), "the LSTM alone"),
        (ask(time="fused", dtype="float64"), "float32 alone"),
        (ask(LSTM.model_copy(update={"projection": 3}), time="fused"), "no projection"),
        (ask(LSTM.model_copy(update={"cell_clip": 0.5}), time="fused"), "no clip"),
        (ask(LSTM.model_copy(update={"activation": "relu"}), time="fused"), "no other activations"),
        (ask(LSTM.model_copy(update={"direction": "reverse"}), time="fused", state="none"), "not backwards alone"),
        (replace(ask(), threads=2), "one thread"),
        (graph(ask(time="fused")), "does not record cuDNN's LSTM"),
        (graph(ask(RNNT)), "depends on what its parts give"),
    ],
    ids=label,
)
def test_what_is_refused_on_cuda_says_why(request_: Request, reason: str) -> None:
    support = JaxBackend().support(request_)
    assert support.level == "unsupported"
    assert reason in support.reason


def test_fused_is_native_on_cuda_and_has_lengths() -> None:
    support = JaxBackend().support(ask(time="fused", state="none"))
    assert support.level == "native"
    assert LENGTHS in support.covers


@pytest.mark.parametrize(
    ("request_", "lowered"),
    [(ask(), "looped 1"), (ask(STACK, time="unrolled"), "unrolled 8"), (ask(STACK, time="fused"), "fused")],
    ids=label,
)
def test_a_gpu_gives_what_the_reference_says(tmp_path: Path, request_: Request, lowered: str) -> None:
    for was_cached in (False, True):
        assert built_as_the_reference(JaxBackend(), request_, tmp_path)[:2] == (was_cached, lowered)
