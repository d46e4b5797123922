"""What decides the program that a build makes, beside its request: the key under which runs share programs.

It is asked in the worker that builds, whose interpreter and environment may be others than the suite's.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from functools import cache

from rnnbench.backends.base import Request
from rnnbench.measure import processor_facts

VARIABLES = (
    *("XLA_", "JAX_", "TF_", "KERAS_", "TORCH", "PYTORCH", "IREE_", "TVM_", "ORT_", "ONNX", "OV_", "OPENVINO_"),
    *("ATEN_", "AOT_INDUCTOR", "AOTINDUCTOR", "TRITON_", "TFLITE_", "LITERT_", "XNN", "NPY_", "ABSL_"),
    *("LLVM_", "MLIR_", "OMP_", "KMP_", "GOMP_", "MKL_", "DNNL_", "ONEDNN_", "OPENBLAS_", "CUDA_", "NVIDIA_", "VK_"),
    *("CUBLAS", "CUDNN_", "NVRTC_"),
    *("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CPATH", "C_INCLUDE", "CPLUS_INCLUDE", "LIBRARY_PATH"),
    *("LD_", "GLIBC_TUNABLES", "GCC_", "COMPILER_PATH"),
)
"""How the names of the environment variables begin that compilers, linkers and runtimes read."""
TOOLS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "ld", "ld.lld", "lld")
"""Compilers and linkers of the system that builds call."""
NAMED_TOOLS = ("CC", "CXX", "LD")
"""Environment variables that name others."""


def program_key(
    request: Request,
    sources: str,
    packages: Mapping[str, tuple[str, str]],
    variables: Mapping[str, str],
    device: object,
    environment: Mapping[str, str],
) -> dict[str, object]:
    """All that decides the request's program, as JSON. Equal values are the same program.

    `sources` is the digest of the adapter's. `packages` are its packages with the versions that it tells and with their
    digests, `variables` those that it asks for, and `device` is what its driver tells of the device. `environment` is
    that of the process before it imported a framework: imports and builds set variables too, some to the name of a
    temporary folder.
    """
    return {
        "request": request.facts,
        "sources": sources,
        "packages": {name: list(told) for name, told in packages.items()},
        "variables": {**{name: text for name, text in environment.items() if name.startswith(VARIABLES)}, **variables},
        "device": device,
        **machine_facts(),
    }


def machine_facts() -> dict[str, object]:
    """What of this machine and of this interpreter is in the programs that it builds."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": [platform.machine(), *platform.libc_ver()],
        "python": sys.version,
        "tools": _tools(),
    }


@cache
def processor() -> str:
    """The processor's model and features: code for one does not run, or runs slower, on another."""
    first = processor_facts()
    names = ("vendor_id", "cpu family", "model", "stepping", "flags", "CPU implementer", "CPU part", "Features")
    facts = "; ".join(f"{name} {first[name]}" for name in (*names, "model name") if name in first)
    return facts or " ".join(os.uname())


@cache
def _tools() -> dict[str, list[object]]:
    """The path, size and time of each tool that there is."""
    named = {os.environ[name].split()[0] for name in NAMED_TOOLS if os.environ.get(name, "").strip()}
    paths = {name: shutil.which(name) for name in sorted({*TOOLS, *named})}
    stats = {name: (os.path.realpath(path), os.stat(path)) for name, path in paths.items() if path}
    return {name: [real, stat.st_size, stat.st_mtime_ns] for name, (real, stat) in stats.items()}
