"""Whether the core was ours: what the kernel and the machine's host took of it during a spell of sampling."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

from rnnbench.measure.threads import scheduled

DISTURBED_SHARE = 0.005
"""Share of a block's time without the core from which it is marked: a quarter of the precision that is asked for by
default, below which what was taken hardly shows in a median."""
_STEAL_FIELD = 8
"""Of a processor's line in /proc/stat (proc_stat(5)), its name counted."""
_TICKS = os.sysconf("SC_CLK_TCK")
_SCHEDSTAT = Path("/proc/thread-self/schedstat")
_STAT = Path("/proc/stat")


@dataclass(frozen=True)
class Disturbance:
    """What was taken of the calling thread's core: how often, and for how many seconds."""

    switches: int
    """Times the kernel gave the core to another thread, be it of this process, although this one could go on."""
    waited: float | None
    """Seconds this thread was ready to go on, and had no core on account of other processes; None where the kernel
    keeps no such account."""
    stolen: float | None
    """Seconds the machine's host gave the core to others, in steps of 10 ms; None where there is no such account."""

    def disturbs(self, seconds: float) -> bool:
        """Whether a spell of `seconds` was disturbed enough to be marked."""
        if self.waited is None:
            return self.switches > 0 or bool(self.stolen)
        return self.waited + (self.stolen or 0.0) > DISTURBED_SHARE * seconds


@dataclass(frozen=True)
class Accounts:
    """Of the calling thread, since it began; of the cores it is held to, since the machine did."""

    switches: int
    waited: float | None
    """Seconds this thread was ready to go on and had no core, whoever had it."""
    stolen: float | None
    beside: float
    """CPU seconds of this process's other threads."""
    at: float


def accounts_so_far() -> Accounts:
    return Accounts(
        switches=resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw,
        waited=_waited(),
        stolen=_stolen(),
        beside=time.process_time() - time.thread_time(),
        at=time.perf_counter(),
    )


def disturbance_since(before: Accounts) -> Disturbance:
    """What has been added to the accounts since they stood as `before`.

    A runtime whose own threads take turns on the core is not disturbed by them: what they ran counts as theirs, as far
    as the other cores of the process could not have held it.
    """
    now = accounts_so_far()
    waited = _difference(now.waited, before.waited)
    if waited is not None:
        elsewhere = (len(os.sched_getaffinity(0)) - 1) * (now.at - before.at)
        waited = max(0.0, waited - max(0.0, now.beside - before.beside - elsewhere))
    return Disturbance(now.switches - before.switches, waited, _difference(now.stolen, before.stolen))


def _difference(now: float | None, before: float | None) -> float | None:
    return None if now is None or before is None else now - before


def _waited() -> float | None:
    account = scheduled(_SCHEDSTAT)
    return None if account is None else account[1]


def _stolen() -> float | None:
    cores = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    try:
        lines = [line.split() for line in _STAT.read_text().splitlines()]
    except OSError:
        return None
    steal = [int(fields[_STEAL_FIELD]) for fields in lines if fields[0] in cores and len(fields) > _STEAL_FIELD]
    return sum(steal) / _TICKS if steal else None
