"""Programs for CUDA, as far as a machine without a GPU shows them.

What the installed torch lacks, what is supported, and that a program's tensors are all on its device: on `meta`, which
is a device like any other, and has shapes without numbers. CUDA itself is played by fakes that note what is asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rnnbench.backends.base import BuildError, Lack, Request
from rnnbench.backends.shared import PROCESSOR_AND_CUDA, support_of
from rnnbench.backends.torch import TorchBackend
from rnnbench.backends.torch.installed import LIBRARY, cuda_lack
from rnnbench.backends.torch.support import AUTHORS, GRAPHS, READS, TIMES
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.devices import Device
from rnnbench.rnn.network import Network
from rnnbench.rnn.networks.rnnoise import RNNoise
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs, draw_weights

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

from rnnbench.backends.torch import compile as compiled_route  # noqa: E402
from rnnbench.backends.torch import cuda, inductor, store  # noqa: E402
from rnnbench.backends.torch.device import CPU, device_of, transfers  # noqa: E402
from rnnbench.backends.torch.eager import library_module  # noqa: E402
from rnnbench.backends.torch.fused import FusedStream, lowered  # noqa: E402
from rnnbench.backends.torch.inductor_code import calls, lowered_code  # noqa: E402
from rnnbench.backends.torch.looped import LoopedStream  # noqa: E402
from rnnbench.backends.torch.network import example_inputs, module_to_trace, zero_input  # noqa: E402
from rnnbench.backends.torch.stream import PreparedStream, QueuedBound, TorchBound  # noqa: E402
from rnnbench.results import Artifact  # noqa: E402

LSTM = Model(cell="lstm", input=5, hidden=17)
RNNOISE = RNNoise(input=5, hidden=6)


def make_request(
    route: str = "eager",
    time: str = "looped",
    state: Any = "stitched",
    launch: Any = "stream",
    model: Network = LSTM,
    device: str = "cuda",
    **changes: Any,
) -> Request:
    strategy = Strategy(time, state, 4, launch)
    request = Request(route, model, draw_weights(model, 0), strategy, 2, Precision.of("float32"), device)
    return replace(request, **changes)


# What is installed and what is supported.


def installed(folder: Path, local: str, *, cuda_inside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch of the metadata and files that its wheels have, before all others on the path."""
    (folder / f"torch-2.11.0+{local}.dist-info").mkdir()
    (folder / f"torch-2.11.0+{local}.dist-info/METADATA").write_text(f"Name: torch\nVersion: 2.11.0+{local}\n")
    if cuda_inside:
        (folder / LIBRARY).parent.mkdir(parents=True)
        (folder / LIBRARY).touch()
    monkeypatch.syspath_prepend(folder)


def test_a_wheel_without_cuda_says_so_with_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "cpu", cuda_inside=False, monkeypatch=monkeypatch)
    reason = "the installed torch 2.11.0+cpu is built without CUDA"
    assert cuda_lack() == Lack(reason, "pip install --force-reinstall torch")
    assert TorchBackend().probe().devices["cuda"] == cuda_lack()


def test_a_wheel_with_cuda_leaves_the_question_to_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "cu130", cuda_inside=True, monkeypatch=monkeypatch)
    gpu = Device("NVIDIA H100 80GB HBM3", capability="sm_90")
    monkeypatch.setattr("rnnbench.backends.shared.cuda.first_gpu", lambda: gpu)
    assert cuda_lack() is None
    probe = TorchBackend().probe()
    assert probe.devices["cuda"] == gpu
    assert probe.graphs == dict.fromkeys(probe.routes, frozenset({"cuda"}))


def test_the_probe_imports_no_torch() -> None:
    use = "from rnnbench.backends.torch import TorchBackend; TorchBackend().probe()"
    code = f"import sys; {use}; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize("launch", ["stream", "graph"])
@pytest.mark.parametrize("route", TIMES)
def test_every_route_has_cuda_and_its_graphs(route: str, launch: Any) -> None:
    request = make_request(route, "looped", launch=launch)
    answer = support_of(TorchBackend(), request, PROCESSOR_AND_CUDA, AUTHORS, READS, GRAPHS)
    assert answer.level == "native"
    assert {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "NVIDIA_TF32_OVERRIDE": "0"}.items() <= answer.environment.items()


def test_the_processor_needs_no_variable_of_cuda() -> None:
    assert TorchBackend().support(make_request(device="cpu")).environment == {}


@pytest.mark.parametrize(
    ("request_made", "reason"),
    [
        (make_request(time="fused", precision=Precision.of("int8_dynamic")), "written for the processor"),
        (make_request(time="fused", state="none", launch="graph", ragged=True), "The lengths of rows decide"),
        (make_request(threads=2), "called from one thread"),
    ],
)
def test_what_only_the_processor_has_is_refused_with_a_reason(request_made: Request, reason: str) -> None:
    answer = TorchBackend().support(request_made)
    assert answer.level == "unsupported"
    assert reason in answer.reason


def test_a_graph_on_the_processor_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="nothing to record and replay"):
        TorchBackend().build(make_request(launch="graph", device="cpu"), tmp_path)


# All tensors of a program are on its device.


class Mixed(TorchDispatchMode):
    """Notes the operators that have a tensor on another device than `meta`."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.operators = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)]
        self.operators += 1
        if any(tensor.device.type != "meta" for tensor in tensors):
            self.found.add(str(func))
        return result


def fused_stream(request: Request) -> PreparedStream:
    weights = {name: torch.tensor(array) for name, array in request.weights.named(request.stack)}
    module = library_module(request.stack, torch.float32, weights, device_of(request))
    return FusedStream(request, module, torch.float32)


def looped_stream(request: Request) -> PreparedStream:
    return LoopedStream(request, torch.float32)


@pytest.mark.filterwarnings("ignore:.*copying from a non-meta parameter.*")
@pytest.mark.parametrize("state", ["none", "stitched", "stateful"])
@pytest.mark.parametrize(
    ("make", "time", "model"),
    [(fused_stream, "fused", LSTM), (looped_stream, "looped", LSTM), (looped_stream, "looped", RNNOISE)],
)
def test_eager_calls_mix_no_devices(make: Callable[[Request], Any], time: str, state: Any, model: Network) -> None:
    request = make_request("eager", time, state, model=model, device="meta")
    stream, x = make(request), zero_input(request)
    with Mixed() as mixed, torch.no_grad():
        y = stream.step(x)
        prepared = stream.prepare(x)()
        stream.write({name: torch.zeros_like(tensor) for name, tensor in stream.state.items()})
    assert mixed.operators > 20
    assert not mixed.found
    assert {y.device.type, prepared.device.type, *(t.device.type for t in stream.state.values())} == {"meta"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("time", "model"), [("fused", LSTM), ("unrolled", LSTM), ("looped", LSTM), ("looped", RNNOISE)]
)
def test_what_inductor_compiles_mixes_no_devices(time: str, model: Network) -> None:
    """The graph that `compile` and `aoti` give to Inductor, the bodies of loops included."""
    request = make_request("aoti", time, "stateful", model=model, device="meta")
    module = module_to_trace(request, inductor.network(request))
    with inductor.tracing_settings(request):
        exported = torch.export.export(module, example_inputs(request), strict=request.strategy.copies is not None)
    graphs = [part for part in exported.graph_module.modules() if isinstance(part, torch.fx.GraphModule)]
    assert len(graphs) > (time == "looped")
    values = [leaf for graph in graphs for node in graph.graph.nodes for leaf in tree_leaves(node.meta.get("val"))]
    devices = {value.device.type for value in values if isinstance(value, torch.Tensor)}
    assert devices == {"meta"}


def test_a_mixture_would_be_noted() -> None:
    with Mixed() as mixed:
        torch.zeros(2, device="meta").copy_(torch.zeros(2))
    assert "aten.copy_.default" in mixed.found


# The processor's calls stay as they were.


def test_the_processors_bound_calls_wait_for_nothing_and_convert_as_before(tmp_path: Path) -> None:
    request = make_request(device="cpu")
    session: Any = TorchBackend().build(request, tmp_path).open()
    bound = session.bind([{"x": draw_inputs(LSTM, 4, 2, 0)}])
    assert type(bound) is TorchBound
    assert "sync" not in vars(TorchBound)
    assert transfers(CPU, torch.bfloat16, torch.float32).to_device == (torch.bfloat16,)
    assert transfers(CPU, torch.bfloat16, torch.float32).to_host == (torch.float32,)
    assert not session._staged.is_pinned()


def test_the_processors_programs_keep_their_digest_and_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[Any] = []
    monkeypatch.setattr(store, "sha256", lambda text: described.append(json.loads(text)) or "")
    request = make_request(device="cpu")
    store.source_digest(request)
    (facts,) = described
    assert facts["strategy"] == ["looped", "stitched", 4]
    assert "device" not in facts
    artifact = Artifact(source_digest="0" * 64, operations={}, lowered="looped 1", origin="authored", math="exact")
    assert cuda.described(request, artifact) is artifact


# What is CUDA's own.


def test_a_program_for_cuda_is_of_one_compute_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set()
    for capability in ("sm_80", "sm_90"):
        monkeypatch.setattr(store, "compiled_for", lambda capability=capability: [capability, "13.0", "91000"])
        digests.add(store.source_digest(make_request()))
    assert len(digests) == 2
    assert store.source_digest(make_request(launch="graph")) in digests
    assert store.source_digest(make_request(device="cpu")) not in digests


def test_a_record_says_that_tf32_is_off_and_how_a_graph_is_used() -> None:
    artifact = Artifact(
        source_digest="0" * 64, operations={}, lowered="looped 1", origin="authored", math="exact", notes=("a note",)
    )
    stream = cuda.described(make_request(), artifact)
    assert (stream.flags, stream.notes) == (("tf32=off",), ("a note", cuda.NOTE))
    enclosed = cuda.described(make_request(state="none", launch="graph"), artifact)
    assert enclosed.notes[1:] == (cuda.NOTE, cuda.GRAPH_NOTE)
    assert cuda.described(make_request(launch="graph"), artifact).notes[-1] == cuda.STITCHED_NOTE


def test_tf32_is_off_in_products_and_in_cudnns_rnns_by_both_kinds_of_switches() -> None:
    """In a process of its own: the switches are the process's."""
    code = (
        "import torch; from rnnbench.backends.torch import cuda; b = torch.backends; before = b.cudnn.allow_tf32;"
        "cuda.use_ieee(); cuda.use_ieee();"
        "print(before, b.cuda.matmul.allow_tf32, b.cudnn.allow_tf32, b.cuda.matmul.fp32_precision,"
        "b.cudnn.rnn.fp32_precision, b.cudnn.conv.fp32_precision, torch.get_float32_matmul_precision())"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert printed.stdout.split() == ["True", "False", "False", "ieee", "ieee", "ieee", "highest"], printed.stderr


def test_cudnns_rnn_is_one_call_for_all_steps() -> None:
    assert lowered(LSTM, {"_cudnn_rnn": 1, "clone": 1}) == "fused"
    assert lowered(LSTM, {"_thnn_fused_lstm_cell": 4}) == "looped 1"


class FakeCuda:
    """torch.cuda as far as graphs and waiting go: a list of what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.current = self._stream("current")

    def _stream(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(
            name=name,
            wait_stream=lambda other: self.asked.append(f"{name} waits for {other.name}"),
            synchronize=lambda: self.asked.append(f"the host waits for {name}"),
        )

    def graph_pool_handle(self) -> str:
        return "pool"

    def Stream(self) -> SimpleNamespace:
        return self._stream("side")

    def current_stream(self) -> SimpleNamespace:
        return self.current

    @contextmanager
    def stream(self, stream: SimpleNamespace) -> Any:
        self.asked.append(f"on {stream.name}")
        yield
        self.asked.append("on current")

    def CUDAGraph(self) -> SimpleNamespace:
        return SimpleNamespace(replay=lambda: self.asked.append("replay"))

    @contextmanager
    def graph(self, graph: Any, *, pool: str, stream: SimpleNamespace, capture_error_mode: str) -> Any:
        self.asked.append(f"record on {stream.name} in {pool}, {capture_error_mode}")
        yield
        self.asked.append("recorded")


def test_a_call_is_recorded_after_warm_calls_on_a_stream_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeCuda()
    monkeypatch.setattr(cuda.torch, "cuda", fake)
    y = torch.zeros(1)

    def call() -> Any:
        fake.asked.append("call")
        return y

    recorded = cuda.CudaGraphs()(call)
    recorded.replay()
    assert recorded.result is y
    assert fake.asked == [
        *("side waits for current", "on side", "call", "call", "call", "on current", "current waits for side"),
        *("record on side in pool, thread_local", "call", "recorded", "replay"),
    ]


def test_a_queued_bound_call_waits_for_the_stream_when_it_is_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeCuda()
    monkeypatch.setattr(cuda.torch, "cuda", fake)
    request = make_request(device="meta")
    bound = looped_stream(request).bind([(zero_input(request),)], lambda tensor: np.zeros(tensor.shape))
    assert type(bound) is QueuedBound
    bound()
    assert fake.asked == []
    bound.sync()
    assert fake.asked == ["the host waits for current"]


# The code that Inductor writes for a GPU.


@pytest.mark.parametrize(("time", "form"), [("looped", "looped 1"), ("unrolled:2", "looped 1 of 2")])
def test_code_in_which_python_calls_the_kernels_is_read_and_runs(
    time: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the options of CUDA, on the processor: the code differs in the kernels alone."""
    monkeypatch.setattr(compiled_route, "OPTIONS", compiled_route.CUDA_OPTIONS)
    program = TorchBackend().build(make_request("compile", time, device="cpu"), tmp_path)
    assert program.artifact.lowered == form
    assert "cpp_wrapper=False" in program.artifact.flags
    assert program.artifact.operations["compiled"]["addmm"] == {"looped": 2, "unrolled:2": 3}[time]
    x = draw_inputs(LSTM, 4, 2, 0)
    y = program.open().step({"x": x})["y"]
    expected = run_reference(LSTM, draw_weights(LSTM, 0), x).y
    np.testing.assert_allclose(y, expected, rtol=2e-5, atol=2e-5)


PYTHON_CODE = """
def call(args):
    with torch.cuda._DeviceGuard(0):
        buf0 = empty_strided_cuda((4, 68), (68, 1), torch.float32)
        extern_kernels.addmm(arg1_1, arg2_1, arg3_1, alpha=1, beta=1, out=buf0)
        stream0 = get_raw_stream(0)
        triton_poi_fused_addmm_sigmoid_tanh_0.run(buf0, buf1, 136, stream=stream0)
        extern_kernels.mm(buf1, arg4_1, out=buf2)
        triton_red_fused_mm_1.run(buf2, 8, 17, stream=stream0)
"""
CPP_CODE = """
static inline void call_triton_poi_fused_tanh_0(
    const AtenTensorHandle& in_out_ptr0) {
}
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cuda_addmm_out(buf0, arg1, arg2, arg3, 1L, 1L));
    while (1) {
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cuda_mm_out(buf1, buf0, arg4));
        call_triton_poi_fused_tanh_0(buf1, 136L, this->device_idx_, stream, kernels, this->cubin_dir_);
    }
"""
"""Made of lines as torch 2.13 writes them (`codegen/wrapper.py`, `codegen/cpp_wrapper_gpu.py`)."""


def test_calls_for_a_gpu_are_counted_in_python_and_in_cpp() -> None:
    assert calls(PYTHON_CODE) == {"addmm": 1, "kernel": 2, "mm": 1}
    assert calls(CPP_CODE) == {"addmm": 1, "kernel": 1, "loop": 1, "mm": 1}


def test_inductor_writes_out_no_small_product_for_a_gpu_but_that_of_two_vectors() -> None:
    """On the processor, a product of a row with a matrix of 16 columns or less is in a kernel."""
    small = Model(cell="rnn", input=3, hidden=8)
    request = replace(make_request("aoti", "looped", model=small), batch=1)
    assert lowered_code(request, CPP_CODE) == "looped 1"
