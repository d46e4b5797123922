"""Options of ONNX Runtime for building and for running. A run always reads an optimised file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import onnxruntime as ort

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.onnxruntime.backend import STRAIGHT
from rnnbench.backends.onnxruntime.recording import in_turn
from rnnbench.backends.shared import CUDA, ENVIRONMENT, overflows
from rnnbench.cases import STREAM
from rnnbench.devices import UnmeasuredError
from rnnbench.rnn import FUSED

FLAGS = ("execution_mode=sequential", "inter_op_num_threads=1", "enable_cpu_mem_arena=0")
PROVIDERS = {"cpu": "CPUExecutionProvider", CUDA: "CUDAExecutionProvider"}
NO_FALLBACK = "session.disable_cpu_ep_fallback"
PRECISE = "session.x64quantprecision"
"""The optimiser makes bytes of weights unsigned, so that no sum of two products saturates."""
IN_FLOAT = "session.qdq_matmulnbits_accuracy_level"
"""1: where weights alone are quantised, the other operand stays in float32. The optimiser quantises it otherwise."""
USER_STREAM = "user_compute_stream"
"""The provider's option with the handle of a stream. Source: the page of the provider, as below."""
NO_MORE: Mapping[str, str] = {}


def flags(request: Request) -> tuple[str, ...]:
    """The options that a program is built and run with, as its artifact says them."""
    of_cuda = {**ENVIRONMENT, **provider_options(request)} if request.device == CUDA else {}
    return (
        *FLAGS,
        f"intra_op_num_threads={request.threads}",
        *(f"{name}=1" for name in _switches(request)),
        *(f"{name}={value}" for name, value in of_cuda.items()),
    )


def _switches(request: Request) -> Iterator[str]:
    """The session's further options that are on."""
    if adds_precisely(request):
        yield PRECISE
    if request.file is not None and "DequantizeLinear" in request.file.operators:
        yield IN_FLOAT


def adds_precisely(request: Request) -> bool:
    """Whether the program is a quantised file whose sums may saturate on this processor: weights of 7 bits do not."""
    file = request.file
    if file is None or not file.activations or not overflows():
        return False
    return file.activations == "dynamic" or "eight-bit-products" in file.traits


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
    """The settings of every session of a request: its threads, and no memory arena on the host."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = request.threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.enable_cpu_mem_arena = False
    # Errors only. It warns that an optimised file is for machines like this one; a cache is used on one machine.
    options.log_severity_level = 3
    for name in _switches(request):
        options.add_session_config_entry(name, "1")
    if request.device == CUDA and request.strategy.time in (FUSED, *STRAIGHT):
        # A loop counts its passes on the processor. Nothing of other programs may be left to it without a word.
        options.add_session_config_entry(NO_FALLBACK, "1")
    return options


def session(model: bytes | str, options: Any, request: Request, more: Mapping[str, str] = NO_MORE) -> Any:
    """An InferenceSession on the request's device. Raises BuildError where it could not be had there.

    `more` has further options of the device's provider.
    """
    provider, chosen = PROVIDERS[request.device], {**provider_options(request), **more}
    missing = _preload_libraries() if request.device == CUDA else ""
    try:
        with in_turn(request):
            session = ort.InferenceSession(model, options, [provider], [chosen], enable_fallback=0)
    except Exception as error:
        raise BuildError(f"{_refused(request)}{missing}: {error}") from error
    if provider not in session.get_providers():
        raise BuildError(f"{_refused(request)}{missing}: the session has {', '.join(session.get_providers())}")
    return session


def _preload_libraries() -> str:
    """Load NVIDIA's libraries from packages of Python, where the provider does not look. Returns which are missing.

    ONNX Runtime prints that, and prints nothing if all are there.
    """
    with redirect_stdout(StringIO()) as printed:
        ort.preload_dlls()
    failed = [line for line in printed.getvalue().splitlines() if line.startswith("Failed to load")]
    return f" ({'; '.join(failed)})" if failed else ""


def _refused(request: Request) -> str:
    if request.device != CUDA:
        return "ONNX Runtime refused the graph"
    return (
        "ONNX Runtime refused the graph, or could not start CUDA's provider and would compute on the processor (then a "
        "library of CUDA or cuDNN is missing, or is of another version)"
    )


def loaded(path: Path, request: Request, more: Mapping[str, str] = NO_MORE) -> Any:
    """An InferenceSession of an optimised file. It is not optimised again."""
    options = session_options(request)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return session(str(path), options, request, more)


def loaded_in_stream(path: Path, request: Request, stream: int) -> Any:
    """The same, whose calls queue their work in a stream of the caller's. Raises UnmeasuredError."""
    wanted = {USER_STREAM: str(stream)}
    try:
        session = loaded(path, request, wanted)
    except BuildError as error:
        raise UnmeasuredError(f"ONNX Runtime does not load the program for a stream of the suite: {error}.") from error
    settings = session.get_provider_options().get(PROVIDERS[request.device], {})
    if settings.get(USER_STREAM) != str(stream):
        raise UnmeasuredError("ONNX Runtime does not say that it uses the stream that the suite has made.")
    return session
