"""What a process has outside of itself: the processes that descend from it, and shared memory that it does not map."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

_SEGMENTS = Path("/dev/shm")
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, OSError)


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
    """Segments of shared memory (shm_overview(7)) that were made since this was created."""

    def __init__(self) -> None:
        self._before = frozenset(_segments())
        self._others: set[tuple[str, int]] = set()
        """Segments that a process of another family was seen to hold."""
        self._since = time.time()

    def nbytes(self) -> int:
        """Bytes of those that this process's family made, or that nobody holds any more."""
        return sum(size for _, size in self._made())

    def unmapped(self) -> int:
        """Bytes of those that no resident bytes contain: this process maps them not, and no single child alone."""
        made = self._made()
        if not made:
            return 0
        children = [_mapped(child.pid) for child in children_of_this_process()]
        own = _mapped(os.getpid())
        return sum(size for path, size in made if path not in own and sum(path in maps for maps in children) != 1)

    def _made(self) -> list[tuple[str, int]]:
        """Path and bytes of each."""
        new = [key for key in _segments() if key not in self._before and key not in self._others]
        made = []
        for name, inode in new:
            path = _SEGMENTS / name
            with suppress(OSError):
                status = path.stat()
                if status.st_uid != os.geteuid() or status.st_ctime < self._since - 1 or self._is_foreign(path):
                    self._others.add((name, inode))
                else:
                    made.append((str(path), status.st_blocks * 512))
        return made

    def _is_foreign(self, path: Path) -> bool:
        family = {os.getpid(), *(child.pid for child in children_of_this_process())}
        holders = {pid for pid in psutil.pids() if _holds(pid, str(path))}
        return bool(holders) and not holders & family


def _segments() -> Iterator[tuple[str, int]]:
    """Name and inode of each."""
    with suppress(OSError), os.scandir(_SEGMENTS) as entries:
        yield from ((entry.name, entry.inode()) for entry in entries)


def _holds(pid: int, path: str) -> bool:
    if path in _mapped(pid):
        return True
    with suppress(OSError):
        return any(os.readlink(f"/proc/{pid}/fd/{number}") == path for number in os.listdir(f"/proc/{pid}/fd"))
    return False


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
