"""CPU time of a process and of all that descends from it, as the kernel tells others. The process cannot change it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Set
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_CPU_CLOCK = 2
"""The kind of a process's clock that counts nanoseconds on a core (`CPUCLOCK_SCHED`, clock_getcpuclockid(3))."""
_CHILDREN_TIMES = slice(13, 15)
"""`cutime` and `cstime` in /proc/<pid>/stat after the name (proc_pid_stat(5)): children that ended."""


def family_cpu_seconds(pid: int) -> float:
    """CPU seconds of a process, of its children that ended, and of its descendants that live."""
    return _ended_children(pid) + sum(map(_cpu_seconds, (pid, *_descendants(pid))))


def family_tasks(pid: int) -> set[int]:
    """The threads of a process and of its descendants that live, by their ids."""
    return {int(task.name) for process in (pid, *_descendants(pid)) for task in _tasks(process)}


def cpu_seconds_beyond(cores: Set[int], tasks: Iterable[int]) -> float:
    """CPU seconds, since their start, of those of these threads that may run on a core that is not one of these."""
    seconds = 0.0
    for task in tasks:
        try:
            if not os.sched_getaffinity(task) <= cores:
                seconds += int(Path(f"/proc/{task}/schedstat").read_text().split()[0]) * 1e-9
        except OSError:  # It has ended, or the kernel does not count what threads do.
            continue
    return seconds


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
    for task in _tasks(pid):
        try:
            children = (task / "children").read_text()
        except OSError:
            continue
        for child in map(int, children.split()):
            yield child
            yield from _descendants(child)


def _tasks(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []
