"""Programs for CUDA: their tensors are all on one device, and what Inductor writes for a GPU is read.

Without a GPU the device is `meta`, which is one like any other, with shapes and without numbers. The last test needs a
GPU, and says so where there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.torch import TorchBackend
from rnnbench.rnn.network import Network
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs

torch = pytest.importorskip("torch")

from device_programs import CUDNN_TOLERANCE, TOLERANCE, built_as_the_reference  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402
from torch_requests import LSTM, RNNOISE, make_request  # noqa: E402

from rnnbench.backends.torch import compile as compiled_route  # noqa: E402
from rnnbench.backends.torch import inductor  # noqa: E402
from rnnbench.backends.torch.device import device_of  # noqa: E402
from rnnbench.backends.torch.eager import library_module  # noqa: E402
from rnnbench.backends.torch.fused import FusedStream  # noqa: E402
from rnnbench.backends.torch.inductor_code import calls, lowered_code  # noqa: E402
from rnnbench.backends.torch.looped import LoopedStream  # noqa: E402
from rnnbench.backends.torch.network import example_inputs, module_to_trace, zero_input  # noqa: E402
from rnnbench.backends.torch.stream import PreparedStream  # noqa: E402

RNN = Model(cell="rnn", input=5, hidden=17)

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


@pytest.mark.first(3)
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


@pytest.mark.proof
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


# The code that Inductor writes for a GPU.


@pytest.mark.proof
def test_code_in_which_python_calls_the_kernels_is_read_and_runs(
    cache_for: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the options of CUDA, on the processor: the code differs in the kernels alone.

    Of an RNN, which has the fewest kernels: each is compiled apart.
    """
    monkeypatch.setattr(compiled_route, "OPTIONS", compiled_route.CUDA_OPTIONS)
    request = make_request("compile", "unrolled:2", model=RNN, device="cpu")
    program = TorchBackend().build(request, cache_for("torch:compile"))
    assert program.artifact.lowered == "looped 1 of 2"
    assert "cpp_wrapper=False" in program.artifact.flags
    assert program.artifact.operations["compiled"]["addmm"] == 3
    x = draw_inputs(RNN, 4, 2, 0)
    y = program.open().step({"x": x})["y"]
    expected = run_reference(RNN, request.weights, x).y
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


# On a GPU.


def skip_what_torch_cannot_compile(request: Request, folder: Path) -> None:
    """What is no fault of a GPU: there is no toolkit, or torch (2.11) refuses a loop on the processor too."""
    if TorchBackend().probe().device("cuda") is None:
        return
    from torch.utils.cpp_extension import CUDA_HOME

    if CUDA_HOME is None:
        pytest.skip("AOTInductor compiles against CUDA's toolkit, and there is none: install it, and set CUDA_HOME")
    try:
        TorchBackend().build(
            replace(request, device="cpu", strategy=replace(request.strategy, launch="stream")), folder
        )
    except BuildError as error:
        pytest.skip(f"torch {torch.__version__} does not compile it for the processor either: {error}")


@pytest.mark.parametrize(
    ("request_", "lowered"),
    [
        (make_request("eager", "fused"), "fused"),
        (make_request("eager", "fused", "stateful", "graph"), "fused"),
        (make_request("eager", "fused", "stitched", "graph"), "fused"),
        (make_request("eager", "looped", "stitched", "graph"), "looped 1"),
        (make_request("script", "unrolled", "stitched", "graph"), "unrolled 4"),
        (make_request("compile", "looped"), "looped 1"),
        (make_request("compile", "unrolled", "stateful", "graph"), "unrolled 4"),
        (make_request("aoti", "looped", "stateful"), "looped 1"),
        (make_request("aoti", "unrolled", "stitched", "graph"), "unrolled 4"),
    ],
)
def test_a_gpu_gives_what_the_reference_says(tmp_path: Path, request_: Request, lowered: str) -> None:
    if request_.route == "aoti":
        skip_what_torch_cannot_compile(request_, tmp_path / "processor")
    by_cudnn = request_.route == "eager" and request_.strategy.time == "fused"
    tolerance = CUDNN_TOLERANCE if by_cudnn else TOLERANCE
    assert built_as_the_reference(TorchBackend(), request_, tmp_path, tolerance).lowered == lowered
