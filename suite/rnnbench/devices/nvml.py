"""NVIDIA's GPUs as the driver describes them, by NVML (package nvidia-ml-py, extra `cuda`), without a CUDA context.

NVML lists GPUs in the order of the PCI bus. CUDA lists those in `CUDA_VISIBLE_DEVICES`, the fastest first. So programs
run with `CUDA_DEVICE_ORDER=PCI_BUS_ID` (`VARIABLES`): CUDA's first device is then NVML's first visible one.

Source: NVML API Reference, docs.nvidia.com/deploy/nvml-api.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import psutil

from rnnbench.devices.device import Device, UnmeasuredError
from rnnbench.measure import DeviceConditions
from rnnbench.optional import MissingExtraError, require

VARIABLES: Mapping[str, str] = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""Environment variables that a process must have before it uses CUDA."""
THROTTLED: Mapping[int, str] = {
    4: "power cap",
    8: "hardware slowdown",
    32: "software thermal slowdown",
    64: "hardware thermal slowdown",
    128: "power brake",
    512: "board limit",
    1024: "reliability limit",
}
"""The bits of `nvmlDeviceGetCurrentClocksThrottleReasons` that hold a clock down. A GPU is not throttled if it is idle
(1), if a person has set its clock (2), or if its clock follows another GPU's or a display's (16, 256)."""
ENERGY_BLOCK_S = 2.0
"""Seconds of a block whose energy is measured. NVML updates its counter every 20 to 100 ms, depending on the GPU."""
Answer = TypeVar("Answer")


class NoGpuError(UnmeasuredError):
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


def gpu_conditions() -> DeviceConditions:
    """The conditions of the first GPU now. Those that the driver does not report are left out. Raises NoGpuError."""
    gpu = _OpenGpu.of_this_process()
    clock = gpu.told(lambda nvml, handle: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))
    reasons = gpu.told(lambda nvml, handle: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)) or 0
    power = gpu.told(lambda nvml, handle: nvml.nvmlDeviceGetPowerUsage(handle))
    heat = gpu.told(lambda nvml, handle: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
    pids = [process.pid for process in gpu.told(_processes) or ()]
    seen = {pid: _who(pid) for pid in pids}
    return DeviceConditions(
        clock=None if clock is None else clock * 1e6,
        throttled=tuple(meaning for bit, meaning in THROTTLED.items() if reasons & bit),
        temperature=None if heat is None else float(heat),
        power=None if power is None else power * 1e-3,
        others=tuple(f"{name} (PID {pid})" for pid, name in seen.items() if name),
        hidden=sum(name is None for name in seen.values()),
    )


class GpuEnergy:
    """The energy of the first GPU's whole board since this object was made, from NVML's counter of millijoules."""

    block_s = ENERGY_BLOCK_S

    def __init__(self) -> None:
        self._gpu = _OpenGpu.of_this_process()
        self._first = self._now()
        self.source = "NVML: total energy of the GPU"

    def read(self) -> float:
        """Joules since this object was made. The counter has 64 bits and starts with the driver."""
        return (self._now() - self._first) * 1e-3

    def _now(self) -> int:
        now = self._gpu.told(lambda nvml, handle: nvml.nvmlDeviceGetTotalEnergyConsumption(handle))
        if now is None:
            raise UnmeasuredError("NVIDIA's driver tells no total energy of this GPU.")
        return int(now)


def process_bytes(pid: int) -> int:
    """Bytes of a process on the first GPU. Raises UnmeasuredError if the driver does not report them."""
    found = [process for process in _OpenGpu.of_this_process().told(_processes) or () if process.pid == pid]
    if not found:
        raise UnmeasuredError(
            "NVIDIA's driver lists no process with the PID of the worker: it has no memory there, or it has another "
            "PID for the driver, as in a container."
        )
    if found[0].usedGpuMemory is None:
        raise UnmeasuredError("NVIDIA's driver does not tell how much memory of the GPU a process has.")
    return int(found[0].usedGpuMemory)


class _OpenGpu:
    """The library, kept open, with the handle of the first GPU. A forked child opens it again."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle

    @classmethod
    def of_this_process(cls) -> _OpenGpu:
        """The open library of this process. Raises NoGpuError."""
        return opened(os.getpid())

    def told(self, ask: Callable[[Any, Any], Answer]) -> Answer | None:
        """The driver's answer; None if it does not answer this question."""
        try:
            return ask(self._nvml, self._handle)
        except self._nvml.NVMLError:
            return None


@cache
def opened(_pid: int) -> _OpenGpu:
    """Open the library. The argument is this process's PID, so that a forked child gets its own entry of the cache."""
    nvml = _library()
    with _errors(nvml):
        nvml.nvmlInit()
        return _OpenGpu(nvml, _first_handle(nvml))


def _processes(nvml: Any, handle: Any) -> Any:
    return nvml.nvmlDeviceGetComputeRunningProcesses(handle)


def _who(pid: int) -> str | None:
    """The name of a process; empty if it belongs to this suite, None if it cannot be seen."""
    try:
        process = psutil.Process(pid)
        ours = os.getpid() in (pid, *(parent.pid for parent in process.parents()))
        return "" if ours else process.name()
    except psutil.Error:
        return None


@contextmanager
def _nvml() -> Iterator[Any]:
    """The library, opened. Raises NoGpuError if its package or the driver is missing."""
    nvml = _library()
    with _errors(nvml):
        nvml.nvmlInit()
        try:
            yield nvml
        finally:
            nvml.nvmlShutdown()


def _library() -> Any:
    """The library, not opened. Raises NoGpuError if its package is missing."""
    try:
        return require("pynvml", "cuda", "asking for NVIDIA's GPUs")
    except MissingExtraError as error:
        raise NoGpuError("nvidia-ml-py is not installed, so no NVIDIA driver can be asked") from error


@contextmanager
def _errors(nvml: Any) -> Iterator[None]:
    try:
        yield
    except nvml.NVMLError as error:
        raise NoGpuError(f"NVIDIA's driver does not answer: {error}") from error


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
