"""ONNX Runtime on CUDA, as far as it shows without a GPU: buffers of a device, graphs, packages, refusals.

The runtime's own memory on the processor stands in for a device's: the code is the same, with another name of a device.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from time import sleep
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from device_programs import built_as_the_reference
from few_turns import set_turns
from quick_tests import for_proof

from rnnbench.backends.base import BuildError, Lack, Request, TakesStream
from rnnbench.backends.onnxruntime import OnnxRuntimeBackend, packages
from rnnbench.backends.onnxruntime.recording import in_turn
from rnnbench.cases.trial import Limits, Measure, Precision, State, Strategy, Target, Trial
from rnnbench.conformance import ReferenceTrajectories, run_checks
from rnnbench.devices import UnmeasuredError
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

    def buffer(array: np.ndarray, shapes: buffers.Shapes, device: str, in_turn: Any) -> buffers.Buffer:
        return buffers.DeviceBuffer(array, shapes, device, in_turn)

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


def recording_program(request: Request, folder: Path) -> Any:
    """A program on the processor, whose provider records no graph, with the numbers and the turns of one on CUDA."""
    program: Any = BACKEND.build(request, folder)
    program.graphs = count(1)
    program.in_turn = in_turn(replace(request, strategy=replace(request.strategy, launch="graph")))
    return program


@pytest.mark.usefixtures("in_the_runtimes_memory")
def test_each_binding_has_a_graph_of_its_own(tmp_path: Path) -> None:
    """The processor's provider records no graph, and takes the numbers as CUDA's does."""
    program = recording_program(ask(device="cpu"), tmp_path)
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


@pytest.mark.usefixtures("in_the_runtimes_memory")
def test_a_stream_takes_the_places_and_graphs_of_a_closed_one(tmp_path: Path) -> None:
    """CUDA's provider keeps its graphs: new ones for each stream would add up."""
    program = recording_program(ask(device="cpu"), tmp_path)
    x = draw_inputs(LSTM, 8, 2, seed=1)
    expected = run_reference(LSTM, program.request.weights, x).y
    seen = []
    for _ in range(3):
        session = program.open()
        bound = session.bind([{"x": part} for part in (x[:4], x[4:])])
        bound(), bound()
        np.testing.assert_allclose(bound.output()["y"], expected[4:], atol=2e-6)
        session.step({"x": x[:4]})
        session.close()
        session.close()
        seen.append(next(program.graphs))
    assert [later - earlier for earlier, later in pairwise(seen)] == [1, 1], "the test takes the only new number"


@pytest.mark.usefixtures("in_the_runtimes_memory")
def test_streams_that_are_open_at_once_have_places_of_their_own(tmp_path: Path) -> None:
    program = recording_program(ask(device="cpu"), tmp_path)
    x = draw_inputs(LSTM, 8, 2, seed=1)
    expected = run_reference(LSTM, program.request.weights, x).y
    program.open().close()
    first, second = program.open(), program.open()
    for session in (first, second):
        np.testing.assert_allclose(session.step({"x": x[:4]})["y"], expected[:4], atol=2e-6)
    for session in (first, second):
        np.testing.assert_allclose(session.step({"x": x[4:]})["y"], expected[4:], atol=2e-6)


class Overlaps:
    """Counts how many threads are in a call at once."""

    def __init__(self) -> None:
        self.inside, self.most = 0, 0

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            self.inside += 1
            self.most = max(self.most, self.inside)
            sleep(0.002)
            try:
                return call(*arguments)
            finally:
                self.inside -= 1

        return counted


@pytest.mark.usefixtures("in_the_runtimes_memory")
@pytest.mark.parametrize(("records", "at_once"), [(True, 1), (False, 2)])
def test_threads_take_turns_where_graphs_are_recorded(tmp_path: Path, records: bool, at_once: int) -> None:
    """While one thread records, CUDA refuses what another one asks of it, and the recording fails."""
    program = recording_program(ask(device="cpu"), tmp_path) if records else BACKEND.build(ask(device="cpu"), tmp_path)
    sessions, overlaps, x = [program.open() for _ in range(2)], Overlaps(), draw_inputs(LSTM, 4, 2, seed=1)
    for session in sessions:
        session._runtime = SimpleNamespace(run_with_iobinding=overlaps.around(program.runtime.run_with_iobinding))
        write = session._input.values["x"].update_inplace
        session._input.values = {"x": SimpleNamespace(update_inplace=overlaps.around(write))}
        if not records:
            session.run = session._runtime.run_with_iobinding
    with ThreadPoolExecutor(2) as pool:
        for _ in range(8):
            list(pool.map(lambda session: session.step({"x": x}), sessions))
    assert overlaps.most == at_once


