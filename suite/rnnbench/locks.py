"""Locks of files, and who holds them. The kernel drops a lock with the process that holds it, however that ends."""

from __future__ import annotations

import errno
import fcntl
import math
import os
import re
import shlex
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Timer

from rnnbench.disk import open_own, read_plain
from rnnbench.outside_text import one_line

SILENT_S = 1.0
"""Seconds that a command waits for a lock without a word. Nearly every lock is held for less."""
LOOK_S = 0.02
"""Seconds between two looks whether a lock is free."""
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP})
"""Errors of a file system without locks: Lustre as it is often mounted, and NFS without its lock service."""
_NOTE_LIMIT = 400
"""Characters of a note that are shown. A command may have many options."""


class LockHeldError(TimeoutError):
    """Another process holds a lock for longer than one waits for it: it may have been stopped."""


@contextmanager
def locked(path: Path, *, wait: bool = True, shared: bool = False, patience_s: float = math.inf) -> Iterator[None]:
    """Hold the lock of this file for the block. The file is made if it is absent, and stays.

    Several processes may hold it at once if all are `shared`. After a second of waiting, a line on standard error says
    who holds it. If another process holds it, raises BlockingIOError without `wait`, and LockHeldError after
    `patience_s` seconds. Raises OSError if the path is no plain file.

    On a file system without locks, other processes are not noticed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = open_own(path, os.O_RDWR)
    try:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            _lock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise
            with _said_if_long(path):
                _wait_for(descriptor, kind, path, patience_s)
        with suppress(OSError):  # A full disk has no room for the note. The lock is as good without it.
            os.ftruncate(descriptor, 0) if shared else note_holder(descriptor)
        try:
            yield
        finally:
            if not shared:
                with suppress(OSError):
                    os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, kind: int) -> None:
    try:
        fcntl.flock(descriptor, kind)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise


def _wait_for(descriptor: int, kind: int, path: Path, patience_s: float) -> None:
    """Lock it once it is free. The kernel has no limit for this, so a limited wait looks now and then."""
    if patience_s == math.inf:
        fcntl.flock(descriptor, kind)
        return
    until = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise LockHeldError(errno.ETIMEDOUT, f"held by {holder_of(path)}", str(path)) from None
            time.sleep(LOOK_S)
        else:
            return


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of this folder for the block. No file is made in it.

    After a second of waiting, a line on standard error says so. Raises OSError if the path is no folder.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with _said_if_long(folder):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            pass  # The file system has no locks of folders, so a second process cannot be noticed.
        yield
    finally:
        os.close(descriptor)


def is_free(folder: Path) -> bool:
    """Whether no process holds the lock of this folder. False where the file system has no locks of folders.

    Raises OSError where it is no folder, or a link to one.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def note_holder(descriptor: int) -> None:
    """Write into a locked file who holds it: for those that wait, or are refused. Raises OSError."""
    os.ftruncate(descriptor, 0)
    since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    note = f"process {os.getpid()} on {socket.gethostname()} ({_command()}; since {since})"
    os.pwrite(descriptor, f"{one_line(note, _NOTE_LIMIT)}\n".encode(), 0)


def holder_of(path: Path) -> str:
    """Who holds the lock of this file, as its note says. Says of a stopped process how it goes on."""
    try:
        note = one_line(read_plain(path).decode(errors="replace").strip(), _NOTE_LIMIT)
    except OSError:
        note = ""
    holder = re.match(r"process (\d+) on (\S+) ", note)
    if holder is not None and holder[2] == socket.gethostname() and _is_stopped(holder[1]):
        note = f"{note.removesuffix(')')}; it is stopped: `kill -CONT {holder[1]}` lets it go on)"
    return note or "another process"


@contextmanager
def _said_if_long(path: Path) -> Iterator[None]:
    """Say on standard error who holds the lock, once this has taken SILENT_S seconds."""
    timer = Timer(SILENT_S, _say, [path])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say(path: Path) -> None:
    text = f"waiting for the lock {one_line(str(path))}, held by {holder_of(path)}; this goes on once it is free"
    with suppress(OSError, ValueError):  # Nobody reads it.
        print(text, file=sys.stderr, flush=True)


def _command() -> str:
    """The command of this process, as a person gives it."""
    program = Path(sys.argv[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    return shlex.join([name, *sys.argv[1:]])


def _is_stopped(process: str) -> bool:
    """Whether the kernel says that a process of this machine is stopped, as by Ctrl-Z."""
    try:
        status = Path("/proc", process, "stat").read_text(errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[:1] == ["T"]
