"""Importing TVM without torch, and the target that programs are compiled for."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable
from functools import cache
from typing import Any

from rnnbench.backends.shared import CUDA, gpu_to_compile_for
from rnnbench.measure import X86_LANES, processor_features, x86_lanes

PACKAGES = ("apache-tvm", "apache-tvm-ffi")
INSTRUCTIONS = re.compile(r"avx|amx|fma|f16c|bmi|gfni|vaes|s?sse|xop|tbm|lzcnt|popcnt|movbe")
"""How the names of LLVM's x86 features begin, where LLVM uses their instructions unasked."""
KERNEL_NAMES = {"sse3": "pni", "lzcnt": "abm", "bmi": "bmi1"}
"""Linux' names of x86 features that LLVM names in another way, apart from dots, hyphens and underscores."""
VNNI_OF_LANES = {16: "avx512vnni", 8: "avxvnni"}
"""LLVM's features with products of bytes, by float32 lanes of the widest vectors."""


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
    """This machine's processor, less the features that it does not offer, and with products of bytes where it has them.

    TVM takes all features of the processor's model, where `-march=native` of a C compiler asks the processor. A virtual
    machine may withhold AVX-512, say: code that has it dies of SIGILL. It may also have another model's name, and LLVM
    ends the process where a kernel asks for an instruction that the model lacks.
    """
    features, offered = _features_of_model(), processor_features()
    changed = [f"-{name}" for name in withheld(features, offered)]
    changed += [f"+{name}" for name in products_of_bytes(features, offered)]
    if not changed:
        return _model()
    return import_tvm().target.Target({"kind": "llvm", "mcpu": processor(), "mattr": changed})


@cache
def _model() -> Any:
    return import_tvm().target.Target({"kind": "llvm", "mcpu": processor()})


def _features_of_model() -> tuple[str, ...]:
    return tuple(str(name) for name in import_tvm().get_global_func("target.llvm_get_cpu_features")(_model()))


def target_of(device: str) -> Any:
    """The target of programs on a device. On CUDA it is this machine's GPU, under the processor. Raises BuildError."""
    return cuda_target(gpu_to_compile_for().capability) if device == CUDA else target()


@cache
def cuda_target(capability: str) -> Any:
    """A GPU by its capability, as `sm_90`, under this machine's processor."""
    return import_tvm().target.Target({"kind": "cuda", "arch": capability}, host=target())


def withheld(features: Iterable[str], offered: frozenset[str]) -> tuple[str, ...]:
    """LLVM's `features` of an x86 processor, in order, that are not among the `offered`, which have Linux' names.

    Empty for other architectures, and where the kernel tells of none.
    """
    if "sse2" not in offered:
        return ()
    names = {_plain(name) for name in offered}
    used = (name for name in features if INSTRUCTIONS.match(name))
    return tuple(sorted(name for name in used if _plain(KERNEL_NAMES.get(name, name)) not in names))


def products_of_bytes(features: Collection[str], offered: frozenset[str]) -> tuple[str, ...]:
    """LLVM's feature with products of bytes, where it is `offered`, in Linux' names, and not among the model's."""
    name = VNNI_OF_LANES.get(x86_lanes(set(features) - set(withheld(features, offered))), "")
    return (name,) if name and name not in features and name in map(_plain, offered) else ()


def _plain(name: str) -> str:
    return re.sub(r"[._-]", "", name)


@cache
def lanes() -> int:
    """float32 lanes of the widest vectors of the target.

    `target.llvm_get_vector_width` says 512 bits of every x86 processor, also of one without AVX-512.
    """
    features = _features_of_model()
    offered = set(features) - set(withheld(features, processor_features()))
    if widest := x86_lanes(offered):
        return widest
    return int(import_tvm().get_global_func("target.llvm_get_vector_width")(target())) // 32


@cache
def registers() -> int:
    """Vector registers of the target: 16 on x86 without AVX-512, else 32."""
    return 16 if x86_lanes(_features_of_model()) > 0 and lanes() < X86_LANES["avx512f"] else 32
