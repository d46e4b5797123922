"""Processes and the kernel: ending with the parent, killing a process with its family, kills for want of memory.

This module imports only Python's standard library and `process_tree`: a worker calls `die_with_parent` first.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import select
import signal
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from rnnbench.process_tree import all_processes, living_family, parent_of, read_unbuffered

MARK = "RNNBENCH_WORKER"
"""The environment variable with a worker's mark. All descendants inherit it, in any session.

All marks of one suite begin with the same text (`supervisor.suite_mark`).
"""
_MARKED_LIMIT = resource.RLIMIT_RTTIME
"""The resource limit that holds the mark too: a process that is started with another environment still inherits it.

It limits the microseconds that a real-time thread may run without a pause. As such
a limit, a mark is over a hundred thousand years, so it limits nothing.
"""
_BITS = 31
"""Bits of each of the two numbers in the limit: the suite's and the worker's."""
_ALL_BITS = (1 << _BITS) - 1
_OOM_SCORE, _MOST_OOM_SCORE = 500, 1000
"""Thousandths of the memory that are added to what a worker uses, and the most that the kernel takes."""
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SIG_DFL = 0
_CGROUP = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")
_VMSTAT = Path("/proc/vmstat")
KILL_LIMIT_S = 1.5
"""Seconds to wait for killed processes to end. A process that waits for a disk may take longer."""
LOOK_AGAIN_S = 0.1
"""The longest wait for killed processes to end, in seconds, before the next look: they may have forked others."""
_PAUSE_S = 0.002
"""Seconds between two looks where the kernel cannot tell when a process ends (pidfd_open(2), since Linux 5.3)."""


def die_with_parent(parent: int | None = None) -> None:
    """Have the kernel kill this process when its parent ends (prctl(2)). A forked child must call this again.

    Exits at once if `parent` has ended already.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent ends (prctl(2))."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def keep_ended_children() -> None:
    """Keep ended children of this process until they are waited for: stop ignoring SIGCHLD.

    If SIGCHLD is ignored, the kernel discards the status of an ended child (wait(2)). A process inherits this from its
    parent, and a library may set it. The C library is called, since Python's `signal` works in the main thread only.
    """
    ignored = re.search(r"^SigIgn:\s*(\w+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    if ignored and int(ignored[1], 16) >> (signal.SIGCHLD - 1) & 1:
        _LIBC.signal(int(signal.SIGCHLD), _SIG_DFL)


def bind_threads(pid: int, cores: Iterable[int]) -> None:
    """Bind every thread of a process to these cores. Threads that it starts later inherit them.

    Raises FileNotFoundError if the process has ended.
    """
    for thread in os.listdir(f"/proc/{pid}/task"):
        with suppress(ProcessLookupError):  # The thread has ended.
            os.sched_setaffinity(int(thread), cores)


def family(pid: int, mark: str) -> set[int]:
    """The process, its descendants, and the processes with `mark`. Processes that have ended are left out."""
    return living_family({pid, *marked(mark)})


def mark_process(process: int, mark: str) -> None:
    """Put `mark` into a resource limit of a process. What it starts inherits it, with any environment.

    If the limit cannot be set, only the environment variable has the mark.
    """
    suite, worker = _numbers(mark)
    with suppress(OSError, ValueError):
        hard = resource.prlimit(process, _MARKED_LIMIT)[1]
        resource.prlimit(process, _MARKED_LIMIT, (1 << 2 * _BITS | suite << _BITS | worker, hard))


def end_first_without_memory(process: int) -> None:
    """Where memory runs out, have the kernel end this process, or what it starts, before the suite (proc(5)).

    Otherwise it ends the largest process, which may be the suite or a program of somebody else.
    """
    score = Path(f"/proc/{process}/oom_score_adj")
    with suppress(OSError, ValueError):
        score.write_text(str(min(_MOST_OOM_SCORE, int(score.read_text()) + _OOM_SCORE)))


def marked(mark: str) -> set[int]:
    """The processes with this mark. `mark` is that of a worker, or the beginning that all marks of a suite share."""
    return {process for process in all_processes() if _has_variable(process, mark) or _has_limit(process, mark)}


def kill_all(processes: Collection[int]) -> None:
    """Kill these processes. Those that have ended or may not be killed are skipped."""
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def kill_until_gone(living: Callable[[], Collection[int]], limit_s: float = KILL_LIMIT_S) -> None:
    """Kill the processes that `living` returns, until it returns none: a process may fork while it is killed.

    It looks again once the killed processes have ended: a look reads files of every process of the machine. Stops after
    `limit_s` seconds.
    """
    until = time.monotonic() + limit_s
    while (left := living()) and (seconds := until - time.monotonic()) > 0:
        kill_and_wait(left, min(seconds, LOOK_AGAIN_S))


def kill_and_wait(processes: Collection[int], limit_s: float) -> None:
    """Kill these processes, and wait until all of them have ended, for `limit_s` seconds at most."""
    kill_all(processes)
    until = time.monotonic() + limit_s
    for process in processes:
        _wait_for_end(process, until)


def _wait_for_end(process: int, until: float) -> None:
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:  # It has ended, and was waited for.
        return
    except (OSError, AttributeError):  # The kernel lacks it, or had not got it when this Python was built.
        time.sleep(_PAUSE_S)
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(1000 * max(0.0, until - time.monotonic()))
    finally:
        os.close(descriptor)


def has_ended(child: int) -> bool:
    """Whether a child has ended. It stays a zombie until it is waited for, so its pid is not reused."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def signal_name(number: int) -> str:
    """The name of a signal, or `signal 40`: most real-time signals have no name."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


class OomKills:
    """Tells whether the kernel's out-of-memory killer has killed a process since this object was made."""

    def __init__(self) -> None:
        self._before = _oom_kills()

    def happened(self) -> bool:
        return _oom_kills() > self._before


def _oom_kills() -> int:
    """The kills in this process's control group and those below it, or on the machine if the group has no count."""
    for path in (*_memory_events(), _VMSTAT):
        try:
            counts = dict(line.split(maxsplit=1) for line in path.read_text().splitlines())
            return int(counts["oom_kill"])
        except (OSError, KeyError, ValueError):
            continue
    return 0


def _memory_events() -> Iterator[Path]:
    """The files of control groups, version 2 and 1, that count kills of the out-of-memory killer."""
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


def _has_variable(process: int, mark: str) -> bool:
    try:
        return f"\0{MARK}={mark}".encode() in b"\0" + read_unbuffered(f"/proc/{process}/environ")
    except OSError:
        return False


def _has_limit(process: int, mark: str) -> bool:
    """Whether a process has the mark in its limit. False for a zombie, which keeps its limits."""
    suite, worker = _numbers(mark)
    try:
        limit = resource.prlimit(process, _MARKED_LIMIT)[0]
    except OSError:
        return False
    if limit >> _BITS != 1 << _BITS | suite or (worker and limit & _ALL_BITS != worker):
        return False
    return parent_of(process) != 0


def _numbers(mark: str) -> tuple[int, int]:
    """The numbers of the suite and of the worker in a mark. The second is 0 if the mark is that of a whole suite."""
    suite, _, worker = mark.partition("-")
    return _number(suite), _number(worker) if worker else 0


def _number(text: str) -> int:
    return zlib.crc32(text.encode()) & _ALL_BITS
