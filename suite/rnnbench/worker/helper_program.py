"""Running a program that is no worker: pip, venv, gh, or a script that shows a fault.

The program and its descendants end when the call returns, times out, is interrupted or is stopped, and when the suite
ends.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event
from typing import IO

from rnnbench.worker.launcher import waited
from rnnbench.worker.process_family import (
    KILL_LIMIT_S,
    MARK,
    family,
    keep_ended_children,
    kill_until_gone,
    mark_process,
    marked,
)
from rnnbench.worker.supervisor import new_mark, supervise

STOP_POLL_S = 0.1
"""Seconds between two looks at whether a program has to stop."""
WAIT_POLL_S = 5.0
"""Seconds between two looks at a program that nobody stops: it may be one that measures."""


class HelperStoppedError(Exception):
    """The program was stopped by its caller."""


def run_helper(
    command: Sequence[str], limit_s: float, text: str | None = None, stop: Event | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program with `text` as its input. Returns its status and what it printed.

    A signal interrupts only the main thread. A call in another thread ends soon after the main thread has set `stop`.
    Raises OSError if the program cannot be started or `text` cannot be written, subprocess.TimeoutExpired after
    `limit_s` seconds, and HelperStoppedError.
    """
    keep_ended_children()
    mark = new_mark()
    temporary = supervise()
    process: subprocess.Popen[str] | None = None
    try:  # An interrupt may come before the call that has started it returns.
        with _input(text) as given:
            process = subprocess.Popen(
                command,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, MARK: mark, **temporary.variables},
            )
        mark_process(process.pid, mark)
        printed, errors = _output_of(process, limit_s, stop)
    finally:
        _end(process, mark)
        temporary.remove()
    return subprocess.CompletedProcess(process.args, process.returncode, printed, errors)


@contextmanager
def _input(text: str | None) -> Iterator[IO[bytes] | int]:
    """The program's standard input: a file with `text`. `communicate` cannot send a text after its first timeout."""
    if text is None:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(text.encode(errors="replace"))
        file.seek(0)
        yield file


def _output_of(process: subprocess.Popen[str], limit_s: float, stop: Event | None) -> tuple[str, str]:
    """Wait for the end. Returns standard output and standard error."""
    until = time.monotonic() + limit_s
    while stop is None or not stop.is_set():
        left = until - time.monotonic()
        if left <= 0:
            raise subprocess.TimeoutExpired(process.args, limit_s)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=min(left, WAIT_POLL_S if stop is None else STOP_POLL_S))
        waited()
    raise HelperStoppedError


def _end(process: subprocess.Popen[str] | None, mark: str) -> None:
    """Kill the program and its descendants.

    A descendant that holds the program's output open would block a reader, so killing only the program is not enough.
    """
    kill_until_gone(lambda: _living(process, mark))
    if process is None:
        return
    with suppress(subprocess.TimeoutExpired):
        process.wait(KILL_LIMIT_S)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def _living(process: subprocess.Popen[str] | None, mark: str) -> set[int]:
    """The program and its descendants. After the program was waited for, its pid may belong to another process."""
    return marked(mark) if process is None or process.returncode is not None else family(process.pid, mark)
