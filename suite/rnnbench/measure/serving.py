"""Calls that are due at given times: frames of real-time streams, and requests that arrive at random.

A latency here begins when the work is due, so it includes waiting in the queue. `serve` makes the calls one after the
other, as one core does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rnnbench.measure.blocks import undisturbed
from rnnbench.measure.disturbance import Disturbance, disturbance_since

WARM_CALLS = 2
"""Calls before the first due time, which only re-warm caches and are not counted."""
REQUESTS = 400
"""Requests of one process. Four of them are above the p99."""
MOST_TIMES_LONGER = 3.0
"""How many times longer than its schedule serving may take. After that the queue only grows."""
SETTLE_S = 0.001
"""Seconds from the end of the warm calls to the first due time."""


@dataclass(frozen=True)
class Served:
    """The result of serving work that was due at given times. Times are in seconds."""

    start: float
    """The first due time, since the epoch."""
    latencies: np.ndarray
    """For each finished piece of work, the seconds from its due time to its completion [done]."""
    due: int
    """Pieces of work in the schedule. Serving may end before all are done."""
    missed: int
    """Pieces that were complete later than their deadline."""
    busy: float
    """Seconds in calls."""
    elapsed: float
    """Seconds of the whole, the warm calls included."""
    disturbance: Disturbance | None = None

    @property
    def done(self) -> int:
        return len(self.latencies)

    @property
    def calls(self) -> int:
        """All calls, the warm ones included."""
        return WARM_CALLS + self.done


def frame_times(frames: int, period: float) -> np.ndarray:
    """The due times of the frames of streams, in seconds from the first one [frames]."""
    return np.arange(frames) * period


def arrival_times(requests: int, rate: float, seed: int) -> np.ndarray:
    """The arrival times of requests, in seconds from the start [requests]: a Poisson process of `rate` per second.

    The same seed gives the same schedule, so that all programs serve the same arrivals.
    """
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate, requests))


def longest_serving(rate: float) -> float:
    """Seconds after which serving the requests of one process ends."""
    return MOST_TIMES_LONGER * REQUESTS / rate


def serve(
    work: Callable[[], object],
    due: np.ndarray,
    *,
    deadline: float = math.inf,
    most_missed: int = 0,
    longest: float = math.inf,
) -> Served:
    """Do `work` at each time of `due` [pieces], in seconds from the start, or as soon as the previous work is done.

    Ends early if more than `most_missed` pieces are complete later than `deadline` seconds after they were due, or
    after `longest` seconds.
    """
    clock, sleep = time.perf_counter, time.sleep
    latencies: list[float] = []
    missed, busy = 0, 0.0
    with undisturbed() as before:
        entered = clock()
        for _ in range(WARM_CALLS):
            work()
        busy += clock() - entered
        origin, start = clock() + SETTLE_S, time.time() + SETTLE_S
        for at in (origin + due).tolist():
            sleep(max(0.0, at - clock()))
            begun = clock()
            work()
            after = clock()
            busy += after - begun
            latencies.append(after - at)
            missed += after - at > deadline
            if missed > most_missed or after - origin > longest:
                break
        elapsed = clock() - entered
    return Served(start, np.array(latencies), len(due), missed, busy, elapsed, disturbance_since(before))
