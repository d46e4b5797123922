"""CUDA in torch, as far as a machine without a GPU shows it: what is lacking, what is supported, what CUDA is asked.

CUDA itself is played by a fake that notes what is asked of it.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rnnbench.backends.base import BuildError, InStream, Lack, Request
from rnnbench.backends.shared import PROCESSOR_AND_CUDA, Abilities, support_of
from rnnbench.backends.torch import TorchBackend
from rnnbench.backends.torch.installed import LIBRARY, VERSION, built_for, cuda_lack
from rnnbench.backends.torch.support import AUTHORS, GRAPHS, READS, TIMES
from rnnbench.cases.trial import Precision
from rnnbench.devices import Device
from rnnbench.rnn.weights import draw_inputs

torch = pytest.importorskip("torch")

from torch_requests import LSTM, make_request  # noqa: E402
from waiting import PATIENCE_S  # noqa: E402

from rnnbench.backends.torch import cuda, store  # noqa: E402
from rnnbench.backends.torch.device import CPU, device_of, transfers  # noqa: E402
from rnnbench.backends.torch.fused import lowered  # noqa: E402
from rnnbench.backends.torch.looped import LoopedStream  # noqa: E402
from rnnbench.backends.torch.network import zero_input  # noqa: E402
from rnnbench.backends.torch.stream import QueuedBound, TorchBound  # noqa: E402
from rnnbench.results import Artifact  # noqa: E402

# What is installed and what is supported.


def installed(folder: Path, local: str, *, cuda_inside: bool, monkeypatch: pytest.MonkeyPatch, said: str = "") -> None:
    """A torch of the metadata and files that its wheels have, before all others on the path."""
    (folder / f"torch-2.11.0+{local}.dist-info").mkdir()
    (folder / f"torch-2.11.0+{local}.dist-info/METADATA").write_text(f"Name: torch\nVersion: 2.11.0+{local}\n")
    if cuda_inside:
        (folder / LIBRARY).parent.mkdir(parents=True)
        (folder / LIBRARY).touch()
    if said:
        (folder / VERSION).parent.mkdir(parents=True, exist_ok=True)
        (folder / VERSION).write_text(said)
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


@pytest.mark.parametrize(
    ("said", "major"),
    [
        ("cuda: Optional[str] = '13.0'\n", 13),
        ("cuda = '12.8'\n", 12),
        ("cuda: Optional[str] = None\n", None),
        ("", None),
    ],
)
def test_a_wheel_says_for_which_cuda_it_was_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, major: int | None
) -> None:
    """As torch/version.py of the wheels has it."""
    installed(tmp_path, "cu130", cuda_inside=True, monkeypatch=monkeypatch, said=said)
    assert built_for() == major


def test_a_driver_that_is_too_old_for_the_wheel_says_which_one_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, "cu130", cuda_inside=True, monkeypatch=monkeypatch, said="cuda = '13.0'\n")
    old = Device("NVIDIA A100-SXM4-40GB", "NVIDIA 550.54.15", "sm_80")
    monkeypatch.setattr("rnnbench.backends.shared.cuda.first_gpu", lambda: old)
    monkeypatch.setattr("rnnbench.backends.shared.cuda.newest_cuda", lambda: 12)
    lack = TorchBackend().probe().device_lack("cuda")
    assert lack == Lack(
        "the driver (NVIDIA 550.54.15) has CUDA 12, and the installed packages are for CUDA 13. Install driver 580 or "
        "newer, or packages for CUDA 12",
        "",
    )
    assert lack.message == lack.reason
    monkeypatch.setattr("rnnbench.backends.shared.cuda.newest_cuda", lambda: 14)
    assert TorchBackend().probe().device("cuda") == old


def test_the_probe_imports_no_torch() -> None:
    use = "from rnnbench.backends.torch import TorchBackend; TorchBackend().probe()"
    code = f"import sys; {use}; print('torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S).stdout
        == "False\n"
    )


@pytest.mark.parametrize("launch", ["stream", "graph"])
@pytest.mark.parametrize("route", TIMES)
def test_every_route_has_cuda_and_its_graphs(route: str, launch: Any) -> None:
    request = make_request(route, "looped", launch=launch)
    answer = support_of(TorchBackend(), request, Abilities(PROCESSOR_AND_CUDA, AUTHORS, READS, GRAPHS))
    assert answer.level == "native"
    assert {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "NVIDIA_TF32_OVERRIDE": "0"}.items() <= answer.environment.items()


def test_a_program_for_the_processor_sees_no_gpu() -> None:
    assert TorchBackend().support(make_request(device="cpu")).environment == {"CUDA_VISIBLE_DEVICES": "-1"}


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


def test_arrays_go_to_a_gpu_and_back_in_one_conversion_each() -> None:
    """`meta` is as far away as a GPU; nothing can come back from there, so that the way back starts on the host."""
    ways = transfers(torch.device("meta"), torch.bfloat16, torch.float32)
    there = torch.zeros(2).to(*ways.to_device)
    back = torch.zeros(2, dtype=torch.bfloat16).to(*ways.to_host)
    assert (there.device.type, there.dtype) == ("meta", torch.bfloat16)
    assert (back.device.type, back.dtype) == ("cpu", torch.float32)
    assert device_of(make_request(device="cuda")) == torch.device("cuda:0")


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


@pytest.mark.proof
def test_tf32_is_off_in_products_and_in_cudnns_rnns_by_both_kinds_of_switches() -> None:
    """In a process of its own: the switches are the process's."""
    code = (
        "import torch; from rnnbench.backends.torch import cuda; b = torch.backends; before = b.cudnn.allow_tf32;"
        "cuda.use_ieee(); cuda.use_ieee();"
        "print(before, b.cuda.matmul.allow_tf32, b.cudnn.allow_tf32, b.cuda.matmul.fp32_precision,"
        "b.cudnn.rnn.fp32_precision, b.cudnn.conv.fp32_precision, torch.get_float32_matmul_precision())"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S)
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
    importlib.import_module("torch._dynamo")  # A first call imports it, and it looks at the real torch.cuda.
    fake = FakeCuda()
    monkeypatch.setattr(cuda.torch, "cuda", fake)
    request = make_request(device="meta")
    bound = LoopedStream(request, torch.float32).bind([(zero_input(request),)], lambda tensor: np.zeros(tensor.shape))
    assert type(bound) is QueuedBound
    bound()
    assert fake.asked == []
    bound.sync()
    assert fake.asked == ["the host waits for current"]


def test_a_queued_bound_call_names_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeCuda()
    fake.current.cuda_stream = 77
    monkeypatch.setattr(cuda.torch, "cuda", fake)
    request = make_request(device="meta")
    bound = LoopedStream(request, torch.float32).bind([(zero_input(request),)], lambda tensor: np.zeros(tensor.shape))
    assert isinstance(bound, InStream)
    assert bound.stream == 77
