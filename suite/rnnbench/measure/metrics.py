"""Metrics: figures that a worker reads off its own process. A metric is declared here once, and nowhere else.

The record keeps each under its name, tables and rows have a column for each. To add a metric, add one entry.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import psutil

When = Literal["loaded", "sampled"]


@dataclass(frozen=True)
class Metric:
    """One figure of a worker's process."""

    name: str
    """Key in the record."""
    title: str
    """Column in a table."""
    unit: Literal["count", "bytes", "seconds"]
    meaning: str
    """A sentence for readers of a report."""
    when: When
    """`loaded`: once the program was loaded and called. `sampled`: once its calls were timed."""
    read: Callable[[], float]


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
            read=lambda: len(psutil.Process().children(recursive=True)),
        ),
    )
}


def read_metrics(when: When) -> dict[str, float]:
    """The metrics of that moment, by name."""
    return {metric.name: metric.read() for metric in METRICS.values() if metric.when == when}
