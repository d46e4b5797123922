"""Metrics: figures of a worker's process, of the energy of its calls, and of its device's clock. Each is declared once.

The record has each under its name, and tables and rows have a column for each. To add a metric, add one entry.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rnnbench.measure.descendants import children_of_this_process
from rnnbench.measure.energy import EnergyUse
from rnnbench.measure.paths import Setting

When = Literal["loaded", "sampled"]
ENERGY = Setting(
    "energy",
    "flag",
    "Whether to measure the energy of a step too, in a block of a second or more in each process.",
)
"""The key of `measure:` that asks for the metrics of energy."""
DEVICE_TIME, STATE_COPY = "device_time", "state_copy"
"""The names, in a record's `unmeasured`, of the time by the device's clock and of the state's round trip."""


@dataclass(frozen=True)
class Metric:
    """One figure of a worker's process, or of the energy that its device used."""

    name: str
    """Key in the record."""
    title: str
    """Column in a table."""
    unit: Literal["count", "bytes", "seconds", "joules", "watts"]
    meaning: str
    """A sentence for readers of a report."""
    when: When | None = None
    """When `read` is called: `loaded` is after the load and first calls, `sampled` after the timed calls. None for a
    metric of energy or of the device's clock."""
    read: Callable[[], float] = lambda: math.nan
    """Reads the metric from the process."""
    of_energy: Callable[[EnergyUse, int], float] | None = None
    """Computes the metric from a block's energy and the time steps of a call."""
    of_device: Callable[[float, int], float] | None = None
    """Computes the metric from the seconds of a call by the device's clock, and the time steps of a call."""


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            name="open_files",
            title="open files",
            unit="count",
            meaning="Open file descriptors of the process once the program was loaded and called.",
            when="loaded",
            read=lambda: len(os.listdir("/proc/self/fd")),
        ),
        Metric(
            name="child_processes",
            title="child processes",
            unit="count",
            meaning="Processes that the runtime has started and that still run once calls were timed.",
            when="sampled",
            read=lambda: len(children_of_this_process()),
        ),
        Metric(
            name="energy_per_step",
            title="energy/step",
            unit="joules",
            meaning="Energy of the whole device per time step of bound calls, what it uses at rest included.",
            of_energy=EnergyUse.per_step,
        ),
        Metric(
            name="energy_power",
            title="power",
            unit="watts",
            meaning="Power of the whole device while these calls ran.",
            of_energy=lambda use, _: use.power,
        ),
        Metric(
            name="device_time_per_step",
            title="device/step",
            unit="seconds",
            meaning="Time per step of a bound call by events of the device itself, its waits for the host included.",
            of_device=lambda seconds, chunk: seconds / chunk,
        ),
    )
}


def read_metrics(when: When) -> dict[str, float]:
    """The metrics that are read at this moment, by name."""
    return {metric.name: metric.read() for metric in METRICS.values() if metric.when == when}


def energy_metrics(uses: Sequence[EnergyUse], chunk: int) -> dict[str, float]:
    """The metrics of energy by name, as medians over the processes; none if there are no `uses`."""
    return {
        metric.name: statistics.median(metric.of_energy(use, chunk) for use in uses)
        for metric in METRICS.values()
        if metric.of_energy and uses
    }


def device_metrics(seconds: float, chunk: int) -> dict[str, float]:
    """The metrics of a bound call that took `seconds` by the device's clock, by name."""
    return {metric.name: metric.of_device(seconds, chunk) for metric in METRICS.values() if metric.of_device}
