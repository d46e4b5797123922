"""Starting a worker process, asking it, pausing it, and learning what it died of. Every worker is started here."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

import psutil

from rnnbench.results import Outcome
from rnnbench.worker.channel import Channel, ChannelClosedError
from rnnbench.worker.protocol import Command, Failed, Reply, decode_reply, encode_command

START_LIMIT_S = 120.0
"""Longest that an interpreter may take to start and import its framework."""
POLL_S = 0.1
"""Seconds between readings of a worker's memory, while a command has a limit of memory."""
EXIT_LIMIT_S = 5.0
"""Longest that a worker whose channel is closed may take to exit, before it is killed."""
LOG_LINES = 3
Ready = TypeVar("Ready")


class WorkerError(Exception):
    """A command failed, or its worker died."""

    def __init__(self, outcome: Outcome, reason: str, alive: bool) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.alive = alive
        """Whether the worker can take another command."""


@dataclass(frozen=True)
class RunFolders:
    """The folders that the workers of a run share."""

    artifacts: Path
    """What compilers leave behind, and beside it the figures of each cold build."""
    references: Path
    """Reference trajectories."""
    logs: Path

    @classmethod
    def of_run(cls, run: Path) -> RunFolders:
        return cls(run / "artifacts", run / "references", run / "logs")

    def clear(self) -> None:
        """Remove what a finished run does not need: artifacts and trajectories, by far the most of its bytes."""
        for folder in (self.artifacts, self.references):
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Host:
    """Where a worker runs."""

    log: Path
    """The file that gets what it prints."""
    variables: Mapping[str, str]
    """Environment variables, beside those of this process."""
    interpreter: str = ""
    """The Python that runs it; empty for the one of this process."""


class WorkerProcess(Generic[Ready]):
    """A fresh interpreter that runs a worker's module, and answers once it is `ready`.

    `start` is the first command. Its reply is what `ready` returns.
    """

    def __init__(self, module: str, start: Command[Ready], host: Host) -> None:
        ours, theirs = socket.socketpair()
        host.log.parent.mkdir(parents=True, exist_ok=True)
        self._log = host.log
        self._start = start
        with theirs, self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [host.interpreter or sys.executable, "-m", module, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **host.variables},
                start_new_session=True,
            )
        self._channel = Channel(ours)
        # Where it has ended already, `ready` says so.
        with suppress(ChannelClosedError):
            self._channel.send(encode_command(start))

    def ready(self, timeout: float = START_LIMIT_S) -> Ready:
        """Wait for the reply to the first command. Raises WorkerError."""
        return self._reply(self._start, timeout, None)

    def ask(self, command: Command[Reply], timeout: float, memory: int | None = None) -> Reply:
        """The reply to a command, within `timeout` seconds and `memory` resident bytes. Raises WorkerError."""
        try:
            self._channel.send(encode_command(command))
        except ChannelClosedError:
            self._raise_cause_of_death()
        return self._reply(command, timeout, memory)

    def pause(self) -> None:
        """Stop every thread of it: idle threads of runtimes spin."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Kill it with all its children. What matters of it is on disk or has been answered."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._channel.close()

    def _reply(self, command: Command[Reply], timeout: float, memory: int | None) -> Reply:
        try:
            reply = decode_reply(self._line(timeout, memory), command)
        except ChannelClosedError:
            self._raise_cause_of_death()
        if isinstance(reply, Failed):
            raise WorkerError(reply.outcome, reply.reason, alive=True)
        return reply

    def _line(self, timeout: float, memory: int | None) -> bytes:
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                self.close()
                reason = f"no answer within {timeout:.4g} s, what its limits leave; killed"
                raise WorkerError("timed-out", reason, alive=False)
            line = self._channel.receive(left if memory is None else min(left, POLL_S))
            if line is not None:
                return line
            if memory is not None and (used := self._resident()) > memory:
                self.close()
                reason = f"{used >> 20} MiB resident, over its limit of {memory >> 20} MiB; killed"
                raise WorkerError("out-of-memory", reason, alive=False)

    def _resident(self) -> int:
        total = 0
        try:
            worker = psutil.Process(self._process.pid)
            for process in (worker, *worker.children(recursive=True)):
                total += process.memory_info().rss
        except psutil.NoSuchProcess:
            return total
        return total

    def _raise_cause_of_death(self) -> NoReturn:
        self._wait_for_end()
        self._signal(signal.SIGKILL)
        status = self._process.wait()
        died = f"died of {signal.Signals(-status).name}" if status < 0 else f"exited with status {status}"
        hint = " (the kernel does so when memory runs out)" if status == -signal.SIGKILL else ""
        raise WorkerError("crashed", f"{died}{hint}{self._last_words()}", alive=False)

    def _wait_for_end(self) -> None:
        """A worker that exits closes its channel first. It stays a zombie, so that its children can be killed too."""
        deadline = time.monotonic() + EXIT_LIMIT_S
        while self._process.returncode is None and time.monotonic() < deadline:
            if os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
                return
            time.sleep(0.01)

    def _last_words(self) -> str:
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return "; its log ends: " + " | ".join(lines[-LOG_LINES:]) if lines else ""

    def _signal(self, number: signal.Signals) -> None:
        """To the worker's process group. Not once it has been waited for: its number may be another's by then."""
        if self._process.returncode is not None:
            return
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return
