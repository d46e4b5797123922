"""OnnxRuntimeBackend: the supported requests, and how a request becomes a program."""

from __future__ import annotations

import importlib
from dataclasses import replace
from functools import partial
from pathlib import Path

from rnnbench.backends.base import ACTIVATIONS, LENGTHS, Artifact, Probe, Program, Request, Support
from rnnbench.backends.onnxruntime.packages import built_for, cuda_lack, cuda_versions, runtime_package
from rnnbench.backends.shared import (
    CUDA,
    ENVIRONMENT,
    NO_GPU,
    PROCESSOR_AND_CUDA,
    Abilities,
    cut_matrix,
    installed_versions,
    load_or_build,
    of_one_step,
    onnx_graphs,
    probe_packages,
    program_folder,
    require_support,
    too_many_threads,
    with_cuda,
)
from rnnbench.backends.shared.onnx_graphs import LoopOperator
from rnnbench.cases import STREAM
from rnnbench.rnn import FUSED, INT8_FORMS, LAYER_PRIMITIVES, LIBRARY_OPERATORS, PARALLEL, Model

ROUTES: dict[str, LoopOperator] = {"onnx": "Scan", "loop": "Loop"}
"""Each route's operator for a loop over time. The routes differ in nothing else, so `loop` has only loops."""
STRAIGHT = ("unrolled", PARALLEL)
"""Times whose graphs have no loop, beside `fused`."""
GRAPHS = {"onnx": frozenset({CUDA})}

MODEL = "optimised.onnx"
READS = {"onnx": frozenset({"onnx"})}
COVERS = frozenset({ACTIVATIONS})
PRIMITIVES = LAYER_PRIMITIVES | {"while"}
AUTHORS = {"onnx": PRIMITIVES | LIBRARY_OPERATORS, "loop": PRIMITIVES}
MADE_FLOAT = (
    "ONNX Runtime's product of 8-bit weights and float32 activations (MatMulNBits) makes float32 of all weights in "
    "each call. Its other operators quantise x and h too: that is int8_dynamic."
)
RANGE_IN_CALL = (
    "Of ONNX Runtime's RNN operators, the LSTM alone has int8 weights (DynamicQuantizeLSTM), and it quantises x and h "
    "by their range in each call: that is int8_dynamic."
)
STATE_IN_BUFFERS = "The session swaps the state buffers of two bindings."


class OnnxRuntimeBackend:
    name = "onnxruntime"

    def probe(self) -> Probe:
        packages, install = (runtime_package(), "onnx"), "pip install 'rnnbench[onnxruntime]'"
        probe = probe_packages(tuple(ROUTES), packages, install, compilers=dict.fromkeys(ROUTES, "ONNX Runtime"))
        versions = {**probe.versions, **cuda_versions()}
        devices = with_cuda(cuda_lack(), built_for())
        return replace(probe, versions=versions, devices=devices, authors=AUTHORS, reads=READS, graphs=GRAPHS)

    def support(self, request: Request) -> Support:
        if reason := _unsupported(request):
            return Support("unsupported", reason)
        variables = ENVIRONMENT if request.device == CUDA else NO_GPU
        if request.strategy.state == "stateful":
            return Support("emulated", STATE_IN_BUFFERS, environment=variables, covers=COVERS)
        covers = COVERS | {LENGTHS} if request.strategy.time == FUSED else COVERS
        return Support("native", environment=variables, covers=covers)

    def load(self) -> None:
        importlib.import_module("onnxruntime")

    def build(self, request: Request, cache: Path) -> Program:
        require_support(self, request, Abilities(PROCESSOR_AND_CUDA, AUTHORS, READS, GRAPHS))
        from rnnbench.backends.onnxruntime.runtime import OnnxRuntimeProgram

        folder = program_folder(request, cache, installed_versions((runtime_package(), "onnx")))
        stored = load_or_build(folder, partial(_optimised, request))
        tail = partial(self._tail, request, cache)
        return OnnxRuntimeProgram(request, stored.artifact, folder / MODEL, stored.cached, tail)

    def _tail(self, request: Request, cache: Path) -> Program:
        """The program of one step. Route `loop` has no copies of the cell outside a loop, so those use route `onnx`."""
        single = of_one_step(request)
        route = "onnx" if single.strategy.time in STRAIGHT else request.route
        return self.build(replace(single, route=route), cache)


