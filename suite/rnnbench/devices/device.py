"""A device as its driver describes it, and the functions that measure on devices of its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from rnnbench.measure import DeviceConditions, EnergyCounter, Roof
from rnnbench.outside_text import OutsideText

Figure = Literal["latency_floor", "cold", "device_memory", "device_conditions", "energy", "device_time"]
"""Figures that depend on the kind of device. In this order: the latency floor; calls with cold caches; the device's
memory; its clock and other disturbances; the energy of a step; the time of a call by the device's events."""


class UnmeasuredError(RuntimeError):
    """A figure cannot be measured on this device. The message is the reason, a sentence with its full stop."""


@dataclass(frozen=True)
class Device:
    """One device of a machine."""

    name: OutsideText
    driver: OutsideText = ""
    """The driver and its version; empty for the processor, which has none."""
    capability: OutsideText = ""
    """The target of compilers: an instruction set, an API's version, or a compute capability."""
    memory: int | None = None
    """Bytes of its memory; None if the driver does not report them."""
    software: bool = False
    """Whether this is a software device, which the processor emulates. Programs can be checked on it. Its times mean
    nothing for a real device: they are never ranked, and get no verdict and no floor."""


class RoofMeasurer(Protocol):
    """Measures a device's roof for the working sets and the dtype that it was made for."""

    def measure(self) -> Roof: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class DeviceKind:
    """A kind of device, by its name in case files, and the functions that measure on such devices.

    If a function is None, `unmeasured` says why. A function may raise UnmeasuredError if this machine lacks something.
    The record has the reason in both cases.
    """

    name: str
    """`target.device` in a case file."""
    meaning: str
    """What it is, for readers of a case file."""
    install: str = ""
    """The command that installs a driver; empty if there is nothing to install."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that a process of the suite must have before it uses the device."""
    everywhere: bool = False
    """Whether every machine has such a device."""
    describe: Callable[[], Device] | None = None
    """Describes the device of this machine. Raises UnmeasuredError if there is none. None if only backends can find it.
    """
    conditions: Callable[[], DeviceConditions] | None = None
    """Reads its clock, throttling, temperature, power and other processes. Called in the suite's process, before and
    after each block."""
    open_energy: Callable[[], EnergyCounter] | None = None
    """Opens its energy counter. Called in the suite's process."""
    make_evictor: Callable[[], Callable[[], object]] | None = None
    """Makes a function that empties its caches. Called in the process of the timed programs."""
    eviction_memory: Callable[[], int] = lambda: 0
    """Bytes of the host's memory that this function needs."""
    measure_roof: Callable[[Sequence[int], str, int], RoofMeasurer] | None = None
    """Makes a measurer for working sets in bytes, a dtype and a number of threads. Called in a process of its own."""
    caches: Callable[[], Mapping[str, int]] = dict
    """Bytes of its caches by level, if they are known without a measurement."""
    roof_is_proven: bool = True
    """Whether the roof was verified on such a device. Otherwise a latency below its floor is no finding."""
    open_clock: Callable[[int], Callable[[Callable[[], object]], float]] | None = None
    """Takes the handle of a stream. Returns a function that times the work which a call queues there, in seconds, by
    the device's own events. Called in the process of the timed programs."""
    open_stream: Callable[[], int] | None = None
    """Makes a stream of the device, and returns its handle. For runtimes that take one; called in the same process."""
    driver_threads: int = 0
    """Threads of a runtime that pass calls to the device while the caller waits. They need cores of their own."""
    worker_memory: int = 0
    """Bytes of the device that each process may take beside its program, such as a driver's context. An allowance."""
    process_memory: Callable[[int], int] | None = None
    """Reads the bytes of a process on the device, by its PID, less those of an empty session. Called in the suite's
    process, while that process exists."""
    unmeasured: Mapping[Figure, str] = field(default_factory=dict)
    """Each figure that the suite cannot measure on any such device, and why."""
