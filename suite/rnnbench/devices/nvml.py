"""NVIDIA's GPUs as the driver describes them, by NVML (package nvidia-ml-py, extra `cuda`), without a CUDA context.

NVML lists GPUs in the order of the PCI bus. CUDA lists those in `CUDA_VISIBLE_DEVICES`, the fastest first. So programs
run with `CUDA_DEVICE_ORDER=PCI_BUS_ID` (`VARIABLES`): CUDA's first device is then NVML's first visible one. A GPU in
MIG mode is cut into instances, of which CUDA uses one. The user names it; the whole GPU is asked for what only it has.

Sources: NVML API Reference, docs.nvidia.com/deploy/nvml-api; CUDA Programming Guide, "CUDA Environment Variables";
NVIDIA Multi-Instance GPU User Guide, "CUDA Device Enumeration".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, TypeVar

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
INSTANCE = "MIG-"
"""How the UUID of an instance of a GPU in MIG mode begins."""
REMEDIES: Mapping[int, str] = {
    4: "This user may not open /dev/nvidia*: let the user do that, or start the container with its GPUs (--gpus all)",
    6: "CUDA_VISIBLE_DEVICES may name what is not there: nvidia-smi -L lists what is",
    9: "Load the kernel's module (modprobe nvidia), or start the container with its GPUs (--gpus all)",
    12: "Install NVIDIA's driver, or start the container with its GPUs (--gpus all)",
    15: "Restart the machine: the GPU fell off its bus",
    18: "Restart the machine: the driver was replaced while its kernel module was loaded",
}
"""What helps against an error of NVML, by the number in its header (nvmlReturn_t)."""
LIBRARY_NOT_FOUND = 12
"""NVML_ERROR_LIBRARY_NOT_FOUND: NVML's own library, or libcuda where NVML is asked for the version of CUDA."""
NO_LIBCUDA = (
    "NVIDIA's driver lists a GPU, and its library for programs (libcuda.so.1) is not found. Install the driver's "
    "package for CUDA (libcuda1 of Debian), or start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
)
PROHIBITED, ONE_PROCESS = 2, 3
"""Compute modes of nvmlComputeMode_t in which the suite cannot run: it has several processes on the GPU."""
Answer = TypeVar("Answer")


class NoGpuError(UnmeasuredError):
    """There is no GPU that a program could use, or no driver. The message says what is missing.

    `says_remedy` is set where the message says what to do, too.
    """

    def __init__(self, message: str, says_remedy: bool = False) -> None:
        super().__init__(message)
        self.says_remedy = says_remedy


def first_gpu() -> Device:
    """The GPU that CUDA calls its first. Raises NoGpuError."""
    with _nvml() as nvml:
        handles = _first_gpu(nvml)
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handles.board)
        # A GPU that shares the host's memory (GB10, Thor) has no figure of its own.
        memory = _answer(nvml, nvml.nvmlDeviceGetMemoryInfo, handles.handle)
        return Device(
            name=nvml.nvmlDeviceGetName(handles.handle),
            driver=f"NVIDIA {nvml.nvmlSystemGetDriverVersion()}",
            capability=f"sm_{major}{minor}",
            memory=None if memory is None else int(memory.total),
        )


def newest_cuda() -> int:
    """The newest major version of CUDA that the driver has. Raises NoGpuError."""
    with _nvml() as nvml:
        try:
            return int(nvml.nvmlSystemGetCudaDriverVersion_v2()) // 1000
        except nvml.NVMLError as error:
            if getattr(error, "value", 0) != LIBRARY_NOT_FOUND:
                raise
            raise NoGpuError(NO_LIBCUDA, True) from error


def gpu_conditions() -> DeviceConditions:
    """The conditions of the first GPU now. Those that the driver does not report are left out. Raises NoGpuError."""
    gpu = _OpenGpu.of_this_process()
    clock = gpu.answer(lambda nvml, handles: nvml.nvmlDeviceGetClockInfo(handles.board, nvml.NVML_CLOCK_SM))
    reasons = gpu.answer(lambda nvml, handles: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handles.board)) or 0
    power = None if gpu.is_instance else gpu.answer(lambda nvml, handles: nvml.nvmlDeviceGetPowerUsage(handles.board))
    heat = gpu.answer(lambda nvml, handles: nvml.nvmlDeviceGetTemperature(handles.board, nvml.NVML_TEMPERATURE_GPU))
    pids = [process.pid for process in gpu.answer(_processes) or ()]
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
        if self._gpu.is_instance:
            raise UnmeasuredError(
                "NVIDIA's driver counts the energy of a whole GPU, and this is an instance of one (MIG)."
            )
        self._first = self._now()
        self.source = "NVML: total energy of the GPU"

    def read(self) -> float:
        """Joules since this object was made. The counter has 64 bits and starts with the driver."""
        return (self._now() - self._first) * 1e-3

    def _now(self) -> int:
        now = self._gpu.answer(lambda nvml, handles: nvml.nvmlDeviceGetTotalEnergyConsumption(handles.board))
        if now is None:
            raise UnmeasuredError("NVIDIA's driver tells no total energy of this GPU.")
        return int(now)


