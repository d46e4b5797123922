"""The processor: the device of every backend that names no others."""

from __future__ import annotations

import platform
from functools import cache

import psutil

from rnnbench.devices.device import Device, DeviceKind
from rnnbench.measure import processor_model


@cache
def _describe() -> Device:
    return Device(
        name=processor_model() or "processor", capability=platform.machine(), memory=psutil.virtual_memory().total
    )


KIND = DeviceKind(name="cpu", meaning="The processor.", describe=_describe)
