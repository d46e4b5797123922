"""One thread at a time, where CUDA graphs are recorded.

CUDA's provider records with `cudaStreamCaptureModeGlobal`: while one thread records, CUDA refuses calls of all other
threads that may wait for the GPU, such as copies (error 900), and the recording fails too (901). ONNX Runtime's page of
the provider says that a session with graphs may not run in several threads. So their calls take turns here.

Source: onnxruntime/core/providers/cuda/cuda_graph.cc; CUDA Runtime API, `cudaStreamBeginCapture`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from threading import RLock

from rnnbench.backends.base import Request
from rnnbench.cases import STREAM

_RECORDING = RLock()
"""For the whole process: a recording forbids the calls of every program, of the one for the rest of a call too."""


def in_turn(request: Request) -> AbstractContextManager[object]:
    """Where a program may record graphs: what it runs, copies and loads within. Elsewhere it does nothing."""
    return nullcontext() if request.strategy.launch == STREAM else _RECORDING
