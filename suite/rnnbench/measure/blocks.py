"""Timing calls one by one, in short blocks: warm, cold, and at the pace of a stream. Knows callables, not backends."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from rnnbench.measure.device_conditions import DeviceSpell
from rnnbench.measure.disturbance import CoreCounters, Disturbance, disturbance_since, read_core_counters

WARM_SHARE = 0.2
"""Least share of a block for calls that only re-warm caches and branch predictors, and are not counted."""
WARM_ENOUGH_S = 0.005
"""Seconds that are always enough for re-warming, if calls get no faster."""
WARM_LIMIT_S = 0.03
"""Most seconds of re-warming. After other programs ran, an unrolled program of 7 MB gets faster for 7 calls and 13 ms,
and a program with calls of 4 ms for 25 ms."""
WARM_WINDOW_S = 0.0003
"""Seconds of one window: calls get faster if a window is faster than earlier ones. A longer call is its own window."""
FASTER = 0.02
"""Relative change by which a window must be faster than all earlier ones to show that calls still get faster."""
SETTLED_WINDOWS = 2
"""Windows in a row that are not faster, after which calls have settled. A single one may have been disturbed."""


@dataclass(frozen=True)
class Block:
    """One block of calls that are timed one by one, or `calls_per_sample` at once."""

    start: float
    """Seconds since the epoch at the first counted call."""
    warm_calls: int
    """Calls that were not counted."""
    seconds: np.ndarray
    """Seconds per call of each sample."""
    calls_per_sample: int = 1
    elapsed: float = 0.0
    """Seconds of the whole block, calls that are not counted included."""
    disturbance: Disturbance | None = None
    missed: int = 0
    """Calls of a paced block that were not complete when the next one was due."""
    device: DeviceSpell | None = None
    """The device before and after the block, if its kind reports its state."""

    @property
    def calls(self) -> int:
        return self.warm_calls + self.calls_per_sample * len(self.seconds)

    @property
    def disturbed(self) -> bool:
        of_core = self.disturbance is not None and self.disturbance.disturbs(self.elapsed)
        return of_core or (self.device is not None and self.device.disturbs)


def sample_block(
    call: Callable[[], object],
    sync: Callable[[], object],
    seconds: float,
    *,
    calls_per_sample: int = 1,
    rewarm: bool = True,
) -> Block:
    """Time calls, each completed by `sync`, for about `seconds`; at least one sample is taken.

    Unless `rewarm` is false, the first calls are not counted until calls get no faster, since other programs ran
    before. The counted calls then take at least as long as these.
    """
    clock, time_of_day = time.perf_counter_ns, time.time  # Read once: a call may replace them in `time`.
    with undisturbed() as before:
        begun = clock()
        end = begun + int(seconds * 1e9)
        warm_calls = 0
        if rewarm:
            warm_calls = _rewarm(call, sync, begun + int(min(seconds * WARM_SHARE, WARM_ENOUGH_S) * 1e9), clock)
            warmed = clock()
            end = max(end, 2 * warmed - begun)
        start = time_of_day()
        times, after = _time_calls(call, sync, end, calls_per_sample, clock)
    return Block(
        start,
        warm_calls,
        np.array(times) * (1e-9 / calls_per_sample),
        calls_per_sample,
        elapsed=(after - begun) * 1e-9,
        disturbance=disturbance_since(before),
    )


def _rewarm(call: Callable[[], object], sync: Callable[[], object], until: int, clock: Callable[[], int]) -> int:
    """Call until the time `until`, in nanoseconds, and then until calls get no faster, at most for WARM_LIMIT_S.

    Returns the number of calls, at least 1.
    """
    now = clock()
    limit = now + int(WARM_LIMIT_S * 1e9)
    calls, unchanged, fastest = 0, 0, math.inf
    while now < until or (unchanged < SETTLED_WINDOWS and now < limit):
        begun, window_calls = now, 0
        while not window_calls or now - begun < WARM_WINDOW_S * 1e9:
            call()
            sync()
            window_calls += 1
            now = clock()
        calls += window_calls
        mean = (now - begun) / window_calls
        unchanged = 0 if mean < fastest * (1 - FASTER) else unchanged + 1
        fastest = min(fastest, mean)
    return calls


def _time_calls(
    call: Callable[[], object], sync: Callable[[], object], end: int, calls_per_sample: int, clock: Callable[[], int]
) -> tuple[list[int], int]:
    """Nanoseconds of each sample until the time `end`, at least one; and the time after the last one."""
    times: list[int] = []
    append = times.append
    after = 0
    if calls_per_sample == 1:
        while after < end:
            earlier = clock()
            call()
            sync()
            after = clock()
            append(after - earlier)
    else:
        while after < end:
            earlier = clock()
            for _ in repeat(None, calls_per_sample):
                call()
                sync()
            after = clock()
            append(after - earlier)
    return times, after


def sample_cold(
    call: Callable[[], object], sync: Callable[[], object], evict: Callable[[], object], seconds: float
) -> Block:
    """Time calls, each after a call of `evict`, for about `seconds`, evictions included; at least one."""
    clock = time.perf_counter_ns
    times: list[int] = []
    with undisturbed() as before:
        begun, start = clock(), time.time()
        end = begun + int(seconds * 1e9)
        after = 0
        while after < end:
            evict()
            earlier = clock()
            call()
            sync()
            after = clock()
            times.append(after - earlier)
    return Block(
        start, 0, np.array(times) * 1e-9, elapsed=(after - begun) * 1e-9, disturbance=disturbance_since(before)
    )


def sample_paced(call: Callable[[], object], sync: Callable[[], object], period: float, seconds: float) -> Block:
    """Time calls that begin `period` apart, as a stream's do, for about `seconds`. The first is not counted.

    Due times are absolute, so a call that begins or wakes late has less time left. A call that is not complete when the
    next one is due has missed its deadline, and the next one begins at once.
    """
    clock, sleep = time.perf_counter_ns, time.sleep
    times: list[int] = []
    missed = 0
    with undisturbed() as before:
        begun = clock()
        call()
        sync()
        start, step = time.time(), int(period * 1e9)
        due, end = clock() + step, begun + int(seconds * 1e9)
        after = 0
        while after < end:
            sleep(max(0, due - clock()) * 1e-9)
            earlier = clock()
            call()
            sync()
            after = clock()
            times.append(after - earlier)
            due += step
            missed += after > due
    return Block(
        start,
        1,
        np.array(times) * 1e-9,
        elapsed=(after - begun) * 1e-9,
        disturbance=disturbance_since(before),
        missed=missed,
    )


@contextmanager
def undisturbed() -> Iterator[CoreCounters]:
    """Switch Python's garbage collector off. Yields the counters of the core at the start."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield read_core_counters()
    finally:
        if collecting:
            gc.enable()


def process_medians(processes: Sequence[Sequence[Block]]) -> list[float]:
    """The median of each process over all of its calls, in seconds."""
    return [float(np.median(np.concatenate([block.seconds for block in blocks]))) for blocks in processes]


def overall_median(processes: Sequence[Sequence[Block]]) -> float:
    """The median over the calls of all processes, in seconds."""
    return float(np.median(np.concatenate([block.seconds for blocks in processes for block in blocks])))
