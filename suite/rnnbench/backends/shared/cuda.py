"""CUDA, for adapters that have it: the GPU that a probe declares, and what the environment of a worker must have."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache

from rnnbench.backends.base import BuildError, Lack, Request, processor
from rnnbench.devices import KINDS, VARIABLES, Device, NoGpuError, first_gpu, newest_cuda

CUDA = "cuda"
PROCESSOR_AND_CUDA = (*processor(), CUDA)
"""The kinds of devices of a backend that has these two, as `Abilities` has them."""
NO_TF32: Mapping[str, str] = {"NVIDIA_TF32_OVERRIDE": "0"}
"""Keeps NVIDIA's libraries (cuBLAS, cuDNN) from computing float32 products in TF32, whatever a framework asks of them.
Source: NVIDIA Technical Blog, "Accelerating AI Training with NVIDIA TF32 Tensor Cores"."""
ENVIRONMENT: Mapping[str, str] = {**VARIABLES, **NO_TF32}
"""What the environment of a worker on CUDA must have."""
NO_GPU: Mapping[str, str] = {"CUDA_VISIBLE_DEVICES": "-1"}
"""What hides every GPU from a worker on the processor, where packages with CUDA are installed."""
NVIDIA_LIBRARIES = ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12", "nvidia-cublas", "nvidia-cublas-cu12")
"""The packages of cuDNN and cuBLAS. A machine may have the libraries without these packages, too."""
DRIVERS: Mapping[int, int] = {11: 450, 12: 525, 13: 580}
"""The oldest driver for each major version of CUDA.
Source: CUDA Toolkit Release Notes, "CUDA Minor Version Compatibility"."""


def with_cuda(lack: Lack | None, built_for: int | None = None) -> Mapping[str, Device | Lack]:
    """The devices of a backend that has the processor and CUDA (`Probe.devices`).

    `lack` is what the installed runtime lacks for CUDA, such as a build with CUDA inside; None where it has all.
    `built_for` is the major version of CUDA of its libraries; None where it is not known, or where it has none.
    """
    return processor() | {CUDA: lack or _gpu(built_for)}


def too_many_threads(request: Request) -> str:
    """Why a request has too many threads for CUDA; empty where it has not."""
    if request.device == CUDA and request.threads != 1:
        return "On cuda a program is called from one thread, and target.threads is for the processor."
    return ""


@cache
def library_loads(library: str) -> bool:
    """Whether the loader finds a library, as in a container with CUDA's. It is loaded. A probe has its own process."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def gpu_to_compile_for() -> Device:
    """The GPU that `with_cuda` declares. Raises BuildError where there is none."""
    try:
        return first_gpu()
    except NoGpuError as error:
        raise BuildError(f"there is no GPU to compile for: {error}") from error


def _gpu(built_for: int | None) -> Device | Lack:
    try:
        gpu, newest = first_gpu(), newest_cuda() if built_for else 0
    except NoGpuError as error:
        return Lack(str(error), "" if error.says_remedy else KINDS[CUDA].install)
    if built_for is None or newest >= built_for:
        return gpu
    wanted = f"driver {DRIVERS[built_for]} or newer" if built_for in DRIVERS else "a newer driver"
    return Lack(
        f"the driver ({gpu.driver}) has CUDA {newest}, and the installed packages are for CUDA {built_for}. Install "
        f"{wanted}, or packages for CUDA {newest}",
        "",
    )
