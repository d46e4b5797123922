"""How JAX is set up: what it reads from its environment when it is imported, and where its computations run."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping

from rnnbench.backends.base import Request


def variables(request: Request) -> Mapping[str, str]:
    """Variables that the worker of a request needs.

    `NPROC` sizes XLA's thread pools; at one thread the compiler is also told to split no operation among threads.
    """
    wanted = {"JAX_PLATFORMS": "cpu", "NPROC": str(request.threads)}
    if request.threads == 1:
        wanted["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    if request.precision.uniform == "float64":
        wanted["JAX_ENABLE_X64"] = "true"
    return wanted


def missing(request: Request) -> str:
    """Why this process cannot build a request; empty where it can. Without 64-bit types JAX would round to 32."""
    if request.precision.uniform == "float64" and os.environ.get("JAX_ENABLE_X64", "") not in ("true", "1"):
        return "float64 needs JAX_ENABLE_X64=true in the environment before JAX is imported"
    return ""


def import_jax() -> None:
    """Import JAX and have the calling thread compute: handing a call to another thread costs more than it hides.

    JAX 0.10 does not read this option from its environment, and takes it only before the first computation.
    """
    importlib.import_module("jax").config.update("jax_cpu_enable_async_dispatch", False)
