"""Options of ONNX Runtime for building and for running. A run always reads an optimised file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnxruntime as ort

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.onnxruntime.backend import STRAIGHT
from rnnbench.backends.shared import CUDA, ENVIRONMENT
from rnnbench.cases import STREAM
from rnnbench.rnn import FUSED

FLAGS = ("execution_mode=sequential", "inter_op_num_threads=1", "enable_cpu_mem_arena=0")
PROVIDERS = {"cpu": "CPUExecutionProvider", CUDA: "CUDAExecutionProvider"}
NO_FALLBACK = "session.disable_cpu_ep_fallback"


def flags(request: Request) -> tuple[str, ...]:
    """The options that a program is built and run with, as its artifact says them."""
    of_cuda = {**ENVIRONMENT, **provider_options(request)} if request.device == CUDA else {}
    return (
        *FLAGS,
        f"intra_op_num_threads={request.threads}",
        *(f"{name}={value}" for name, value in of_cuda.items()),
    )


def provider_options(request: Request) -> Mapping[str, str]:
    """Options of the device's provider. Source: onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html"""
    if request.device != CUDA:
        return {}
    graph = str(int(request.strategy.launch != STREAM))
    return {
        "device_id": "0",
        "use_tf32": "0",
        "arena_extend_strategy": "kSameAsRequested",
        "enable_cuda_graph": graph,
    }


def session_options(request: Request) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = request.threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.enable_cpu_mem_arena = False
    # Errors only. It warns that an optimised file is for machines like this one; a cache is used on one machine.
    options.log_severity_level = 3
    if request.device == CUDA and request.strategy.time in (FUSED, *STRAIGHT):
        # A loop counts its passes on the processor. Nothing of other programs may be left to it without a word.
        options.add_session_config_entry(NO_FALLBACK, "1")
    return options


def session(model: bytes | str, options: Any, request: Request) -> Any:
    """An InferenceSession on the request's device. Raises BuildError where it could not be had there."""
    provider = PROVIDERS[request.device]
    if request.device == CUDA:
        # NVIDIA's libraries from packages of Python, which the provider does not find by itself.
        ort.preload_dlls()
    try:
        made = ort.InferenceSession(model, options, [provider], [dict(provider_options(request))], enable_fallback=0)
    except Exception as error:
        raise BuildError(f"{_refused(request)}: {error}") from error
    if provider not in made.get_providers():
        raise BuildError(f"{_refused(request)}: the session has {', '.join(made.get_providers())}")
    return made


def _refused(request: Request) -> str:
    if request.device != CUDA:
        return "ONNX Runtime refused the graph"
    return (
        "ONNX Runtime refused the graph, or could not start CUDA's provider and would compute on the processor (then a "
        "library of CUDA or cuDNN is missing, or is of another version)"
    )


def loaded(path: Path, request: Request) -> Any:
    """An InferenceSession of an optimised file. It is not optimised again."""
    options = session_options(request)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return session(str(path), options, request)
