"""The lock of a run in progress. The kernel releases it when the process that holds it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from weakref import WeakValueDictionary

from rnnbench.disk import open_own
from rnnbench.locks import holder_of, note_holder
from rnnbench.results import StoreError, compress_records

LOCK = "run.lock"
"""The locked file. It names the process that locked it last, and is not removed."""


class RunLock:
    """Holds a run's lock while it exists. Workers do not inherit it."""

    def __init__(self, folder: Path) -> None:
        """Raises StoreError if another process holds it, or the file cannot be written."""
        self._descriptor = -1
        path = folder / LOCK
        try:
            self._descriptor = open_own(path, os.O_RDWR)
            _lock(self._descriptor, folder)
            note_holder(self._descriptor)
        except OSError as error:
            advice = "make it writable, and see that its disk has room"
            raise StoreError(f"cannot write {path}: {error.strerror or error}; {advice}") from error

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


_held: WeakValueDictionary[Path, RunLock] = WeakValueDictionary()
"""The locks of this process, by folder."""


def hold_run(folder: Path) -> RunLock:
    """Lock a run. This process holds the lock as long as it keeps the returned value.

    Raises StoreError if another process holds it.
    """
    key = folder.resolve()
    lock = _held.get(key)
    if lock is None:
        lock = _held[key] = RunLock(folder)
    return lock


def move_lock(before: Path, folder: Path) -> None:
    """Note that the folder of a run whose lock this process holds was renamed."""
    _held[folder.resolve()] = _held.pop(before.resolve())


def compress_run(folder: Path) -> tuple[int, int] | None:
    """Compress the records of a run that is not in progress. Returns the bytes before and after.

    Returns None if they are compressed already. Raises StoreError, also if another process holds the run.
    """
    lock = hold_run(folder)
    sizes = compress_records(folder)
    del lock
    return sizes


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = holder_of(folder / LOCK)
        raise StoreError(
            f"{folder} is in progress: {holder} runs it; wait until it has ended, or end it, and resume the run then"
        ) from error
    except OSError:
        return  # The file system has no locks, so a second run cannot be noticed.
