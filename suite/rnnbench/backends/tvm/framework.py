"""Importing TVM without torch, and the target that programs are compiled for."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

PACKAGES = ("apache-tvm", "apache-tvm-ffi")


@cache
def import_tvm() -> Any:
    """The module `tvm`. Where torch is installed, TVM imports it too, to accept its tensors.

    No torch tensor is passed to TVM here, so torch is hidden: its second and its 200 MB would count as TVM's. A name
    that is None in `sys.modules` raises ImportError, which TVM takes for "not installed".
    """
    hidden = "torch" not in sys.modules
    if hidden:
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        import tvm
    finally:
        if hidden:
            del sys.modules["torch"]
    return tvm


@cache
def processor() -> str:
    """LLVM's name for this machine's processor; `native` is not one that TVM takes."""
    return str(import_tvm().get_global_func("target.llvm_get_system_cpu")())


@cache
def target() -> Any:
    return import_tvm().target.Target({"kind": "llvm", "mcpu": processor()})


@cache
def lanes() -> int:
    """float32 lanes of the widest vectors of this machine's processor."""
    return int(import_tvm().get_global_func("target.llvm_get_vector_width")(target())) // 32
