"""What ends the processes that a suite leaves behind where it is killed itself, and removes their temporary files.

The kernel ends each worker with the suite (`kernel.die_with_parent`), and no more than that: a compiler that a worker
has started would run on. A process apart waits for the end of the suite, and then ends all that have its mark.
"""

from __future__ import annotations

import os
import select
import shutil
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

from rnnbench.temporary import TemporaryFolder
from rnnbench.worker.kernel import kill_all, marked

SUITE = uuid.uuid4().hex
"""What `suite_mark` returns."""
LIMIT_S = 10.0
"""Longest that processes which do not end are killed again. One that waits for a disk ends when the disk answers."""
PAUSE_S = 0.02
LOOKS = 3
"""Looks in a row that find nothing before it ends: a process that is being replaced (exec) has no mark for a moment."""
STARTS = 3
"""Times that a supervisor is started where it is killed before it has begun."""
_ROOT = str(Path(__file__).parents[2])
_PROGRAM = (
    "import os, sys\n"
    "if os.fork(): os._exit(0)\n"
    "sys.path.append(sys.argv[1])\n"
    "from rnnbench.worker.supervisor import main\n"
    "main(*sys.argv[2:])\n"
)
"""It is nobody's child: whoever waits for all children of the suite does not wait for it."""


class _Supervisor:
    """The suite's side: a pipe whose other end the supervisor waits at. The kernel closes it with the suite."""

    def __init__(self, temporary: TemporaryFolder) -> None:
        self.temporary = temporary
        reading, self._writing = os.pipe()
        command = [sys.executable, "-I", "-S", "-c", _PROGRAM, _ROOT, SUITE, str(self.temporary.path or "")]
        try:
            subprocess.run(
                command,
                stdin=reading,
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
    """The beginning of the mark of every worker that this process starts. A fork of it has another one."""
    return SUITE


def _begin_anew() -> None:
    """In a fork. With its parent's mark, the end of one would kill what the other has started.

    Its copy of the pipe goes, or its parent's supervisor would wait for the end of both.
    """
    global SUITE, _supervisor, _lock
    if _supervisor is not None:
        with suppress(OSError):
            _supervisor.close()
    SUITE, _supervisor, _lock = uuid.uuid4().hex, None, Lock()


os.register_at_fork(after_in_child=_begin_anew)


def supervise() -> TemporaryFolder:
    """See to it that a supervisor waits for the end of this process.

    Returns a folder for the temporary files of what is started next. What is left of it goes with this process.
    """
    global _supervisor
    with _lock:
        if _supervisor is None:
            _supervisor = _started(TemporaryFolder(made=False))
        elif not _supervisor.is_alive:
            _supervisor.close()
            _supervisor = _started(_supervisor.temporary)
        _supervisor.temporary.keep()
        return TemporaryFolder(_supervisor.temporary.path)


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder for temporary files of this process. It is gone afterwards, also where a kill comes meanwhile.

    Raises OSError on a disk that takes none.
    """
    outer = supervise()
    try:
        with tempfile.TemporaryDirectory(dir=outer.path) as folder:
            yield Path(folder)
    finally:
        outer.remove()


def _started(temporary: TemporaryFolder) -> _Supervisor:
    """A supervisor. Whoever kills processes of this suite may kill one while it starts: then another is started.

    Where none is, as after an interrupt, nobody else would remove the folder.
    """
    with temporary.removed_on_failure():
        for _ in range(STARTS - 1):
            with suppress(subprocess.CalledProcessError):
                return _Supervisor(temporary)
        return _Supervisor(temporary)


def main(suite: str, temporary: str) -> None:
    """Wait for the end of standard input, which is that of the suite, and kill what is left of it.

    Its folder of temporary files is removed then; an empty name is none.
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
        shutil.rmtree(temporary, ignore_errors=True)
