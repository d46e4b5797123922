"""Disturbances of sampling: the time in which other processes or the machine's host had the core."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

from rnnbench.measure.threads import scheduler_seconds

DISTURBED_SHARE = 0.005
"""A block is marked as disturbed if it was without the core for more than this share of its time. The share is a
quarter of the default precision: less than that hardly shows in a median."""
_STEAL_FIELD = 8
"""Index of `steal` in a processor's line of /proc/stat (proc_stat(5)). Index 0 is its name."""
_TICKS = os.sysconf("SC_CLK_TCK")
_SCHEDSTAT = Path("/proc/thread-self/schedstat")
_STAT = Path("/proc/stat")


@dataclass(frozen=True)
class Disturbance:
    """How often, and for how many seconds, the calling thread was without its core."""

    switches: int
    """How often the kernel gave the core to another thread of any process, although this one was ready to run."""
    waited: float | None
    """Seconds in which this thread was ready to run and other processes had the core; None if the kernel does not count
    them."""
    stolen: float | None
    """Seconds in which the machine's host gave the core to others, in steps of 10 ms; None if they are not counted."""

    def disturbs(self, seconds: float) -> bool:
        """Whether an interval of `seconds` was disturbed enough to be marked."""
        if self.waited is None:
            return self.switches > 0 or bool(self.stolen)
        return self.waited + (self.stolen or 0.0) > DISTURBED_SHARE * seconds


@dataclass(frozen=True)
class ThreadCounters:
    """The kernel's counters of the calling thread since its start."""

    waited: float | None
    """Seconds in which this thread was ready to run and had no core."""
    other_threads_s: float
    """CPU seconds of this process's other threads."""
    time: float
    """When they were read, by the performance counter."""


@dataclass(frozen=True)
class CoreCounters:
    """The counters of the calling thread, and those of its cores since the machine's start."""

    switches: int
    stolen: float | None
    thread: ThreadCounters


def read_thread_counters() -> ThreadCounters:
    return ThreadCounters(
        waited=_waited(), other_threads_s=time.process_time() - time.thread_time(), time=time.perf_counter()
    )


def read_core_counters() -> CoreCounters:
    switches = resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
    return CoreCounters(switches, stolen=_stolen(), thread=read_thread_counters())


def waited_since(before: ThreadCounters) -> float | None:
    """Seconds since `before` in which this thread was ready to run and other processes had the core.

    The process's own threads are no disturbance: their CPU time is subtracted, as far as the other cores of the process
    could not have run them. None if the kernel does not count these seconds.
    """
    now = read_thread_counters()
    waited = _difference(now.waited, before.waited)
    if waited is None:
        return None
    on_other_cores = (len(os.sched_getaffinity(0)) - 1) * (now.time - before.time)
    other_threads_s = now.other_threads_s - before.other_threads_s
    return max(0.0, waited - max(0.0, other_threads_s - on_other_cores))


def disturbance_since(before: CoreCounters) -> Disturbance:
    """The disturbance since the counters were read as `before`."""
    switches = resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw - before.switches
    return Disturbance(switches, waited_since(before.thread), _difference(_stolen(), before.stolen))


def _difference(now: float | None, before: float | None) -> float | None:
    return None if now is None or before is None else now - before


def _waited() -> float | None:
    seconds = scheduler_seconds(_SCHEDSTAT)
    return None if seconds is None else seconds[1]


def _stolen() -> float | None:
    cores = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    try:
        lines = [line.split() for line in _STAT.read_text().splitlines()]
    except OSError:
        return None
    steal = [int(fields[_STEAL_FIELD]) for fields in lines if fields[0] in cores and len(fields) > _STEAL_FIELD]
    return sum(steal) / _TICKS if steal else None
