"""How steady a core is now: whether the same work takes the same time, again and again.

The load and the time that the host takes do not show everything. Other virtual machines of one host share its caches,
and its cores where these have two threads each.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import closing

from rnnbench.measure.caches import cache_sizes
from rnnbench.measure.roof import Roof, RoofProbe

SHARE = 0.9
"""The share of readings that a scatter contains."""
BEYOND_L2 = 8
"""A working set of L3, in sizes of L2: so large that L2 holds little of it."""


def measure_scatter(seconds: float) -> dict[str, float]:
    """The scatter of a core's speed, by work: `arithmetic`, and reading from `L2` and `L3`.

    A scatter is relative: SHARE of the readings differ from their median by at most this. Readings take `seconds`. They
    run on the last core of this process, as trials do. A cache that the kernel does not report has no scatter. Raises
    MissingExtraError without llvmlite.
    """
    works = dict(_working_sets(cache_sizes()))
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [max(cores)])
    try:
        readings: list[Roof] = []
        with closing(RoofProbe(tuple(works.values()), "float32", 1)) as probe:
            end = time.perf_counter() + seconds
            while not readings or time.perf_counter() < end:
                readings.append(probe.measure())
    finally:
        os.sched_setaffinity(0, cores)
    arithmetic = [reading.rate for reading in readings if reading.rate is not None]
    speeds = {name: [reading.bandwidth[size] for reading in readings] for name, size in works.items()}
    return {name: scatter_of(values) for name, values in {"arithmetic": arithmetic, **speeds}.items()}


def scatter_of(speeds: list[float]) -> float:
    """The share of their median by which SHARE of the speeds differ from it at most."""
    median = statistics.median(speeds)
    differences = sorted(abs(speed / median - 1) for speed in speeds)
    return differences[round(SHARE * (len(differences) - 1))]


def _working_sets(caches: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Bytes that are read from a cache, by its name."""
    l2, l3 = caches.get("L2"), caches.get("L3")
    if l2:
        yield "L2", l2 // 2
    if l2 and l3:
        yield "L3", min(BEYOND_L2 * l2, l3 // 2)
