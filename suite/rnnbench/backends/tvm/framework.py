"""Importing TVM without torch, and the target that programs are compiled for."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any

from rnnbench.backends.program_identity import processor_features
from rnnbench.backends.shared import CUDA, gpu_to_compile_for

PACKAGES = ("apache-tvm", "apache-tvm-ffi")
INSTRUCTIONS = re.compile(r"avx|amx|fma|f16c|bmi|gfni|vaes|s?sse|xop|tbm|lzcnt|popcnt|movbe")
"""How the names of LLVM's x86 features begin, where LLVM uses their instructions unasked."""
KERNEL_NAMES = {"sse3": "pni", "lzcnt": "abm", "bmi": "bmi1"}
"""Linux' names of x86 features that LLVM names in another way, apart from dots, hyphens and underscores."""
AVX2_BITS = 256


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
    """This machine's processor, less the features that it does not offer.

    TVM takes all features of the processor's model, where `-march=native` of a C compiler asks the processor. A virtual
    machine may withhold AVX-512, say: code that has it dies of SIGILL.
    """
    of_model = import_tvm().target.Target({"kind": "llvm", "mcpu": processor()})
    features = import_tvm().get_global_func("target.llvm_get_cpu_features")(of_model)
    absent = withheld((str(name) for name in features), processor_features())
    if not absent:
        return of_model
    return import_tvm().target.Target({"kind": "llvm", "mcpu": processor(), "mattr": [f"-{name}" for name in absent]})


def target_of(device: str) -> Any:
    """The target of programs on a device. On CUDA it is this machine's GPU, under the processor. Raises BuildError."""
    return cuda_target(gpu_to_compile_for().capability) if device == CUDA else target()


@cache
def cuda_target(capability: str) -> Any:
    """A GPU by its capability, as `sm_90`, under this machine's processor."""
    return import_tvm().target.Target({"kind": "cuda", "arch": capability}, host=target())


def withheld(features: Iterable[str], offered: frozenset[str]) -> tuple[str, ...]:
    """Those of LLVM's `features` of an x86 processor, in order, that are not among the `offered`, in Linux' names.

    Empty for other architectures, and where the kernel tells of none.
    """
    if "sse2" not in offered:
        return ()
    known = {_plain(name) for name in offered}
    used = (name for name in features if INSTRUCTIONS.match(name))
    return tuple(sorted(name for name in used if _plain(KERNEL_NAMES.get(name, name)) not in known))


def _plain(name: str) -> str:
    return re.sub(r"[._-]", "", name)


@cache
def lanes() -> int:
    """float32 lanes of the widest vectors that this machine offers. TVM tells those of the processor's model."""
    width = int(import_tvm().get_global_func("target.llvm_get_vector_width")(target()))
    return (min(width, AVX2_BITS) if "-avx512f" in target().attrs.get("mattr", ()) else width) // 32