def process_bytes(pid: int) -> int:
    """Bytes of a process on the first GPU. Raises UnmeasuredError if the driver does not report them."""
    processes = [process for process in _OpenGpu.of_this_process().answer(_processes) or () if process.pid == pid]
    if not processes:
        raise UnmeasuredError(
            "NVIDIA's driver lists no process with the PID of the worker: it has no memory there, or it has another "
            "PID for the driver, as in a container."
        )
    if processes[0].usedGpuMemory is None:
        raise UnmeasuredError("NVIDIA's driver does not tell how much memory of the GPU a process has.")
    return int(processes[0].usedGpuMemory)


class _GpuHandles(NamedTuple):
    """The first GPU, as NVML knows it."""

    handle: Any
    """What CUDA uses: the GPU, or one of its instances."""
    board: Any
    """The whole GPU."""


class _OpenGpu:
    """The library, kept open, with the first GPU. A forked child opens it again."""

    def __init__(self, nvml: Any, handles: _GpuHandles) -> None:
        self._nvml = nvml
        self._handles = handles
        self.is_instance = handles.handle is not handles.board

    @classmethod
    def of_this_process(cls) -> _OpenGpu:
        """The open library of this process. Raises NoGpuError."""
        return opened(os.getpid())

    def answer(self, ask: Callable[[Any, _GpuHandles], Answer]) -> Answer | None:
        """The driver's answer; None if it does not answer this question."""
        try:
            return ask(self._nvml, self._handles)
        except self._nvml.NVMLError:
            return None


@cache
def opened(_pid: int) -> _OpenGpu:
    """Open the library. The argument is this process's PID, so that a forked child gets its own entry of the cache."""
    nvml = _library()
    with _errors(nvml):
        nvml.nvmlInit()
        return _OpenGpu(nvml, _first_gpu(nvml))


def _processes(nvml: Any, handles: _GpuHandles) -> Any:
    return nvml.nvmlDeviceGetComputeRunningProcesses(handles.handle)


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
        remedy = REMEDIES.get(getattr(error, "value", 0), "")
        message = f"NVIDIA's driver does not answer: {error}"
        raise NoGpuError(f"{message}. {remedy}" if remedy else message, bool(remedy)) from error


def _first_gpu(nvml: Any) -> _GpuHandles:
    """Raises NoGpuError where there is none, or where its mode does not fit."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    first = "0" if visible is None else visible.split(",")[0].strip()
    if first in ("", "-1"):
        raise NoGpuError(f"CUDA_VISIBLE_DEVICES is {visible!r}, which hides every GPU. Unset it, or name a GPU", True)
    if first.startswith(INSTANCE):
        instance = nvml.nvmlDeviceGetHandleByUUID(first)
        handles = _GpuHandles(instance, nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(instance))
    else:
        board = _board(nvml, first)
        handles = _GpuHandles(_used(nvml, board, first), board)
    if _answer(nvml, nvml.nvmlDeviceGetComputeMode, handles.board) in (PROHIBITED, ONE_PROCESS):
        raise NoGpuError(
            f"GPU {first} lets in one process or none (its compute mode), and the suite has several. Let all in with: "
            "sudo nvidia-smi -c DEFAULT",
            True,
        )
    return handles


def _board(nvml: Any, named: str) -> Any:
    """The whole GPU of a number, or of a UUID or its beginning, as CUDA takes them. Raises NoGpuError."""
    count = nvml.nvmlDeviceGetCount()
    if named.isdigit():
        if int(named) < count:
            return nvml.nvmlDeviceGetHandleByIndex(int(named))
    else:
        for index in range(count):
            board = _answer(nvml, nvml.nvmlDeviceGetHandleByIndex, index)  # None of one that fell off its bus
            if board is not None and nvml.nvmlDeviceGetUUID(board).startswith(named):
                return board
    raise NoGpuError(
        f"NVIDIA's driver lists no GPU {named}, which CUDA would use: set CUDA_VISIBLE_DEVICES to one of those that "
        "nvidia-smi -L lists",
        True,
    )


def _used(nvml: Any, board: Any, named: str) -> Any:
    """The GPU, or its only instance where it is in MIG mode. Raises NoGpuError where it has several or none."""
    if (_answer(nvml, nvml.nvmlDeviceGetMigMode, board) or (0,))[0] == 0:
        return board
    most = _answer(nvml, nvml.nvmlDeviceGetMaxMigDeviceCount, board) or 0
    possible = [_answer(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex, board, index) for index in range(most)]
    instances = [instance for instance in possible if instance is not None]
    if len(instances) == 1:
        return instances[0]
    if not instances:
        raise NoGpuError(
            f"GPU {named} is in MIG mode and has no instance. Leave the mode with: nvidia-smi -mig 0", True
        )
    first = nvml.nvmlDeviceGetUUID(instances[0])
    raise NoGpuError(
        f"GPU {named} is in MIG mode and has {len(instances)} instances, of which CUDA would use one. Name it: "
        f"CUDA_VISIBLE_DEVICES={first}",
        True,
    )


def _answer(nvml: Any, ask: Callable[..., Any], *arguments: Any) -> Any:
    """The driver's answer; None if this GPU or this driver does not have what is asked."""
    try:
        return ask(*arguments)
    except nvml.NVMLError:
        return None
