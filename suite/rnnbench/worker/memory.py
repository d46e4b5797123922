"""The resident memory of a worker and its descendants, read by the suite."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

import psutil

from rnnbench.process_tree import descendants

POLL_S = 0.1
"""Least seconds between two looks for descendants."""


class ResidentMemory:
    """Resident bytes of a process and its descendants. Pages that they share count for each."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._descendants: list[psutil.Process] = []
        self._looked = 0.0

    def read(self, *, look: bool = False) -> int:
        """Resident bytes now; 0 for a process that has ended.

        The list of descendants is at most POLL_S old. With `look` it is read anew.
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
        """Proportional bytes now: a page that processes share is divided among them. Some 10 ms per GiB slower.

        While a process starts a program, it is forked, and `read` counts all of its pages twice for a moment.
        """
        try:
            process = psutil.Process(self._pid)
            return sum(map(_proportional, (process, *_descendants(process))))
        except psutil.NoSuchProcess:
            return 0


def _descendants(process: psutil.Process) -> Iterator[psutil.Process]:
    for pid in descendants(process.pid):
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
