"""The processor: the default device of a backend.

`rnnbench.measure` measures it: caches, roof, disturbance. `devices/rapl.py` reads its energy.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import cache

import psutil

from rnnbench import measure
from rnnbench.devices.device import Device, DeviceKind, RoofMeasurer, UnmeasuredError
from rnnbench.devices.rapl import open_rapl
from rnnbench.optional import MissingExtraError


@cache
def _describe() -> Device:
    return Device(
        name=measure.processor_model() or "processor",
        capability=platform.machine(),
        memory=psutil.virtual_memory().total,
    )


def _roof(working_sets: Sequence[int], dtype: str, threads: int) -> RoofMeasurer:
    try:
        return measure.RoofProbe(working_sets, dtype, threads)
    except MissingExtraError as error:
        raise UnmeasuredError(str(error)) from error


KIND = DeviceKind(
    name="cpu",
    meaning="the processor",
    everywhere=True,
    describe=_describe,
    open_energy=open_rapl,
    make_evictor=lambda: measure.Evictor(),
    eviction_memory=lambda: measure.eviction_bytes(),
    measure_roof=_roof,
    caches=lambda: measure.cache_sizes(),
)
"""The processor. Its memory is the host's. The worker reads its disturbances in each block (`measure/disturbance.py`).
"""
