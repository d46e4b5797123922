"""What the kernel is asked about processes: who ends with whom, who descends from whom, who was killed for memory.

It imports nothing but Python's library: a worker calls `die_with_parent` before anything else.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import signal
import time
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

MARK = "RNNBENCH_WORKER"
"""A variable that every worker's environment has, and so that of all its descendants, in whatever session they are.

Its value begins with what all workers of one suite share (`supervisor.suite_mark`).
"""
_MARKED_LIMIT = resource.RLIMIT_RTTIME
"""A limit that has the mark too: a process that is started with an environment of its own inherits it.

It is on the microseconds that a real-time thread may run without a pause. Ours is of a hundred thousand years.
"""
_BITS = 31
"""Of each of the two numbers in it: of the suite, and of the worker."""
_ALL_BITS = (1 << _BITS) - 1
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SIG_DFL = 0
_CGROUP = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")
_VMSTAT = Path("/proc/vmstat")
_KILL_AGAIN_S = 0.002
"""Seconds between two looks at what is left of the processes that are killed."""


def die_with_parent(parent: int | None = None) -> None:
    """The kernel kills this process when its parent ends (prctl(2)). A forked child has to ask for it again.

    A process whose `parent` has ended already ends at once.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Processes that descend from this one stay its descendants when their own parent ends (prctl(2))."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def keep_ended_children() -> None:
    """Children of this process stay until they are waited for, also where SIGCHLD is ignored.

    A process inherits that from whoever started it, and a library may ask for it. The kernel then forgets at once how
    a child has ended (wait(2)). Python's `signal` can be used in the main thread alone.
    """
    ignored = re.search(r"^SigIgn:\s*(\w+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    if ignored and int(ignored[1], 16) >> (signal.SIGCHLD - 1) & 1:
        _LIBC.signal(int(signal.SIGCHLD), _SIG_DFL)


def family(pid: int, mark: str) -> set[int]:
    """The process, its descendants, and those with `mark`. Without those that have ended."""
    parents = {process: _parent(process) for process in _processes()}
    found = {pid, *marked(mark)}
    grown = True
    while grown:
        more = {process for process, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return {process for process in found if parents.get(process)}


def descendants(pid: int) -> set[int]:
    """The processes that descend from this one, by the lists of children that the kernel keeps (proc(5)).

    One that ends meanwhile may hide others until the next look. Raises OSError for a process that has ended, and on
    a kernel without these lists (CONFIG_PROC_CHILDREN).
    """
    found = {*_children(pid)}
    waiting = [*found]
    while waiting:
        with suppress(OSError):  # It has ended since its parent was read.
            new = {*_children(waiting.pop())} - found
            found |= new
            waiting += new
    return found


def mark_process(process: int, mark: str) -> None:
    """From now on what a process starts is found by `mark`, also where it has an environment of its own.

    Where the limit cannot be set, the variable alone has the mark.
    """
    suite, worker = _numbers(mark)
    with suppress(OSError, ValueError):
        hard = resource.prlimit(process, _MARKED_LIMIT)[1]
        resource.prlimit(process, _MARKED_LIMIT, (1 << 2 * _BITS | suite << _BITS | worker, hard))


def marked(mark: str) -> set[int]:
    """All processes whose mark begins so: it is that of a worker, or what all of one suite share."""
    return {process for process in _processes() if _is_marked(process, mark)}


def kill_all(processes: Collection[int]) -> None:
    """Kill these processes, as far as they are there and may be killed."""
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def kill_until_gone(living: Callable[[], Collection[int]], limit_s: float) -> None:
    """Kill the processes that `living` gives, again and again until it gives none: what is killed may be forking.

    Goes on for `limit_s` seconds at most. A process that waits for a disk may take longer to end.
    """
    until = time.monotonic() + limit_s
    while (left := living()) and time.monotonic() < until:
        kill_all(left)
        time.sleep(_KILL_AGAIN_S)


def signal_name(number: int) -> str:
    """Most of the real-time signals have no name."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


class OomKills:
    """The processes that the kernel has killed for want of memory: whether there are more than at the start."""

    def __init__(self) -> None:
        self._before = _oom_kills()

    def happened(self) -> bool:
        return _oom_kills() > self._before


def _oom_kills() -> int:
    """Of this process's control group and those below it; of the machine where the group does not tell."""
    for path in (*_memory_events(), _VMSTAT):
        try:
            counts = dict(line.split(maxsplit=1) for line in path.read_text().splitlines())
            return int(counts["oom_kill"])
        except (OSError, KeyError, ValueError):
            continue
    return 0


def _memory_events() -> Iterator[Path]:
    """The files of control groups, version 2 and 1, that count such kills."""
    try:
        lines = _CGROUP.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield _CGROUPS / path.lstrip("/") / "memory.events"
        elif controllers == "memory":
            yield _CGROUPS / "memory" / path.lstrip("/") / "memory.oom_control"


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _children(process: int) -> Iterator[int]:
    """Each of its threads has a list."""
    for thread in os.listdir(f"/proc/{process}/task"):
        yield from map(int, _read(f"/proc/{process}/task/{thread}/children").split())


def _parent(process: int) -> int:
    """0 where it has ended, is a zombie, or has no parent."""
    try:
        stat = _read(f"/proc/{process}/stat")
    except OSError:
        return 0
    state, parent = stat[stat.rindex(b")") + 2 :].split()[:2]
    return 0 if state in b"ZX" else int(parent)


def _is_marked(process: int, mark: str) -> bool:
    return _has_variable(process, mark) or _has_limit(process, mark)


def _has_variable(process: int, mark: str) -> bool:
    try:
        return f"\0{MARK}={mark}".encode() in b"\0" + _read(f"/proc/{process}/environ")
    except OSError:
        return False


def _has_limit(process: int, mark: str) -> bool:
    """False for a zombie, which keeps its limits."""
    suite, worker = _numbers(mark)
    try:
        limit = resource.prlimit(process, _MARKED_LIMIT)[0]
    except OSError:
        return False
    if limit >> _BITS != 1 << _BITS | suite or (worker and limit & _ALL_BITS != worker):
        return False
    return _parent(process) != 0


def _numbers(mark: str) -> tuple[int, int]:
    """Those of the suite and of the worker; 0 for the second where the mark is that of a whole suite."""
    suite, _, worker = mark.partition("-")
    return _number(suite), _number(worker) if worker else 0


def _number(text: str) -> int:
    return zlib.crc32(text.encode()) & _ALL_BITS


def _read(path: str) -> bytes:
    """Hundreds of these files are read whenever a worker ends."""
    with open(path, "rb", buffering=0) as file:
        return file.read()
