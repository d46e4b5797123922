"""The CPU time of a process and its descendants, as the kernel reports it to other processes. The process cannot fake
it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Set
from pathlib import Path

from rnnbench.process_tree import descendants

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_CPU_CLOCK = 2
"""The kind of process clock that counts nanoseconds on a core (`CPUCLOCK_SCHED`, clock_getcpuclockid(3))."""
_CHILDREN_TIMES = slice(13, 15)
"""The fields `cutime` and `cstime` of /proc/<pid>/stat after the name (proc_pid_stat(5)): of children that ended."""


def family_cpu_seconds(pid: int) -> float:
    """CPU seconds of a process, of its children that ended, and of its living descendants."""
    return _ended_children(pid) + sum(map(_cpu_seconds, (pid, *descendants(pid))))


def family_tasks(pid: int) -> set[int]:
    """The ids of the threads of a process and its living descendants."""
    return {int(task.name) for process in (pid, *descendants(pid)) for task in _tasks(process)}


def cpu_seconds_beyond(cores: Set[int], tasks: Iterable[int]) -> float:
    """CPU seconds of those threads among `tasks`, since their start, that may run on other cores than `cores`."""
    seconds = 0.0
    for task in tasks:
        try:
            if not os.sched_getaffinity(task) <= cores:
                seconds += int(Path(f"/proc/{task}/schedstat").read_text().split()[0]) * 1e-9
        except OSError:  # The thread has ended, or the kernel does not count the time of threads.
            continue
    return seconds


def _cpu_seconds(pid: int) -> float:
    """CPU seconds of a process; 0 if it has ended."""
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


def _tasks(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []
