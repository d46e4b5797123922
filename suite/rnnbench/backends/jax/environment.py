"""How JAX is set up: the variables that it reads when it is imported, and the thread that its computations run on."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping

from rnnbench.backends.base import Request


def variables(request: Request) -> Mapping[str, str]:
    """Variables that the worker of a request needs.

    `NPROC` sizes XLA's thread pools. With one thread a flag also keeps the compiler from splitting operations.
    """
    needed = {"JAX_PLATFORMS": "cpu", "NPROC": str(request.threads)}
    if request.threads == 1:
        needed["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    if request.precision.uniform == "float64":
        needed["JAX_ENABLE_X64"] = "true"
    return needed


def missing_variable(request: Request) -> str:
    """Why this process cannot build a request, or nothing. Without the variable JAX rounds float64 to float32."""
    if request.precision.uniform == "float64" and os.environ.get("JAX_ENABLE_X64", "") not in ("true", "1"):
        return "float64 needs JAX_ENABLE_X64=true in the environment before JAX is imported"
    return ""


def import_jax() -> None:
    """Import JAX, and make the calling thread compute: to hand a call to another thread costs more than it saves.

    JAX 0.10 does not read this option from its environment, and takes it only before the first computation.
    """
    importlib.import_module("jax").config.update("jax_cpu_enable_async_dispatch", False)
