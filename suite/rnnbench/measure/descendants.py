"""What a process has outside of itself: the processes that descend from it, and memory files that it does not map."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

_SEGMENTS = Path("/dev/shm")
_MEMORY_FILE = "/memfd:"
"""How the path of an anonymous file in memory begins."""
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, OSError)


def read_holdings() -> dict[str, int]:
    """How many descriptors, threads, children and segments of shared memory this process has."""
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "children": len(children_of_this_process()),
        "shared segments": SEGMENTS.held(),
    }


def children_of_this_process() -> list[psutil.Process]:
    """Those that descend from this process and run. Takes microseconds where it has no child."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return []
    return [child for child in psutil.Process().children(recursive=True) if _runs(child)]


def private_bytes(processes: list[psutil.Process]) -> int:
    """Resident bytes that only one of them has. What a child shares with its parent is in the parent's own."""
    return sum(map(_private, processes))


def private_peak(processes: list[psutil.Process]) -> int:
    """The same, with each at its own peak."""
    return sum(_private(process) + _above_now(process) for process in processes)


class SharedSegments:
    """Segments of shared memory (shm_overview(7)) that were made since this was created, and that this process or a
    descendant was seen to hold.

    The kernel does not say who made a file in /dev/shm. One that nobody here was seen to hold may be a neighbour's.
    """

    def __init__(self) -> None:
        self._before = frozenset(_segments())
        self._own: set[tuple[str, int]] = set()
        """Those that were seen in use here. They stay so once nobody holds them any more."""
        self._since = time.time()

    def nbytes(self) -> int:
        """Bytes of them."""
        return sum(self._made().values())

    def held(self) -> int:
        """How many of them this process or a descendant maps or has open."""
        made = self._made()
        return len(set(made) & _held_by(_family())) if made else 0

    def unmapped(self) -> int:
        """Bytes of those that no resident bytes contain: this process does not map them, and no child alone does."""
        made = self._made()
        if not made:
            return 0
        own, *children = (_mapped(pid) for pid in _family())
        return sum(size for path, size in made.items() if path not in own and sum(path in c for c in children) != 1)

    def _made(self) -> dict[str, int]:
        """Bytes of each, by path."""
        new = {key: f"{_SEGMENTS}/{key[0]}" for key in _segments() if key not in self._before}
        if not new.keys() <= self._own:
            held = _held_by(_family())
            self._own |= {key for key, path in new.items() if path in held and self._is_recent(path)}
        made = {}
        for key in new.keys() & self._own:
            with suppress(OSError):
                made[new[key]] = Path(new[key]).stat().st_blocks * 512
        return made

    def _is_recent(self, path: str) -> bool:
        with suppress(OSError):
            return Path(path).stat().st_ctime >= self._since - 1
        return False


def unmapped_memory_files() -> int:
    """Bytes of anonymous files in memory (memfd_create(2)) that this process or a descendant has open, and none maps.

    What is written into one is in no process's resident bytes.
    """
    sizes: dict[int, int] = {}
    family = _family()
    for descriptor, file in (each for pid in family for each in _open_files(pid)):
        if file.startswith(_MEMORY_FILE):
            with suppress(OSError):
                status = os.stat(descriptor)
                sizes[status.st_ino] = status.st_blocks * 512
    if not sizes:
        return 0
    mapped = {inode for pid in family for inode in _mapped_memory_files(pid)}
    return sum(size for inode, size in sizes.items() if inode not in mapped)


def _mapped_memory_files(pid: int) -> Iterator[int]:
    """Inodes of those that a process maps. The fifth field of a line is the inode (proc_pid_maps(5))."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
            if f" {_MEMORY_FILE}" in line:
                yield int(line.split(maxsplit=5)[4])


def _segments() -> Iterator[tuple[str, int]]:
    """Name and inode of each."""
    with suppress(OSError), os.scandir(_SEGMENTS) as entries:
        yield from ((entry.name, entry.inode()) for entry in entries)


def _family() -> list[int]:
    """This process, and those that descend from it."""
    return [os.getpid(), *(child.pid for child in children_of_this_process())]


def _held_by(pids: Iterable[int]) -> set[str]:
    """Paths of the segments that they map or have open."""
    held = set[str]()
    for pid in pids:
        held |= _mapped(pid)
        held.update(file for _, file in _open_files(pid))
    return held


def _open_files(pid: int) -> Iterator[tuple[str, str]]:
    """The path of each descriptor of a process, and what it leads to."""
    with suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            descriptor = f"/proc/{pid}/fd/{number}"
            with suppress(OSError):
                yield descriptor, os.readlink(descriptor)


def _mapped(pid: int) -> frozenset[str]:
    """Paths of the segments that a process maps."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
        return frozenset(line[line.index("/") :] for line in lines if f" {_SEGMENTS}/" in line)
    return frozenset()


def _runs(process: psutil.Process) -> bool:
    with suppress(*_GONE):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def _private(process: psutil.Process) -> int:
    with suppress(*_GONE):
        return int(process.memory_full_info().uss)
    return 0


def _above_now(process: psutil.Process) -> int:
    """By how many bytes its peak was above what it has resident now."""
    with suppress(*_GONE):
        status = Path(f"/proc/{process.pid}/status").read_text()
        peak, now = (int(status.partition(f"\n{name}:")[2].split(maxsplit=1)[0]) for name in ("VmHWM", "VmRSS"))
        return max(0, peak - now) * 1024
    return 0


SEGMENTS = SharedSegments()
"""Those made since this process imported the suite."""
