"""The busy threads of this process, from their CPU time as the Linux kernel counts it (proc(5))."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

BUSY_SHARE = 0.05
"""A thread counts as busy above this share of the busiest thread's CPU time. Below it only does housekeeping."""
_TASKS = Path("/proc/self/task")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> dict[int, float]:
    """CPU seconds of every thread since its start, by thread id."""
    return {int(task.name): seconds for task in _TASKS.iterdir() if (seconds := _cpu_seconds(task)) is not None}


def _cpu_seconds(task: Path) -> float | None:
    """CPU seconds of a thread; None if it has ended. Without scheduler statistics the resolution is 10 ms."""
    with suppress(FileNotFoundError, ProcessLookupError):
        if seconds := scheduler_seconds(task / "schedstat"):
            return seconds[0]
        user, system = (task / "stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) * _TICK_S
    return None


def scheduler_seconds(schedstat: Path) -> tuple[float, float] | None:
    """Seconds that a thread ran, and that it waited for a core. None if the kernel does not count them.

    A kernel whose scheduler statistics are switched off gives zeros (`proc_pid_schedstat`).
    """
    try:
        ran, waited = (int(field) * 1e-9 for field in schedstat.read_text().split()[:2])
    except OSError:
        return None
    return (ran, waited) if ran > 0 else None


class ThreadTimes:
    """CPU time by thread, over all watched intervals."""

    def __init__(self) -> None:
        self._used: defaultdict[int, float] = defaultdict(float)

    @contextmanager
    def watched(self) -> Iterator[None]:
        before = cpu_seconds()
        yield
        for thread, seconds in cpu_seconds().items():
            self._used[thread] += seconds - before.get(thread, 0.0)

    @property
    def busy(self) -> int | None:
        """How many threads were busy. None if the kernel's count, in ticks on some machines, saw none run."""
        busiest = max(self._used.values(), default=0)
        return sum(used > BUSY_SHARE * busiest for used in self._used.values()) or None
