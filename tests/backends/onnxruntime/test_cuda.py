"""ONNX Runtime on CUDA, as far as it shows without a GPU: buffers of a device, graphs, packages, refusals.

The runtime's own memory on the processor stands in for a device's: the code is the same, with another name of a device.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_programs import built_as_the_reference

from rnnbench.backends.base import BuildError, Lack, Request
from rnnbench.backends.onnxruntime import OnnxRuntimeBackend, packages
from rnnbench.cases.trial import Precision, State, Strategy
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs, draw_state, draw_weights

ort = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

BACKEND = OnnxRuntimeBackend()
LSTM = Model(cell="lstm", input=4, hidden=6)
STACK = LSTM.model_copy(update={"layers": 2})
GRU = Model(cell="gru", input=4, hidden=6)
RNN_RELU = Model(cell="rnn", input=4, hidden=6, activation="relu")
BOTH_WAYS = STACK.model_copy(update={"direction": "bidirectional"})


def ask(
    model: Model = LSTM,
    time: str = "fused",
    state: State = "stitched",
    dtype: str = "float32",
    device: str = "cuda",
    **others: Any,
) -> Request:
    strategy = Strategy(time, state, 4, others.pop("launch", "stream"))
    weights, precision = draw_weights(model, 1, dtype), Precision.of(dtype)
    return Request("onnx", model, weights, strategy, 2, precision, device, **others)


@pytest.fixture
def in_the_runtimes_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from rnnbench.backends.onnxruntime import buffers, runtime

    def buffer(array: np.ndarray, shape: tuple[int, ...], device: str) -> buffers.Buffer:
        return buffers.DeviceBuffer(array, shape, device)

    monkeypatch.setattr(runtime, "buffer", buffer)


@pytest.mark.usefixtures("in_the_runtimes_memory")
@pytest.mark.parametrize("state", ["stitched", "stateful"])
@pytest.mark.parametrize("time", ["fused", "looped", "unrolled"])
def test_a_stream_whose_arrays_are_the_runtimes_is_right(tmp_path: Path, time: str, state: State) -> None:
    request = ask(STACK, time, state, device="cpu")
    x, start = draw_inputs(STACK, 8, 2, seed=1), draw_state(STACK, 2, seed=2)
    session = BACKEND.build(request, tmp_path).open()
    expected = run_reference(STACK, request.weights, x, start)
    session.set_state(start)
    np.testing.assert_allclose(session.step({"x": x})["y"], expected.y, atol=2e-6)
    bound = session.bind([{"x": part} for part in (x[:4], x[4:])])
    session.set_state(start)
    bound(), bound()
    bound.sync()
    last = bound.output()["y"]
    np.testing.assert_allclose(last, expected.y[4:], atol=2e-6)
    np.testing.assert_allclose(session.get_state()["h"], expected.final["h"], atol=2e-6)
    session.step({"x": x})
    np.testing.assert_allclose(last, expected.y[4:], atol=2e-6)


@pytest.mark.usefixtures("in_the_runtimes_memory")
def test_lengths_of_rows_are_read_from_the_runtimes_memory(tmp_path: Path) -> None:
    request = ask(BOTH_WAYS, state="none", device="cpu", ragged=True)
    x, lengths = draw_inputs(BOTH_WAYS, 4, 2, seed=1), np.array([4, 2], np.int32)
    y = BACKEND.build(request, tmp_path).open().step({"x": x, "lengths": lengths})["y"]
    expected = run_reference(BOTH_WAYS, request.weights, x[:2, 1:]).y
    np.testing.assert_allclose(y[:2, 1:], expected, atol=2e-6)
    assert not y[2:, 1].any()


@pytest.mark.usefixtures("in_the_runtimes_memory")
def test_each_binding_has_a_graph_of_its_own(tmp_path: Path) -> None:
    """The processor's provider records no graph, and takes the numbers as CUDA's does."""
    program: Any = BACKEND.build(ask(device="cpu"), tmp_path)
    program.graphs = count(1)
    sessions = [program.open() for _ in range(2)]
    x = draw_inputs(LSTM, 8, 2, seed=1)
    expected = run_reference(LSTM, program.request.weights, x).y
    numbers = []
    for session in sessions:
        bound = session.bind([{"x": part} for part in (x[:4], x[4:])])
        np.testing.assert_allclose(session.step({"x": x})["y"], expected, atol=2e-6)
        session.reset()
        bound(), bound()
        np.testing.assert_allclose(bound.output()["y"], expected[4:], atol=2e-6)
        turns = [session._bindings, *(bound._next_bindings() for _ in range(2))]
        numbers += [options.get_run_config_entry("gpu_graph_id") for pair in turns for _, options in pair]
    assert sorted(numbers, key=int) == [str(number) for number in range(1, 13)]


@pytest.mark.parametrize("time", ["fused", "looped"])
def test_a_build_that_would_compute_on_the_processor_fails(tmp_path: Path, time: str) -> None:
    """What this wheel does where it cannot start CUDA's provider: it warns, and uses the processor."""
    if BACKEND.probe().device("cuda"):
        pytest.skip("there is a GPU here, and ONNX Runtime can use it")
    with pytest.raises(BuildError, match="would compute on the processor"):
        BACKEND.build(ask(time=time), tmp_path)


