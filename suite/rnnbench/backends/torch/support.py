"""Which requests the routes support, and the reasons for those that they do not. Does not import torch."""

from __future__ import annotations

from rnnbench.backends.base import ACTIVATIONS, LENGTHS, Request
from rnnbench.backends.shared import CUDA, too_many_threads
from rnnbench.cases import STREAM
from rnnbench.rnn import LAYER_PRIMITIVES, PARALLEL

DTYPES = ("float32", "float64", "float16", "bfloat16")
TIMES = {
    "eager": ("fused", "looped", PARALLEL, "chunked:k"),
    "script": ("looped", "unrolled", "unrolled:k", PARALLEL, "chunked:k"),
    "compile": ("fused", "looped", "unrolled", "unrolled:k", PARALLEL, "chunked:k"),
    "aoti": ("fused", "looped", "unrolled", "unrolled:k", PARALLEL),
}
"""Values of `time` by route; the default route first."""
AUTHORS = dict.fromkeys(TIMES, LAYER_PRIMITIVES)
READS = dict.fromkeys(("eager", "compile", "aoti"), frozenset({"pt2"}))
"""`Probe.reads`."""
NO_PACKED = "Dynamo and torch.export refuse packed sequences, and nn's RNNs take the lengths of rows in no other way."
UPSTREAM = {NO_PACKED: "pytorch/pytorch#112044"}
"""The upstream issue of a reason, where there is one."""
COMPILED = ("compile", "aoti")
"""Routes that go through Inductor."""
COMPILERS = {**dict.fromkeys(COMPILED, "Inductor"), **dict.fromkeys(("eager", "script"), "ATen")}
"""`Probe.compilers`. ATen has the operators that eager torch and TorchScript's interpreter call one after the other."""
FORK_SAFE = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
"""Asked whether there is a GPU, torch asks NVML then, and not CUDA, which does not outlive a fork. Inductor asks when
it is imported. Source: PyTorch's documentation, "Poison fork in multiprocessing"."""
GRAPHS = dict.fromkeys(TIMES, frozenset({CUDA}))
"""`Probe.graphs`."""


def unsupported(request: Request) -> str:
    """Why a request cannot be met; empty where it can."""
    strategy = request.strategy
    if request.route not in TIMES:
        return f"torch has the routes {', '.join(TIMES)}, and not {request.route}."
    if request.device == CUDA and (reason := _not_cuda(request)):
        return reason
    if request.precision.int8:
        return _not_int8(request)
    if request.precision.uniform not in DTYPES:
        return f"torch computes an RNN in one dtype throughout, {', '.join(DTYPES)}, or with int8 weights."
    if request.file is not None:
        return ""
    kind, _, copies = strategy.time.partition(":")
    if (f"{kind}:k" if copies else kind) not in TIMES[request.route]:
        return _unsupported_time(request)
    return _not_fused(request) if strategy.time == "fused" else ""


def covered(request: Request) -> frozenset[str]:
    """The extras (`Request.extras`) that the program of a request supports."""
    if request.precision.int8:
        return frozenset()
    if request.route == "eager":
        return frozenset({LENGTHS} if request.strategy.time == "fused" else {ACTIVATIONS, LENGTHS})
    return frozenset() if request.strategy.time == "fused" else frozenset({ACTIVATIONS})


def _not_fused(request: Request) -> str:
    model = request.stack
    if model.cell == "counter":
        return "torch.nn has no module for the counter."
    if not model.reset_after:
        return "nn.GRU applies its reset gate after the recurrent product. This model applies it before."
    if request.ragged and request.route in COMPILED:
        return NO_PACKED
    if model.other_activations:
        return f"nn.{model.cell.upper()} has no other activations than its own."
    if model.clip is not None or model.cell_clip is not None:
        return f"nn.{model.cell.upper()} has no clip."
    return ""


def _not_cuda(request: Request) -> str:
    """What only the processor has; empty for everything else."""
    if request.precision.int8:
        return "torch.ao's LSTM and GRU with int8 weights are written for the processor: they have no kernels for CUDA."
    if request.file is not None:
        return "The suite runs .pt2 files of torch on the processor: a graph names the device of each tensor it makes."
    if request.ragged and request.strategy.launch != STREAM:
        return "The lengths of rows decide how a call packs or masks them, and a recorded call does it in one way only."
    return too_many_threads(request)


def _not_int8(request: Request) -> str:
    model = request.stack
    if request.precision.int8 == "int8_weights":
        return "torch.ao's modules with int8 weights quantise x and h in each call too: that is int8_dynamic."
    if request.precision.int8 == "int8_static":
        return (
            "torch.ao's LSTM of fixed ranges quantises its gates, c and y too, and its dynamic modules take the range "
            "of each call (int8_dynamic): none has fixed ranges for x and h alone."
        )
    if (request.route, request.strategy.time) != ("eager", "fused"):
        return "The suite runs torch.ao's dynamic LSTM and GRU on route eager with time fused only."
    if model.cell not in ("lstm", "gru"):
        return f"torch.ao has a dynamic LSTM and GRU for sequences, and none for the cell {model.cell}."
    if model.projection:
        return "torch.ao's dynamic LSTM has no projection."
    return _not_fused(request)


def _unsupported_time(request: Request) -> str:
    if request.route == "eager":
        return "torch:eager calls operators one by one from Python: there is no program in which to unroll a loop."
    if request.route == "aoti":
        return (
            "torch.export (2.13) fails on a constant that is made in its scan operator, as blocks of steps make them."
        )
    return f"A traced nn.{request.stack.cell.upper()} is the same operator as in torch:eager."
