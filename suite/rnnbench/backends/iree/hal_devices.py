"""The devices that IREE's programs run on: what the compiler and the runtime are told for each, and which are here."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

from rnnbench.backends.base import Lack, Request
from rnnbench.backends.iree.cuda_context import NOTE
from rnnbench.backends.iree.cuda_target import target_flag, target_note
from rnnbench.backends.iree.program import DEVICE
from rnnbench.backends.shared import CUDA, with_cuda
from rnnbench.devices import KINDS, VARIABLES, Device

HOST = "--iree-llvmcpu-target-cpu=host"
"""Programs are then for the processor of this machine."""
ANSWER_S = 30.0
"""Longest that a driver may take to list its devices."""
INSTALL_AGAIN = "pip install --force-reinstall --no-deps iree-base-runtime"
"""For a tool of the runtime's wheel that is not there, or may not be run."""
DEVICE_LOCAL = 1
"""The flag of a heap in the device's own memory (VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)."""


@dataclass(frozen=True)
class HalDevice:
    """A kind of device as IREE knows it."""

    flags: tuple[str, ...]
    """The compiler's flags, beside those of every device."""
    driver: str = ""
    """The driver in the runtime, which picks its default device. Empty for the processor: `runtime` picks one."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the worker's environment must have."""

    @property
    def is_mapped(self) -> bool:
        """Whether the host can read the memory of results where it is."""
        return not self.driver


HAL_DEVICES: Mapping[str, HalDevice] = {
    "cpu": HalDevice(
        (
            f"--iree-hal-target-device={DEVICE}=local",
            "--iree-hal-local-target-device-backends=llvm-cpu",
            HOST,
            "--iree-opt-data-tiling",
            "--iree-llvmcpu-debug-symbols=false",
        )
    ),
    CUDA: HalDevice((f"--iree-hal-target-device={DEVICE}=cuda",), "cuda", VARIABLES),
    # Mesa's software device runs on as many threads as the machine has cores, unless it is told a number.
    "vulkan": HalDevice((f"--iree-hal-target-device={DEVICE}=vulkan",), "vulkan", {"LP_NUM_THREADS": "1"}),
}
"""By the name of the kind."""


def hal_device(request: Request) -> HalDevice:
    return HAL_DEVICES[request.device]


def flags_of_device(request: Request) -> tuple[str, ...]:
    """The compiler's flags for the device of a request. Raises BuildError where there is no GPU to compile for."""
    flags = hal_device(request).flags
    return (*flags, target_flag()) if request.device == CUDA else flags


def device_notes(request: Request) -> tuple[str, ...]:
    """What a record says of the device, where it is not the processor."""
    if hal_device(request).is_mapped:
        return ()
    staged = "Results come back through a staging buffer: the host cannot read a device's memory."
    return (target_note(), staged, NOTE) if request.device == CUDA else (staged,)


def devices() -> dict[str, Device | Lack]:
    """The processor, and of each other kind the first device, or what is missing for one.

    NVIDIA's own library describes a GPU. IREE's driver is asked only whether it finds one, too.
    """
    devices_by_kind = {**with_cuda(None), "vulkan": _device("vulkan", "vulkan")}
    if isinstance(devices_by_kind[CUDA], Device) and isinstance(lack := _device(CUDA, "cuda"), Lack):
        devices_by_kind[CUDA] = lack
    return devices_by_kind


def runtime_tool(name: str) -> Path:
    """A binary in the runtime's wheel. The command of that name on the path is a Python script that starts it."""
    return Path(str(distribution("iree-base-runtime").locate_file(f"iree/_runtime_libs/{name}")))


@cache
def _device(kind: str, driver: str) -> Device | Lack:
    """What the driver says, in a process of its own: drivers of GPUs start threads, and some do not outlive a fork."""
    command = [str(runtime_tool("iree-run-module")), f"--dump_devices={driver}"]
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, timeout=ANSWER_S
        )
    except OSError as error:
        return Lack(f"IREE's {driver} driver cannot be asked for its devices: {error}", INSTALL_AGAIN)
    except subprocess.TimeoutExpired:
        return Lack(f"IREE's {driver} driver did not list its devices within {ANSWER_S:g} s", "")
    if device := described(process.stdout):
        return device
    messages = [line for line in process.stderr.splitlines() if "; " in line]
    why = messages[0].partition("; ")[2] if messages else "it lists none"
    return Lack(f"IREE's {driver} driver finds no device here: {why}", KINDS[kind].install)


def described(listing: str) -> Device | None:
    """The first device in what `iree-run-module --dump_devices=vulkan` printed; None where it lists none.

    The runtime's default device is the first one. Where the driver tells no more of it, its name is in the heading.
    """
    first = re.split(r"^# --device=", listing, flags=re.MULTILINE)[1:2]
    if not first:
        return None
    heading = re.search(r"^#   (.+)$", first[0], re.MULTILINE)
    fields = dict(re.findall(r"^(\w+): *(.+)$", first[0], re.MULTILINE))
    heaps = re.findall(r"^ +\[\d+\] size=(\d+) flags=(0x[0-9a-f]+)", first[0], re.MULTILINE)
    local = [int(size) for size, flags in heaps if int(flags, 16) & DEVICE_LOCAL]
    driver = (fields.get("driver", ""), fields.get("driver_info", ""))
    return Device(
        name=fields.get("name") or (heading.group(1) if heading else "device"),
        driver=" ".join(part for part in driver if part),
        capability=f"Vulkan {fields['api']}" if "api" in fields else "",
        memory=max(local, default=None),
        software=fields.get("type") == "cpu",
    )
