"""What is CUDA's own: float32 without TF32, what programs are compiled for, waiting, and graphs.

Sources: PyTorch's documentation, "CUDA semantics" (asynchronous execution, TensorFloat-32, CUDA graphs), and those of
`torch.cuda.graph` and `torch.backends`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rnnbench.backends.base import Artifact, Request
from rnnbench.backends.shared import CUDA
from rnnbench.cases import STREAM

WARM_CALLS = 3
"""Calls before one is recorded, as PyTorch's documentation makes them: libraries choose and load their kernels, and
allocate what a recording may not."""
FLAGS = ("tf32=off",)
NOTE = "float32 is IEEE's: TF32 is off in products (cuBLAS) and in cuDNN's RNNs"
GRAPH_NOTE = (
    f"a call replays a CUDA graph, which is recorded after {WARM_CALLS} calls: one graph for each chunk of a bound "
    "ring, one for public calls. It has the operations of every pass of a loop, one after the other"
)
STITCHED_NOTE = "a graph reads its arguments from fixed places: a call first copies the caller's state there"


def use_ieee() -> None:
    """Turn TF32 off. cuDNN's RNNs would use it by default.

    The switches of PyTorch before 2.9 are set first: both kinds of switches can then be read, and agree.
    """
    backends: Any = torch.backends
    backends.cuda.matmul.allow_tf32 = False
    backends.cudnn.allow_tf32 = False
    for part in (backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn):
        part.fp32_precision = "ieee"


def compiled_for() -> list[str]:
    """What compiled programs and the choice of kernels depend on: compute capability, CUDA's and cuDNN's version."""
    cudnn: Any = torch.backends.cudnn
    major, minor = torch.cuda.get_device_capability()
    return [f"sm_{major}{minor}", str(torch.version.cuda), str(cudnn.version())]


def wait() -> None:
    """Returns once the GPU has done what this process has queued for it."""
    torch.cuda.current_stream().synchronize()


def stream() -> int:
    """The handle of the stream in which calls queue their work, replays of graphs too."""
    handle: int = torch.cuda.current_stream().cuda_stream
    return handle


def described(request: Request, artifact: Artifact) -> Artifact:
    """The artifact with what the device and the launch of the request add to its flags and notes."""
    if request.device != CUDA:
        return artifact
    notes = [NOTE]
    if request.strategy.launch != STREAM:
        notes.append(GRAPH_NOTE)
        notes += [STITCHED_NOTE] if request.strategy.state == "stitched" else []
    update = {"flags": (*artifact.flags, *FLAGS), "notes": (*artifact.notes, *notes)}
    return artifact.model_copy(update=update)


class Recorded(NamedTuple):
    """A call that was recorded. Each replay reads and writes the same tensors as the recording did."""

    replay: Callable[[], object]
    result: Tensor


Record = Callable[[Callable[[], Tensor]], Recorded]
"""Records a call. It may make the call several times before."""


class CudaGraphs:
    """Records calls as CUDA graphs.

    All that one recorder makes share their memory: a replay may overwrite what others have computed, and the tensors
    that they returned stay theirs. So results are valid until the next replay of any of them.
    """

    def __init__(self) -> None:
        cuda: Any = torch.cuda
        self._pool, self._stream = cuda.graph_pool_handle(), cuda.Stream()
        """Recordings that share memory must be of one stream."""

    def __call__(self, call: Callable[[], Tensor]) -> Recorded:
        cuda: Any = torch.cuda
        stream, current = self._stream, cuda.current_stream()
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            for _ in range(WARM_CALLS):
                call()
        current.wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=stream, capture_error_mode="thread_local"):
            result = call()
        return Recorded(graph.replay, result)
