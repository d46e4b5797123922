"""Waiting for what another process does: as long as a slow machine may need, and no longer than it takes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing.process import BaseProcess
from threading import Thread

import psutil
import pytest

PATIENCE_S = 300.0
"""Seconds after which what a test waits for is taken never to come."""
LONG_S = 7200.0
"""The same of a command of a proof that installs packages, or measures as many trials as a user would."""
SLOW_S = 0.3
"""What `slow_waits` adds to each wait."""


def wait_until(happened: Callable[[], bool], what: str, process: subprocess.Popen[str] | None = None) -> None:
    """Look until it has happened. Fails with `what`, or at once where the process that should do it has ended.

    A process that has ended may have done it after a look and before it was seen to have ended: one more look follows.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        if process is not None and process.poll() is not None:
            assert happened(), f"{what}: {process.communicate(timeout=PATIENCE_S)}"
            return
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def join(*others: Thread | BaseProcess) -> None:
    """Wait for the end of each. Fails where one of them does not end."""
    deadline = time.monotonic() + PATIENCE_S
    for other in others:
        other.join(max(0.0, deadline - time.monotonic()))
        assert not other.is_alive(), f"{other.name} does not end"


def started_from_now() -> Callable[[], list[psutil.Process]]:
    """What gives the children of this process that were started after this call. Earlier tests may have left others."""
    before = set(psutil.Process().children(recursive=True))
    return lambda: [process for process in psutil.Process().children(recursive=True) if process not in before]


def ended(processes: Iterable[psutil.Process]) -> bool:
    """Whether none of them runs; one that is only waited for by nobody has ended."""
    return not any(map(_runs, processes))


def has_ended(number: int) -> bool:
    """Whether no process of this number runs."""
    try:
        return ended([psutil.Process(number)])
    except psutil.NoSuchProcess:
        return True


def slow_waits(patch: pytest.MonkeyPatch) -> list[int]:
    """From now on waiting for a forked process takes long, so that two threads would be at it at once.

    Gives the numbers of those that were waited for, one for each wait.
    """
    wait, waited = os.waitpid, list[int]()

    def slow(process: int, options: int) -> tuple[int, int]:
        waited.append(process)
        time.sleep(SLOW_S)
        return wait(process, options)

    patch.setattr(os, "waitpid", slow)
    return waited


def statuses(processes: Iterable[psutil.Process]) -> list[str]:
    """The status of each that is there. One may end while the others are looked at."""
    found = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            found.append(process.status())
    return found


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
