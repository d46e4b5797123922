"""CPU time of a process and of all that descends from it, as the kernel tells others. The process cannot change it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_CPU_CLOCK = 2
"""The kind of a process's clock that counts nanoseconds on a core (`CPUCLOCK_SCHED`, clock_getcpuclockid(3))."""
_CHILDREN_TIMES = slice(13, 15)
"""`cutime` and `cstime` in /proc/<pid>/stat after the name (proc_pid_stat(5)): children that ended."""


def family_cpu_seconds(pid: int) -> float:
    """CPU seconds of a process, of its children that ended, and of its descendants that live."""
    return _ended_children(pid) + sum(map(_cpu_seconds, (pid, *_descendants(pid))))


def _cpu_seconds(pid: int) -> float:
    """0 for a process that has ended."""
    try:
        return time.clock_gettime((~pid << 3) | _CPU_CLOCK)
    except OSError:
        return 0.0


def _ended_children(pid: int) -> float:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    return sum(map(int, stat.rpartition(")")[2].split()[_CHILDREN_TIMES])) * _TICK_S


def _descendants(pid: int) -> Iterator[int]:
    """None are found where the kernel does not list children (`CONFIG_PROC_CHILDREN`)."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return
    for task in tasks:
        try:
            children = (task / "children").read_text()
        except OSError:
            continue
        for child in map(int, children.split()):
            yield child
            yield from _descendants(child)
