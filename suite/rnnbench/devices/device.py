"""A device as its driver describes it, and what the suite can do with all devices of its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from rnnbench.measure import DeviceConditions, EnergyCounter, Roof
from rnnbench.outside_text import OutsideText

Figure = Literal["latency_floor", "cold", "device_memory", "device_conditions", "energy", "device_time"]
"""Figures that depend on the kind of device. In this order: the floor of a latency; calls with empty caches; a device's
own memory; its clock and whatever else disturbs it; the energy of a step; the time of a call by the device's events."""


class UnmeasuredError(RuntimeError):
    """A figure cannot be measured on this device. The message is the reason, a sentence with its full stop."""


@dataclass(frozen=True)
class Device:
    """One device of a machine."""

    name: OutsideText
    driver: OutsideText = ""
    """The driver and its version; empty for the processor, which has none."""
    capability: OutsideText = ""
    """What programs are compiled for: an instruction set, an API's version, a compute capability."""
    memory: int | None = None
    """Bytes of its memory; None if the driver does not tell."""
    software: bool = False
    """Whether the processor only plays this device. Such a device shows that programs are right. Its times say nothing
    of a real one: they are never ranked, and get no verdict and no floor."""


class RoofMeasurer(Protocol):
    """Measures a device's roof for the working sets and the dtype that it was made for."""

    def measure(self) -> Roof: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class DeviceKind:
    """What the suite can do with all devices that one name in a case file stands for.

    A function that is None cannot be had; `unmeasured` says why. One that is there may raise UnmeasuredError, where
    this machine lacks what it needs. The record has either reason.
    """

    name: str
    """`target.device` in a case file."""
    meaning: str
    """A sentence for readers of a case file."""
    install: str = ""
    """The command that installs a driver; empty if there is nothing to install."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What the environment of the suite's own process on the device must have before it begins."""
    everywhere: bool = False
    """Whether every machine has one."""
    describe: Callable[[], Device] | None = None
    """The device of this machine. Raises UnmeasuredError if there is none. None if only a backend can ask."""
    conditions: Callable[[], DeviceConditions] | None = None
    """Its clock, throttling, temperature, power and other processes now. Called in the suite's process, before and
    after each block."""
    open_energy: Callable[[], EnergyCounter] | None = None
    """Its counter of energy, opened. Called in the suite's process."""
    make_evictor: Callable[[], Callable[[], object]] | None = None
    """What empties its caches of what a call left there. Called in the process of the timed programs."""
    eviction_memory: Callable[[], int] = lambda: 0
    """Bytes of the host's memory that an evictor takes."""
    measure_roof: Callable[[Sequence[int], str, int], RoofMeasurer] | None = None
    """For working sets in bytes, a dtype and a number of threads. Called in a process of its own."""
    caches: Callable[[], Mapping[str, int]] = dict
    """Bytes of its caches by level, where they are known without a measurement."""
    roof_is_proven: bool = True
    """Whether its roof was seen to be one on such a device. Otherwise a latency below the floor accuses no program."""
    open_clock: Callable[[int], Callable[[Callable[[], object]], float]] | None = None
    """Of a stream of the device, by its handle: what gives the seconds from before the work that a call queues there to
    after it, by the device's own events. Called in the process of the timed programs."""
    driver_threads: int = 0
    """Threads of a runtime that carry calls to the device while the caller waits. They need cores of their own."""
    process_memory: Callable[[int], int] | None = None
    """Bytes that a process has on the device, by its PID, less those of an empty session. Called in the suite's
    process, while that process exists."""
    unmeasured: Mapping[Figure, str] = field(default_factory=dict)
    """Why the suite cannot measure a figure on any such device, by figure."""
