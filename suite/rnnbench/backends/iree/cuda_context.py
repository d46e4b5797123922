"""CUDA's context in threads other than the one that opened the device.

IREE's driver for CUDA (3.13) makes its context the current one of the thread that opens the device. Elsewhere its
allocator ends with CUDA_ERROR_INVALID_CONTEXT (docs/upstream/iree-cuda-threads.md). A program that calls it from
several threads has to make the context current in each, and so does this module.

Source: CUDA Driver API, "Context Management".
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from rnnbench.backends.shared import CUDA

Around = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Gives what to call in the place of one of the runtime's functions."""
LIBRARY = "libcuda.so.1"
NOTE = (
    "The session makes CUDA's context current in each thread that calls it: IREE's driver does so only in the thread "
    "that opened the device."
)


def around_calls(device: str) -> Around:
    """The wrapper for calls of a session on this kind of device. The first one is made in the thread that opened it."""
    return _context().around if device == CUDA else lambda call: call


@cache
def _context() -> _ContextOfThreads:
    return _ContextOfThreads()


class _ContextOfThreads:
    """The context that is current in the thread that makes this, for all others."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL(LIBRARY)
        self._context = ctypes.c_void_p()
        self._cuda.cuCtxGetCurrent(ctypes.byref(self._context))
        self._here = threading.local()
        self._here.is_current = True

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, in a thread that has the context."""

        def in_context(*arguments: Any, **named: Any) -> Any:
            if not hasattr(self._here, "is_current"):
                self._cuda.cuCtxSetCurrent(self._context)
                self._here.is_current = True
            return call(*arguments, **named)

        return in_context
