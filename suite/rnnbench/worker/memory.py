"""What a worker and its descendants have resident, as the suite sees it from outside."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

import psutil

from rnnbench.worker.kernel import descendants

POLL_S = 0.1
"""Least seconds between two looks for descendants."""


class ResidentMemory:
    """Resident bytes of a process and its descendants. Pages that they share count for each."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._descendants: list[psutil.Process] = []
        self._looked = 0.0

    def read(self, *, look: bool = False) -> int:
        """Bytes now, of the descendants that were seen POLL_S ago at most, or with `look`, of those there are now.

        0 for a process that has ended.
        """
        try:
            process = psutil.Process(self._pid)
            if look or time.monotonic() - self._looked >= POLL_S:
                self._descendants = list(_descendants(process))
                self._looked = time.monotonic()
        except psutil.NoSuchProcess:
            return 0
        return sum(map(_resident, (process, *self._descendants)))

    def read_shared_once(self) -> int:
        """Bytes now, pages that processes share divided among them. Slower than `read`, by some 10 ms a GiB.

        A process that starts a program is forked for that, and both have all of its pages for a moment.
        """
        try:
            process = psutil.Process(self._pid)
            return sum(map(_proportional, (process, *_descendants(process))))
        except psutil.NoSuchProcess:
            return 0


def _descendants(process: psutil.Process) -> Iterator[psutil.Process]:
    """By the kernel's lists of children; on a kernel without them by a look at all of /proc, which takes 3 ms.

    Raises NoSuchProcess.
    """
    try:
        found = descendants(process.pid)
    except OSError:
        yield from process.children(recursive=True)
        return
    for pid in found:
        with suppress(psutil.NoSuchProcess):
            yield psutil.Process(pid)


def _resident(process: psutil.Process) -> int:
    with suppress(psutil.NoSuchProcess):
        return int(process.memory_info().rss)
    return 0


def _proportional(process: psutil.Process) -> int:
    with suppress(psutil.NoSuchProcess):
        try:
            return int(process.memory_full_info().pss)
        except psutil.AccessDenied:
            return _resident(process)
    return 0
