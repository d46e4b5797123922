"""The supervisor: a process that kills what the suite leaves running when it is killed, and removes temporary files.

The kernel ends each worker with the suite (`process_family.die_with_parent`), but not the compilers that workers have
started. The supervisor waits for the end of the suite, and then kills every process with the suite's mark.
"""

from __future__ import annotations

import atexit
import errno
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from rnnbench.disk import remove_folder
from rnnbench.temporary import HeldFolder, TemporaryFolder
from rnnbench.worker.process_family import kill_all, marked, signal_name

SUITE = uuid.uuid4().hex
"""What `suite_mark` returns."""
LIMIT_S = 10.0
"""Seconds after which it stops killing processes that do not end. A process that waits for a disk ends later."""
PAUSE_S = 0.02
"""Seconds between two looks for processes."""
LOOKS = 3
"""Looks in a row that find nothing before it ends: a process has no mark for a moment while it calls exec."""
STARTS = 3
"""Times that a supervisor is started if it is killed before it has begun."""
_OF_FORK = frozenset({errno.EAGAIN, errno.ENOMEM})
"""Errors of fork(2)."""
_ROOT = str(Path(__file__).parents[2])
_PROGRAM = (
    "import os, sys\n"
    "try: child = os.fork()\n"
    "except OSError as error: os._exit(error.errno)\n"
    "if child: os._exit(0)\n"
    "sys.path.append(sys.argv[1])\n"
    "from rnnbench.worker.supervisor import main\n"
    "main(*sys.argv[2:])\n"
)
"""It forks and exits, so that the supervisor is no child of the suite: code that waits for all children would hang.

Its status is the number of the error if it cannot fork.
"""


class _Supervisor:
    """The suite's side: a pipe whose other end the supervisor reads. The kernel closes it when the suite ends."""

    def __init__(self, temporary: HeldFolder) -> None:
        self.temporary = temporary
        reading, self._writing = os.pipe()
        command = [sys.executable, "-I", "-S", "-c", _PROGRAM, _ROOT, SUITE, str(self.temporary.path or "")]
        try:
            subprocess.run(
                command,
                stdin=reading,
                pass_fds=temporary.descriptors,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                check=True,
            )
        except BaseException:
            os.close(self._writing)
            raise
        finally:
            os.close(reading)

    @property
    def is_alive(self) -> bool:
        poll = select.poll()
        poll.register(self._writing, 0)
        return not poll.poll(0)

    def close(self) -> None:
        os.close(self._writing)


_lock = Lock()
_supervisor: _Supervisor | None = None


def suite_mark() -> str:
    """The beginning of the marks of all workers that this process starts. A fork of this process has another one."""
    return SUITE


def new_mark() -> str:
    """A new mark, by which the descendants of one process are found. It begins with the mark of this suite."""
    return f"{suite_mark()}-{uuid.uuid4().hex}"


def _begin_anew() -> None:
    """Give a fork of the suite its own mark: with a shared one, the end of one would kill the other's processes.

    Its copy of the pipe is closed, or the parent's supervisor would wait for the end of both.
    """
    global SUITE, _supervisor, _lock
    if _supervisor is not None:
        with suppress(OSError):
            _supervisor.close()
        _supervisor.temporary.release()
    SUITE, _supervisor, _lock = uuid.uuid4().hex, None, Lock()


os.register_at_fork(after_in_child=_begin_anew)


def supervise() -> TemporaryFolder:
    """Start a supervisor of this process, unless one runs.

    Returns a folder for the temporary files of the next process. The supervisor removes it if nobody else did.
    """
    with _lock:
        return TemporaryFolder(_running().temporary.path)


def _running() -> _Supervisor:
    """The supervisor, whose folder is there. Another one takes the place of one that was killed."""
    global _supervisor
    if _supervisor is None:
        _supervisor = _started(HeldFolder())
    elif not _supervisor.is_alive:
        _supervisor.close()
        _supervisor = _started(_supervisor.temporary)
    _supervisor.temporary.keep()
    return _supervisor


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder for temporary files of this process. It is removed afterwards, even if the process is killed.

    Raises OSError if the disk is full or broken.
    """
    outer = supervise()
    try:
        with tempfile.TemporaryDirectory(dir=outer.path, ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    finally:
        outer.remove()


@atexit.register
def _remove_the_folder() -> None:
    """At the end of the suite, so that a kill of the supervisor in its last moments leaves nothing.

    What a process that still runs makes afterwards is for the supervisor.
    """
    if _supervisor is not None:
        with suppress(OSError):
            _running().temporary.remove()


def _started(temporary: HeldFolder) -> _Supervisor:
    """Start a supervisor. If it is killed while it starts, another one is started.

    If none starts, as after an interrupt, the folder is removed: nobody else would do it. Raises OSError where a limit
    of processes or of memory is reached.
    """
    with temporary.removed_on_failure():
        for _ in range(STARTS - 1):
            with suppress(subprocess.CalledProcessError):
                return _Supervisor(temporary)
        try:
            return _Supervisor(temporary)
        except subprocess.CalledProcessError as error:
            raise _of_a_limit(error.returncode) from error


def _of_a_limit(status: int) -> OSError:
    """Why no supervisor starts: it could not fork, or the kernel or its interpreter has ended it each time."""
    if status in _OF_FORK:
        return OSError(status, os.strerror(status))
    died = f"died of {signal_name(-status)}" if status < 0 else f"exited with status {status}"
    return OSError(errno.ENOMEM, f"the process that cleans up behind this command {died}, {STARTS} times")


def main(suite: str, temporary: str) -> None:
    """Wait until standard input ends, which means that the suite has ended. Then kill the processes with its mark.

    Then remove the folder `temporary`, unless its name is empty.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.read(0, 1)
    until, looks = time.monotonic() + LIMIT_S, 0
    while looks < LOOKS and time.monotonic() < until:
        left = marked(suite)
        kill_all(left)
        looks = 0 if left else looks + 1
        time.sleep(PAUSE_S)
    if temporary:
        remove_folder(Path(temporary))
