"""What NVIDIA's driver tells of its GPUs, through NVML (package nvidia-ml-py, extra `cuda`). Makes no CUDA context.

NVML lists GPUs in the order of the PCI bus, and CUDA the ones that `CUDA_VISIBLE_DEVICES` leaves it, the fastest first.
So programs run with `CUDA_DEVICE_ORDER=PCI_BUS_ID` (`VARIABLES`), and CUDA's first device is NVML's first one that is
visible.

Source: NVML API Reference, docs.nvidia.com/deploy/nvml-api.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rnnbench.devices.device import Device
from rnnbench.optional import MissingExtraError, require

VARIABLES: Mapping[str, str] = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""What the environment of a process that uses CUDA must have before it begins."""


class NoGpuError(RuntimeError):
    """There is no GPU that a program could use, or no driver. The message says what is missing."""


def first_gpu() -> Device:
    """The GPU that CUDA calls its first. Raises NoGpuError."""
    with _nvml() as nvml:
        handle = _first_handle(nvml)
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
        return Device(
            name=nvml.nvmlDeviceGetName(handle),
            driver=f"NVIDIA {nvml.nvmlSystemGetDriverVersion()}",
            capability=f"sm_{major}{minor}",
            memory=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
        )


@contextmanager
def _nvml() -> Iterator[Any]:
    """The library, opened. Raises NoGpuError where its package or the driver is missing."""
    try:
        nvml = require("pynvml", "cuda", "asking for NVIDIA's GPUs")
    except MissingExtraError as error:
        raise NoGpuError("nvidia-ml-py is not installed, so no NVIDIA driver can be asked") from error
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        raise NoGpuError(f"NVIDIA's driver does not answer: {error}") from error
    try:
        yield nvml
    except nvml.NVMLError as error:
        raise NoGpuError(f"NVIDIA's driver does not answer: {error}") from error
    finally:
        nvml.nvmlShutdown()


def _first_handle(nvml: Any) -> Any:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    first = "0" if visible is None else visible.split(",")[0].strip()
    if first in ("", "-1"):
        raise NoGpuError(f"CUDA_VISIBLE_DEVICES is {visible!r}, which hides every GPU")
    if not first.isdigit():
        return nvml.nvmlDeviceGetHandleByUUID(first)
    if int(first) >= nvml.nvmlDeviceGetCount():
        raise NoGpuError(f"NVIDIA's driver lists no GPU {first}")
    return nvml.nvmlDeviceGetHandleByIndex(int(first))
