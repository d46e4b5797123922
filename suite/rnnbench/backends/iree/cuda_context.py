"""CUDA's context in threads other than the one that opened the device.

IREE's driver for CUDA (3.13) makes its context the current one of the thread that opens the device. Elsewhere its
allocator ends with CUDA_ERROR_INVALID_CONTEXT (docs/upstream/iree-cuda-threads.md). A program that calls it from several
threads has to make the context current in each, and so does this module.

Source: CUDA Driver API, "Context Management".
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

LIBRARY = "libcuda.so.1"
NOTE = (
    "The session makes CUDA's context current in each thread that calls it: IREE's driver does so only in the thread that "
    "opened the device."
)


class ContextOfThreads:
    """The context that is current in this thread, for all others. Made once the device is open."""

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
