"""The command, in a process that is forked from the tests' own one, which has imported what the command runs.

A fresh interpreter takes a second or more of the processor for the imports of a command whose workers are forked. What
only a fresh one shows (its imports, how the interpreter ends) is for tests with `killed_runs.start`. Both run the same
program text.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, NoReturn

from waiting import PATIENCE_S

from rnnbench.plan import adapters
from rnnbench.worker.adapter_worker import leave_the_suite

PAUSE_S = 0.005
_of_the_tests: list[object] = []
"""What a forked command never collects: it owns descriptors whose numbers are other files' by now."""


class ForkedCommand:
    """A forked command as a `subprocess.Popen` whose output is read at its end: the parts of it that tests use."""

    def __init__(self, pid: int, output: IO[bytes], errors: IO[bytes]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._output, self._errors = output, errors

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float = PATIENCE_S) -> int:
        until = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(["rnnbench"], timeout)
            time.sleep(PAUSE_S)
        assert self.returncode is not None
        return self.returncode

    def communicate(self, timeout: float = PATIENCE_S) -> tuple[str, str]:
        self.wait(timeout)
        return _whole(self._output), _whole(self._errors)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start_forked(
    folder: Path,
    program: str,
    arguments: tuple[str, ...],
    variables: Mapping[str, str],
    preexec_fn: Callable[[], object] = lambda: None,
) -> ForkedCommand:
    """The program text in a folder, with further variables in its environment, as `python -c` would run it."""
    output, errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 they are read at the end
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _become_command(folder, program, arguments, variables, preexec_fn, (output.fileno(), errors.fileno()))
    return ForkedCommand(pid, output, errors)


def _become_command(
    folder: Path,
    program: str,
    arguments: tuple[str, ...],
    variables: Mapping[str, str],
    preexec_fn: Callable[[], object],
    streams: tuple[int, int],
) -> NoReturn:
    """The stack above is the tests'."""
    status = 1
    try:
        faulthandler.disable()
        leave_the_suite(streams)
        for number, stream in enumerate(streams, start=1):
            os.dup2(stream, number)
            os.close(stream)
        preexec_fn()
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 it may be another kind of file by now
        os.chdir(folder)
        os.environ.update(variables)
        tempfile.tempdir = None  # Its folder is that of its variables.
        warnings.resetwarnings()
        for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        sys.unraisablehook, sys.excepthook = sys.__unraisablehook__, sys.__excepthook__
        sys.argv = ["-c", *arguments]
        _of_the_tests.append(adapters._adapters)
        adapters._adapters = {}  # Their processes are those of the process that this one was forked from.
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 as an interpreter does
        traceback.print_exc()
    finally:
        try:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        finally:
            os._exit(status)


def _whole(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()