def _optimised(request: Request, folder: Path) -> Artifact:
    from rnnbench.backends.onnxruntime.optimise import optimise

    return optimise(request, ROUTES[request.route], folder / MODEL)


def _unsupported(request: Request) -> str:
    """Why a request cannot be met; empty where it can."""
    strategy, dtype = request.strategy, request.precision.uniform or request.precision.int8
    if request.route not in ROUTES:
        return f"onnxruntime has the routes {', '.join(ROUTES)}, and not {request.route}."
    if request.route == "loop" and strategy.time in ("fused", *STRAIGHT):
        return "Route loop has only loops by ONNX's Loop operator. Graphs without a loop are on route onnx."
    if request.device == CUDA:
        return _not_on_cuda(request) or onnx_graphs.unsupported(request)
    if dtype in INT8_FORMS:
        return _not_int8(request) or onnx_graphs.unsupported(request)
    if dtype == "float16" and request.file is None:
        return "ONNX Runtime's CPU kernels only store float16: the products are cast and computed in float32."
    if dtype not in ("float32", "float64", "float16") and request.file is None:
        return "ONNX Runtime's CPU kernels compute these graphs in float32, in float64, or with int8 weights."
    if dtype == "float64" and (strategy.time == FUSED or _has_operators(request)):
        return "ONNX Runtime's CPU kernels of these operators (LSTM, GRU, RNN) compute in float32 only."
    return onnx_graphs.unsupported(request)


def _has_operators(request: Request) -> bool:
    """Whether it is a file with one of ONNX's recurrent operators."""
    return request.file is not None and not {"LSTM", "GRU", "RNN"}.isdisjoint(request.file.operators)


def _not_on_cuda(request: Request) -> str:
    """Why CUDA's provider does not run a request; empty where it does.

    Which operators it leaves to the processor: cuda_execution_provider.cc, `RNNNeedFallbackToCPU`.
    """
    strategy, model = request.strategy, request.model
    if request.precision.uniform not in ("float32", "float64", "float16"):
        return "ONNX Runtime's CUDA kernels compute these graphs in float32, float64 or float16."
    if strategy.time == FUSED and isinstance(model, Model):
        if model.clip is not None or model.activation == "relu" or model.other_activations:
            return "ONNX Runtime leaves an operator with a clip or other activations to the processor: cuDNN has none."
        if model.cell == "gru" and not model.reset_after:
            return "ONNX Runtime leaves a GRU without reset_after to the processor: cuDNN has none."
    if strategy.launch != STREAM and (request.file is not None or strategy.time not in (FUSED, *STRAIGHT)):
        return "ONNX Runtime records no graph with a loop (Loop, Scan) or a condition (If) as a CUDA graph."
    if strategy.launch != STREAM and request.ragged:
        return "A CUDA graph has the lengths of rows that its operators read on the host when it was recorded."
    return too_many_threads(request)


def _not_int8(request: Request) -> str:
    """Why a stack of cells cannot have int8 weights; empty where it can."""
    if request.precision.int8 == "int8_weights":
        return MADE_FLOAT
    if request.precision.int8 == "int8_static" and request.strategy.time == FUSED:
        return RANGE_IN_CALL
    if request.strategy.time == FUSED and request.stack.cell != "lstm":
        return "Of ONNX Runtime's RNN operators, the LSTM alone has int8 weights (DynamicQuantizeLSTM)."
    return cut_matrix(request)
