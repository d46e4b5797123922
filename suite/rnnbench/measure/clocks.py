"""The clock that times calls: its resolution, its cost, and whether a program has replaced it."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import MappingProxyType

NEAR_CLOCK = 50
"""Calls shorter than this many times the clock's cost or resolution are timed several at once. The clock then adds at
most 2 %."""
COARSE_READINGS = 2_000_000
"""Readings in which a coarse clock must move twice: some tenths of a second."""
CLOCKS = MappingProxyType(
    {
        name: getattr(time, name)
        for name in (
            *("perf_counter_ns", "perf_counter", "time", "time_ns", "monotonic", "monotonic_ns"),
            *("process_time", "thread_time", "clock_gettime", "sleep"),
        )
    }
)
"""The clocks of Python's `time` as they were before any framework was imported. A program may replace them later."""


@dataclass(frozen=True)
class Clock:
    """The resolution of the clock that times calls, and the cost of reading it, in seconds."""

    resolution: float
    cost: float

    def calls_per_sample(self, seconds: float) -> int:
        """How many calls of `seconds` must be timed at once, so that the clock's cost need not be subtracted."""
        return max(1, math.ceil(NEAR_CLOCK * max(self.resolution, self.cost) / seconds))


@cache
def measure_clock() -> Clock:
    """The smallest step between two readings of the clock, and the median cost of a reading, over some thousands."""
    readings = [time.perf_counter_ns() for _ in range(10_000)]
    steps = [after - before for before, after in pairwise(readings)]
    smallest = min((step for step in steps if step), default=0) or _coarse_step()
    return Clock(resolution=smallest * 1e-9, cost=statistics.median(steps) * 1e-9)


def _coarse_step() -> int:
    """Nanoseconds between two changes of a coarse clock; some machines have one that moves every 4 ms.

    One second if it does not move twice in COARSE_READINGS readings.
    """
    earlier, changes = time.perf_counter_ns(), list[int]()
    for _ in range(COARSE_READINGS):
        now = time.perf_counter_ns()
        if now != earlier:
            changes.append(now)
            earlier = now
        if len(changes) == 2:
            return changes[1] - changes[0]
    return 10**9


def replaced_clocks() -> str:
    """The clocks that a program has replaced, such as `time.time, time.sleep`; empty if it replaced none."""
    return ", ".join(f"time.{name}" for name, clock in CLOCKS.items() if getattr(time, name, None) is not clock)


def put_clocks_back() -> None:
    """Restore the clocks of Python's `time`."""
    for name, clock in CLOCKS.items():
        setattr(time, name, clock)
