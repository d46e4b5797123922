"""Facts about this machine that can be read without privileges."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

from rnnbench.measure.caches import CPU, cache_sizes
from rnnbench.measure.clocks import measure_clock
from rnnbench.measure.control_groups import cores_at_once, cpu_quota

X86_LANES = {"avx512f": 16, "avx": 8, "sse2": 4}
"""float32 lanes of a vector, by feature, widest first."""
_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
"""Linux's names of processors' temperature sensors."""
_PROCESSOR = (
    *("vendor_id", "cpu family", "model", "stepping"),
    *("CPU implementer", "CPU variant", "CPU part", "CPU revision"),
)
"""What /proc/cpuinfo calls the design of a processor, on x86 and on Arm. A name such as `AMD EPYC` has several."""
_VECTORS = (
    *("avx", "avx2", "f16c", "fma", "avx_vnni", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "avx512_fp16"),
    *("amx_tile", "amx_int8", "amx_bf16", "asimd", "asimdhp", "asimddp", "i8mm", "bf16", "sve", "sve2", "sme"),
)
"""The kernel's names of instructions that compilers and runtimes choose their code by."""


def describe_machine() -> dict[str, object]:
    """Processor, caches (bytes), memory (bytes), governor, kernel, Python and clock. Unreadable facts are left out."""
    clock = measure_clock()
    facts: dict[str, object] = {
        "cpu": processor_model(),
        "processor": {key: text for key in _PROCESSOR if (text := processor_facts().get(key))},
        "vector_extensions": _vector_extensions(),
        "cores": os.cpu_count(),
        "usable_cores": cores_at_once(),
        "cpu_quota": cpu_quota(),
        "caches": cache_sizes(),
        "governor": _read(CPU / "cpufreq/scaling_governor"),
        "memory": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "system": _system(),
        "python": sys.version.split()[0],
        "clock_resolution_s": clock.resolution,
        "clock_cost_s": clock.cost,
        "load": os.getloadavg()[0],
        "temperature": temperature(),
    }
    return {key: value for key, value in facts.items() if value not in (None, "", {})}


@dataclass(frozen=True)
class MachineConditions:
    """The conditions of the machine while it was watched."""

    steal: float | None
    """Share of the processors' time that the machine's host gave to others; None if it cannot be read."""
    load: tuple[float, float]
    """One-minute load average at the beginning and at the end."""
    temperature: tuple[float, float] | None
    """The processor's hottest sensor at the beginning and at the end, in °C; None if none can be read."""


class MachineWatch:
    """Watches load, temperature and steal from its creation until `conditions` is called."""

    def __init__(self) -> None:
        self._load = os.getloadavg()[0]
        self._temperature = temperature()
        self._times = psutil.cpu_times()

    def conditions(self) -> MachineConditions:
        now, load = temperature(), (self._load, os.getloadavg()[0])
        heat = None if self._temperature is None or now is None else (self._temperature, now)
        return MachineConditions(steal=self._steal(), load=load, temperature=heat)

    def _steal(self) -> float | None:
        now = psutil.cpu_times()
        if not hasattr(now, "steal"):
            return None
        total = sum(now) - sum(self._times)
        return (now.steal - self._times.steal) / total if total > 0 else 0.0


def temperature() -> float | None:
    """The processor's hottest sensor, in °C. None if none can be read, as in most virtual machines."""
    sensors = psutil.sensors_temperatures() if hasattr(psutil, "sensors_temperatures") else {}
    return max((sensor.current for name in _SENSORS for sensor in sensors.get(name, ())), default=None)


def processor_model() -> str | None:
    """The processor's name, as the kernel reports it."""
    return processor_facts().get("model name") or platform.processor() or None


def processor_features() -> frozenset[str]:
    """The features that the kernel offers to programs, in the kernel's names; empty where it tells of none.

    A virtual machine may offer fewer than processors of its model have.
    """
    first = processor_facts()
    return frozenset((first.get("flags") or first.get("Features") or "").split())


def x86_lanes(features: Collection[str]) -> int:
    """float32 lanes of the widest vectors that these features of an x86 processor have; 0 of another processor."""
    return next((count for name, count in X86_LANES.items() if name in features), 0)


def vector_lanes() -> int:
    """float32 lanes of the widest vectors that the kernel offers; those of 128 bits on another processor than x86."""
    return x86_lanes(processor_features()) or X86_LANES["sse2"]


def _vector_extensions() -> str:
    known = processor_features()
    return " ".join(name for name in _VECTORS if name in known) or "none"


@cache
def processor_facts() -> Mapping[str, str]:
    """What the kernel tells of the first core."""
    lines = (_read(Path("/proc/cpuinfo")) or "").splitlines()
    return {line.partition(":")[0].strip(): line.partition(":")[2].strip() for line in reversed(lines)}


def _system() -> str | None:
    match = re.search(r'^PRETTY_NAME="?([^"\n]+)', _read(Path("/etc/os-release")) or "", re.MULTILINE)
    return match[1] if match else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