class RecordingRuntime:
    """The runtime, with the rule of CUDA's provider: a thread's first call of a graph records it.

    What other threads ask meanwhile fails.
    """

    def __init__(self, runtime: Any) -> None:
        self.io_binding = runtime.io_binding
        self._run = runtime.run_with_iobinding
        self._recorded: set[tuple[int, str]] = set()
        self._recorder: int | None = None

    def run_with_iobinding(self, binding: Any, options: Any) -> None:
        graph = threading.get_ident(), options.get_run_config_entry("gpu_graph_id")
        if self._recorder not in (None, graph[0]):
            raise RuntimeError("CUDA failure 900: operation not permitted when stream is capturing")
        if graph in self._recorded:
            self._run(binding, options)
            return
        self._recorder = graph[0]
        sleep(1e-4)
        self._run(binding, options)
        self._recorder = None
        self._recorded.add(graph)


@pytest.mark.proof
@pytest.mark.usefixtures("in_the_runtimes_memory")
@pytest.mark.parametrize("state", ["stateful", *for_proof("none", "stitched")])
def test_a_program_with_graphs_passes_every_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: State
) -> None:
    set_turns(monkeypatch)
    request = ask(STACK, state=state, device="cpu")
    program = recording_program(request, tmp_path)
    program.runtime = RecordingRuntime(program.runtime)
    numbers = {"steps": 16, "batch": 2, "dtype": "float32", "device": "cpu", "threads": 1, "seed": 1}
    target = Target("onnxruntime", "onnx")
    trial = Trial("graphs", target, STACK, request.strategy, **numbers, limits=Limits(), measure=Measure())
    results = dict(run_checks(program, ReferenceTrajectories(trial, tmp_path)))
    failed = {name: result.detail for name, result in results.items() if result.verdict == "fail"}
    assert not failed
    assert sum(result.verdict == "pass" for result in results.values()) > 10


@pytest.mark.parametrize("records", [False, True])
def test_a_bound_call_goes_on_in_a_stream_of_the_suites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: bool
) -> None:
    """The program is loaded once more for it. On the processor the second copy has no stream, and is the same else.

    Its last call waits for the stream, so that the session ends without buffers that a callback would have to free.
    """
    from rnnbench.backends.onnxruntime import options, runtime

    streams, entries = [], []

    def loaded(path: Path, request: Request, stream: int) -> Any:
        streams.append(stream)
        made = options.loaded(path, request)
        run = made.run_with_iobinding

        def noted(binding: Any, given: Any = None) -> None:
            entries.append(given and given.get_run_config_entry("disable_synchronize_execution_providers"))
            run(binding, given)

        made.run_with_iobinding = noted
        return made

    monkeypatch.setattr(runtime, "loaded_in_stream", loaded)
    request = ask(device="cpu")
    program: Any = recording_program(request, tmp_path) if records else BACKEND.build(request, tmp_path)
    session, x = program.open(), draw_inputs(LSTM, 16, 2, seed=1)
    expected = run_reference(LSTM, program.request.weights, x).y
    bound = session.bind([{"x": part} for part in (x[:4], x[4:8], x[8:12], x[12:])])
    assert isinstance(bound, TakesStream)
    bound()
    with bound.in_stream(77) as queued:
        queued(), queued()
        np.testing.assert_allclose(bound.output()["y"], expected[8:12], atol=2e-6)
    bound()
    np.testing.assert_allclose(bound.output()["y"], expected[12:], atol=2e-6)
    assert (streams, entries) == ([77], ["1", "1", *([] if records else [None])])


