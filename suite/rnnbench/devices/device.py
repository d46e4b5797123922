"""A device as its driver describes it, and what the suite knows of all devices of its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from rnnbench.outside_text import OutsideText

Figure = Literal["latency_floor", "cold", "device_memory"]
"""Figures that depend on the kind of device: the floor of a latency, calls with empty caches, a device's own memory."""


@dataclass(frozen=True)
class Device:
    """One device of a machine."""

    name: OutsideText
    driver: OutsideText = ""
    """The driver and its version; empty for the processor, which has none."""
    capability: OutsideText = ""
    """What programs are compiled for: an instruction set, an API's version, a compute capability."""
    memory: int | None = None
    """Bytes of its memory; None where the driver does not tell."""
    software: bool = False
    """Whether the processor only plays this device. Such a device shows that programs are right. Its times say nothing
    of a real one: they are never ranked, and get no verdict and no floor."""


@dataclass(frozen=True)
class DeviceKind:
    """What the suite knows of all devices that one name in a case file stands for."""

    name: str
    """`target.device` in a case file."""
    meaning: str
    """A sentence for readers of a case file."""
    install: str = ""
    """The command that installs a driver; empty where there is nothing to install."""
    describe: Callable[[], Device] | None = None
    """The device, where every machine has just one. None where a driver must be asked."""
    unmeasured: Mapping[Figure, str] = field(default_factory=dict)
    """Why the suite cannot measure a figure on such a device, by figure."""
