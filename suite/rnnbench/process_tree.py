"""Processes and their descendants, as the kernel lists them in /proc (proc(5)).

This module imports only Python's standard library: a worker uses it before anything else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

LISTS_CHILDREN = os.path.exists("/proc/thread-self/children")
"""Whether the kernel lists the children of each thread (`CONFIG_PROC_CHILDREN`)."""


def descendants(pid: int) -> set[int]:
    """The descendants of a process; none if the process has ended.

    A descendant that has ended counts until its parent waits for it. If a process ends during the search, its
    descendants may be missing until the next call. On a kernel without lists of children, the parents of all processes
    are read, which takes some 3 ms, and descendants that have ended are left out.
    """
    if not LISTS_CHILDREN:
        return living_family({pid}) - {pid}
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        new = {*_children(waiting.pop())} - found
        found |= new
        waiting += new
    return found


def living_descendants(pid: int) -> set[int]:
    """As `descendants`, without those that have ended. It reads files of these processes alone."""
    return {process for process in descendants(pid) if parent_of(process)}


def living_family(roots: Iterable[int]) -> set[int]:
    """The processes `roots` and all their descendants, without those that have ended. Reads all processes' parents."""
    parents = {process: parent_of(process) for process in all_processes()}
    family = set(roots)
    grown = True
    while grown:
        more = {process for process, parent in parents.items() if parent in family} - family
        family |= more
        grown = bool(more)
    return {process for process in family if parents.get(process)}


def all_processes() -> list[int]:
    """The ids of all processes."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def parent_of(process: int) -> int:
    """The parent of a process; 0 if the process has ended, is a zombie, or has no parent."""
    state, parent = _state_and_parent(process)
    return 0 if state in b"ZX" else parent


def is_stopped(pid: int) -> bool:
    """Whether a process or one of its descendants is stopped, by a signal or a debugger."""
    return any(_state_and_parent(process)[0] in b"Tt" for process in (pid, *descendants(pid)))


def read_unbuffered(path: str) -> bytes:
    """The bytes of a file, without a buffer: hundreds of these files are read whenever a worker ends."""
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _state_and_parent(process: int) -> tuple[bytes, int]:
    """The letter of a process's state, and its parent. One that has ended has the state X."""
    try:
        stat = read_unbuffered(f"/proc/{process}/stat")
    except OSError:
        return b"X", 0
    state, parent = stat[stat.rindex(b")") + 2 :].split()[:2]
    return state, int(parent)


def _children(process: int) -> Iterator[int]:
    """The children of a process: each of its threads has a list."""
    with suppress(OSError):  # The process has ended.
        for thread in os.listdir(f"/proc/{process}/task"):
            with suppress(OSError):  # The thread has ended.
                yield from map(int, read_unbuffered(f"/proc/{process}/task/{thread}/children").split())
