"""What belongs to this process and is outside of it: its descendants, and memory files that it does not map."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from rnnbench.process_tree import descendants

_SEGMENTS = Path("/dev/shm")
_MEMORY_FILE = "/memfd:"
"""The beginning of the path of an anonymous file in memory."""
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, OSError)


def read_holdings() -> dict[str, int]:
    """The numbers of this process's descriptors, threads, children and segments of shared memory."""
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "children": len(children_of_this_process()),
        "shared segments": SEGMENTS.held(),
    }


def children_of_this_process() -> list[psutil.Process]:
    """The running descendants of this process. Takes microseconds if it has no child."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return []
    return [child for pid in descendants(os.getpid()) if (child := _running(pid)) is not None]


def private_bytes(processes: list[psutil.Process]) -> int:
    """Resident bytes that each process has for itself. Pages shared with the parent count for the parent only."""
    return sum(map(_private, processes))


def private_peak(processes: list[psutil.Process]) -> int:
    """As `private_bytes`, with each process at its own peak."""
    return sum(_private(process) + _above_now(process) for process in processes)


class SharedSegments:
    """The segments of shared memory (shm_overview(7)) of this process and its descendants, made since this was created.

    The kernel does not say who made a file in /dev/shm. So a segment counts once this process or a descendant was seen
    to hold it. Others may belong to other programs.
    """

    def __init__(self) -> None:
        self._before = frozenset(_segments())
        self._own: set[tuple[str, int]] = set()
        """The segments that were seen in use here. They still count after nobody holds them."""
        self._since = time.time()

    def nbytes(self) -> int:
        """Bytes of all segments."""
        return sum(self._bytes_by_segment().values())

    def held(self) -> int:
        """The number of segments that this process or a descendant maps or has open."""
        files = self._bytes_by_segment()
        return len(set(files) & _held_by(_family())) if files else 0

    def unmapped(self) -> int:
        """Bytes of segments that are in no process's resident bytes: neither this process nor exactly one child maps
        them."""
        files = self._bytes_by_segment()
        if not files:
            return 0
        own, *children = (_mapped(pid) for pid in _family())
        return sum(size for path, size in files.items() if path not in own and sum(path in c for c in children) != 1)

    def _bytes_by_segment(self) -> dict[str, int]:
        """Bytes of each segment, by path."""
        new = {key: f"{_SEGMENTS}/{key[0]}" for key in _segments() if key not in self._before}
        if not new.keys() <= self._own:
            held = _held_by(_family())
            self._own |= {key for key, path in new.items() if path in held and self._is_recent(path)}
        files = {}
        for key in new.keys() & self._own:
            with suppress(OSError):
                files[new[key]] = Path(new[key]).stat().st_blocks * 512
        return files

    def _is_recent(self, path: str) -> bool:
        with suppress(OSError):
            return Path(path).stat().st_ctime >= self._since - 1
        return False


def unmapped_memory_files() -> int:
    """Bytes of anonymous files in memory (memfd_create(2)) that this process or a descendant has open, and none maps.

    They are in no process's resident bytes.
    """
    sizes: dict[int, int] = {}
    family = _family()
    for descriptor, file in (held for pid in family for held in _open_files(pid)):
        if file.startswith(_MEMORY_FILE):
            with suppress(OSError):
                status = os.stat(descriptor)
                sizes[status.st_ino] = status.st_blocks * 512
    if not sizes:
        return 0
    mapped = {inode for pid in family for inode in _mapped_memory_files(pid)}
    return sum(size for inode, size in sizes.items() if inode not in mapped)


def _mapped_memory_files(pid: int) -> Iterator[int]:
    """Inodes of the memory files that a process maps. The fifth field of a line is the inode (proc_pid_maps(5))."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
            if f" {_MEMORY_FILE}" in line:
                yield int(line.split(maxsplit=5)[4])


def _segments() -> Iterator[tuple[str, int]]:
    """Name and inode of each segment on the machine."""
    with suppress(OSError), os.scandir(_SEGMENTS) as entries:
        yield from ((entry.name, entry.inode()) for entry in entries)


def _family() -> list[int]:
    """The ids of this process and its descendants."""
    return [os.getpid(), *(child.pid for child in children_of_this_process())]


def _held_by(pids: Iterable[int]) -> set[str]:
    """Paths of the segments that these processes map, and of all files that they have open."""
    held = set[str]()
    for pid in pids:
        held |= _mapped(pid)
        held.update(file for _, file in _open_files(pid))
    return held


def _open_files(pid: int) -> Iterator[tuple[str, str]]:
    """The path of each descriptor of a process, and the path of its file."""
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


def _running(pid: int) -> psutil.Process | None:
    """The process; None if it has ended."""
    with suppress(*_GONE):
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None


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
"""The segments made since this process imported the suite."""