def test_the_last_call_in_a_stream_waits_for_it_even_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rnnbench.backends.onnxruntime import options, runtime

    calls = []

    def loaded(path: Path, request: Request, _stream: int) -> Any:
        made = options.loaded(path, request)
        made.run_with_iobinding = lambda _binding, *given: calls.append(len(given))
        return made

    monkeypatch.setattr(runtime, "loaded_in_stream", loaded)
    program = BACKEND.build(ask(device="cpu"), tmp_path)
    bound: Any = program.open().bind([{"x": draw_inputs(LSTM, 4, 2, seed=1)}])

    def timed() -> None:
        with bound.in_stream(77) as queued:
            queued()
            raise UnmeasuredError("CUDA's clock is broken.")

    with pytest.raises(UnmeasuredError, match="broken"):
        timed()
    assert calls == [1, 0]


def test_a_stream_that_the_runtime_does_not_take_is_no_measurement(tmp_path: Path) -> None:
    """Events in a stream without work would say that a call takes no time. The processor's provider has no stream."""
    from rnnbench.backends.onnxruntime.options import loaded_in_stream

    program = BACKEND.build(ask(device="cpu"), tmp_path)
    with pytest.raises(UnmeasuredError, match="does not say that it uses the stream"):
        loaded_in_stream(program.files.program[0], program.request, 77)


@pytest.mark.parametrize("time", ["fused", "looped"])
def test_what_is_left_to_the_processor_is_known(tmp_path: Path, time: str) -> None:
    """Here all of a graph is, in a loop's body too. Where it is for a GPU, arithmetic there fails the build."""
    from rnnbench.backends.onnxruntime.options import session, session_options
    from rnnbench.backends.onnxruntime.placement import RECORDED, on_the_processor, placement_notes
    from rnnbench.backends.shared.onnx_graphs import build_graph

    request = ask(time=time, device="cpu")
    options = session_options(request)
    options.add_session_config_entry(RECORDED, "1")
    made = session(build_graph(request, "Scan").SerializeToString(), options, request)
    left = on_the_processor(made)
    computing = {"LSTM"} if time == "fused" else {"Scan", "Tanh", "Sigmoid"}
    assert computing <= left.keys()
    assert tuple(placement_notes(made, request)) == ()
    with pytest.raises(BuildError, match=f"compute on the processor.*{max(computing - {'Scan'})}"):
        tuple(placement_notes(made, ask(time=time)))


def test_counting_on_the_processor_is_noted() -> None:
    def part(provider: str, *operators: str) -> SimpleNamespace:
        return SimpleNamespace(ep_name=provider, get_nodes=lambda: [SimpleNamespace(op_type=one) for one in operators])

    from rnnbench.backends.onnxruntime.placement import placement_notes

    parts = [
        part("CUDAExecutionProvider", "Loop", "MatMul", "Tanh"),
        part("CPUExecutionProvider", "Less", "Less", "And"),
    ]
    session = SimpleNamespace(get_provider_graph_assignment_info=lambda: parts)
    (note,) = placement_notes(session, ask(time="looped"))
    assert note.endswith(": 1 And, 2 Less.")


def test_a_library_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX Runtime's `preload_dlls` prints these lines, recorded from onnxruntime-gpu 1.31.1, and goes on."""
    if BACKEND.probe().device("cuda"):
        pytest.skip("there is a GPU here, and ONNX Runtime can use it")
    failed = (
        "Failed to load libcublasLt.so.13: libcublasLt.so.13: cannot open shared object file: No such file or directory"
    )
    monkeypatch.setattr(ort, "preload_dlls", lambda: print(failed, "\nPlease follow the page", sep=""))
    with pytest.raises(BuildError, match=re.escape(failed)):
        BACKEND.build(ask(), tmp_path)


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
    assert (options["device_id"], options["use_tf32"]) == ("0", "0")
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
    from rnnbench.backends.onnxruntime.optimise import optimise
    from rnnbench.backends.onnxruntime.runtime import OnnxRuntimeProgram

    request = ask(time=time, state="none", dtype="float16", device="cpu")
    artifact = optimise(request, "Scan", tmp_path / "optimised.onnx")
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
        (ask(BOTH_WAYS, state="none", launch="graph", ragged=True), "has the lengths of rows"),
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
    (capi / "build_and_package_info.py").write_text(
        f"package_name = '{package}'\n__version__ = '1.31.1'\ncuda_version = '13.0'\n"
    )
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
    assert packages.built_for() == 13
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
