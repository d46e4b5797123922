"""Whether the core was ours: what the kernel and the machine's host took of it during a spell of sampling."""

from __future__ import annotations

import os
import resource
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
    """Times the kernel gave the core to another thread although this one could go on."""
    waited: float | None
    """Seconds this thread was ready to go on and had no core; None where the kernel keeps no such account."""
    stolen: float | None
    """Seconds the machine's host gave the core to others, in steps of 10 ms; None where there is no such account."""

    def disturbs(self, seconds: float) -> bool:
        """Whether a spell of `seconds` was disturbed enough to be marked."""
        if self.waited is None:
            return self.switches > 0 or bool(self.stolen)
        return self.waited + (self.stolen or 0.0) > DISTURBED_SHARE * seconds


def disturbance_so_far() -> Disturbance:
    """The accounts of the calling thread and of the cores it is held to, since they were opened."""
    return Disturbance(
        switches=resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw, waited=_waited(), stolen=_stolen()
    )


def disturbance_since(before: Disturbance) -> Disturbance:
    """What has been added to the accounts since they stood as `before`."""
    now = disturbance_so_far()
    return Disturbance(
        switches=now.switches - before.switches,
        waited=_difference(now.waited, before.waited),
        stolen=_difference(now.stolen, before.stolen),
    )


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
