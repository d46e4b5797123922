"""Calls that are due at given times: frames of real-time streams, and requests that arrive at random.

A latency here begins when the work is due, not when it begins: work that waits in the queue has waited. `serve` makes
the calls one after the other, as one core does.
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
"""Requests of one process: a p99 has four above it."""
MOST_TIMES_LONGER = 3.0
"""How many times longer than its schedule serving may take. A queue that long only grows."""
SETTLE_S = 0.001
"""Seconds from the end of these to the first due time."""


@dataclass(frozen=True)
class Served:
    """What became of the work that was due. Times are in seconds."""

    start: float
    """Since the epoch, at the first due time."""
    latencies: np.ndarray
    """Of each piece of work that was done: from its due time to its completion [done]."""
    due: int
    """Pieces of work that were asked for. Serving may end before all are done."""
    missed: int
    """How many were complete later than their deadline."""
    busy: float
    """In calls."""
    elapsed: float
    """Of the whole, with the calls that are not counted."""
    disturbance: Disturbance | None = None

    @property
    def done(self) -> int:
        return len(self.latencies)

    @property
    def calls(self) -> int:
        """With those that are not counted."""
        return WARM_CALLS + self.done


def frame_times(frames: int, period: float) -> np.ndarray:
    """Due times of the frames of streams, in seconds from the first one [frames]."""
    return np.arange(frames) * period


def arrival_times(requests: int, rate: float, seed: int) -> np.ndarray:
    """Seconds from the start at which requests arrive [requests]: a Poisson process of `rate` a second.

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
    """Do `work` at each due time [pieces], in seconds from the start, or as soon after it as the work before is done.

    It ends early where more than `most_missed` are complete later than `deadline` seconds after they were due, or
    where it has taken `longest` seconds.
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
