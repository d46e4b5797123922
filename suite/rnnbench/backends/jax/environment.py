"""How JAX is set up: the variables that it reads when it is imported, and the thread that its computations run on."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping

from rnnbench.backends.base import Request
from rnnbench.backends.shared import CUDA, ENVIRONMENT, NO_GPU

ON_CUDA: Mapping[str, str] = {
    "JAX_PLATFORMS": "cuda",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    **ENVIRONMENT,
}
"""With this platform JAX fails where it finds no GPU: otherwise it computes on the processor. Without the second one
it takes three quarters of the GPU's memory when it starts. Source: docs.jax.dev/en/latest/gpu_memory_allocation.html"""

_WIDE = frozenset(("float64", "int64", "uint64"))


def variables(request: Request) -> Mapping[str, str]:
    """Variables that the worker of a request needs.

    On the processor `NPROC` sizes XLA's thread pools. With one thread a flag also keeps the compiler from splitting
    operations.
    """
    needed = dict(ON_CUDA) if request.device == CUDA else _on_the_processor(request.threads)
    if _has_64_bits(request):
        needed["JAX_ENABLE_X64"] = "true"
    return needed


def _has_64_bits(request: Request) -> bool:
    """Whether a number of the request has 64 bits. A file may have such states or constants beside others."""
    file = request.file
    types = {*file.types, *(dtype for _, _, dtype in file.constants)} if file is not None else set[str]()
    return request.precision.uniform == "float64" or bool(types & _WIDE)


def _on_the_processor(threads: int) -> dict[str, str]:
    one_thread = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"} if threads == 1 else {}
    return {"JAX_PLATFORMS": "cpu", "NPROC": str(threads), **NO_GPU, **one_thread}


def missing_variable(request: Request) -> str:
    """Why this process cannot build a request, or nothing. Without the variable JAX rounds float64 to float32."""
    if _has_64_bits(request) and os.environ.get("JAX_ENABLE_X64", "") not in ("true", "1"):
        return "int64 or float64 needs JAX_ENABLE_X64=true in the environment before JAX is imported"
    return ""


def import_jax() -> None:
    """Import JAX, and make the calling thread compute: to hand a call to another thread costs more than it saves.

    JAX 0.10 does not read this option from its environment, and takes it only before the first computation. It does not
    read the other one there either. Without it JAX starts every GPU that CUDA shows, and fails where one of the others
    has no memory left.
    """
    config = importlib.import_module("jax").config
    config.update("jax_cpu_enable_async_dispatch", False)
    config.update("jax_cuda_visible_devices", "0")