def test_cuda_is_asked_for_float32_and_for_no_more_memory_than_is_needed() -> None:
    from rnnbench.backends.onnxruntime.options import flags, provider_options

    options = provider_options(ask())
    assert options["use_tf32"] == "0"
    assert options["arena_extend_strategy"] == "kSameAsRequested"
    assert (options["enable_cuda_graph"], provider_options(ask(launch="graph"))["enable_cuda_graph"]) == ("0", "1")
    assert {"use_tf32=0", "NVIDIA_TF32_OVERRIDE=0", "enable_cuda_graph=0"} < set(flags(ask()))
    assert not any("cuda" in flag for flag in flags(ask(device="cpu")))


def test_a_program_without_a_loop_leaves_nothing_to_the_processor() -> None:
    from rnnbench.backends.onnxruntime.options import NO_FALLBACK, session_options

    def entry(request: Request) -> str:
        return str(session_options(request).get_session_config_entry(NO_FALLBACK))

    assert entry(ask()) == entry(ask(time="unrolled")) == "1"
    for request in (ask(time="looped"), ask(device="cpu")):
        with pytest.raises(RuntimeError, match="does not have"):
            entry(request)


@pytest.mark.parametrize("time", ["fused", "looped", "unrolled"])
def test_graphs_in_float16_are_right_within_their_rounding(tmp_path: Path, time: str) -> None:
    """The graphs that CUDA gets. The processor computes them in float32 and stores the results in float16."""
    from rnnbench.backends.onnxruntime.backend import _optimised
    from rnnbench.backends.onnxruntime.runtime import OnnxRuntimeProgram

    request = ask(time=time, state="none", dtype="float16", device="cpu")
    artifact = _optimised(request, tmp_path)
    program = OnnxRuntimeProgram(request, artifact, tmp_path / "optimised.onnx", False, partial(pytest.fail, "no tail"))
    x = draw_inputs(LSTM, 4, 2, 1, "float16")
    y = program.open().step({"x": x})["y"]
    assert y.dtype == np.float16
    expected = run_reference(LSTM, request.weights, x.astype("float64")).y
    assert np.abs(y.astype("float64") - expected).max() < 8 * 2.0**-11


def test_a_worker_on_cuda_has_its_variables_and_one_on_the_processor_sees_no_gpu() -> None:
    assert BACKEND.support(ask()).environment == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "NVIDIA_TF32_OVERRIDE": "0"}
    assert BACKEND.support(ask(device="cpu")).environment == {"CUDA_VISIBLE_DEVICES": "-1"}


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (ask(LSTM.model_copy(update={"clip": 0.5})), "a clip or other activations"),
        (ask(RNN_RELU), "a clip or other activations"),
        (ask(GRU.model_copy(update={"reset_after": False})), "without reset_after"),
        (ask(dtype="int8_dynamic"), "float32, float64 or float16"),
        (ask(time="looped", launch="graph"), "records no graph with a loop"),
        (ask(time="looped", threads=2), "one thread"),
    ],
)
def test_what_is_refused_on_cuda_says_why(request_: Request, reason: str) -> None:
    support = BACKEND.support(request_)
    assert (support.level, reason in support.reason) == ("unsupported", True)


@pytest.mark.parametrize(
    "request_", [ask(), ask(GRU, "unrolled", launch="graph"), ask(dtype="float64"), ask(time="looped", dtype="float16")]
)
def test_what_runs_on_cuda_is_native(request_: Request) -> None:
    assert BACKEND.support(request_).level == "native"


def install(folder: Path, package: str, provider: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution with the files that wheels of ONNX Runtime 1.31 have, which decide what it is; without code."""
    capi = folder / "onnxruntime" / "capi"
    capi.mkdir(parents=True)
    (capi / "build_and_package_info.py").write_text(f"package_name = '{package}'\n__version__ = '1.31.1'\n")
    if provider:
        (capi / "libonnxruntime_providers_cuda.so").touch()
    described = folder / f"{package.replace('-', '_')}-1.31.1.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.31.1\n")
    monkeypatch.syspath_prepend(str(folder))


def test_the_processors_package_lacks_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "runtime_package", lambda: "onnxruntime")
    lack = packages.cuda_lack()
    assert isinstance(lack, Lack)
    assert "CUDA's is in onnxruntime-gpu" in lack.reason
    assert "rnnbench[onnxruntime-cuda]" in lack.install


@pytest.mark.parametrize("provider", [True, False])
def test_the_package_that_the_module_is_from_is_told_from_its_files(
    tmp_path: Path, provider: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the package of these tests: both are installed, and the module says which one it is from."""
    install(tmp_path, "onnxruntime-gpu", provider, monkeypatch)
    assert packages.runtime_package() == "onnxruntime-gpu"
    versions = BACKEND.probe().versions
    assert versions["onnxruntime-gpu"] == "1.31.1"
    assert "onnxruntime" not in versions
    lack = packages.cuda_lack()
    assert lack is None if provider else "no provider for CUDA" in str(lack)


@pytest.mark.parametrize(
    ("request_", "lowered"),
    [
        (ask(STACK), "fused"),
        (ask(GRU), "fused"),
        (ask(time="looped"), "looped 1"),
        (ask(time="unrolled"), "unrolled 4"),
        (ask(time="unrolled", launch="graph"), "unrolled 4"),
    ],
)
def test_a_gpu_gives_what_the_reference_says(tmp_path: Path, request_: Request, lowered: str) -> None:
    assert built_as_the_reference(BACKEND, request_, tmp_path).lowered == lowered


def test_the_processor_gives_it_in_the_same_way(tmp_path: Path) -> None:
    """The test above, on the device that is here."""
    request = replace(ask(time="looped"), device="cpu")
    assert built_as_the_reference(BACKEND, request, tmp_path)[:2] == (False, "looped 1")
    assert built_as_the_reference(BACKEND, request, tmp_path).cached
