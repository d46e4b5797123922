"""Starting a worker process, asking it, pausing it, and learning what it died of."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NoReturn, Protocol, TypeVar

from pydantic import ValidationError

from rnnbench.cache import CacheFolder
from rnnbench.disk import open_own
from rnnbench.outside_text import describe_error, quoted_end, safe_text
from rnnbench.results import Finding, Outcome
from rnnbench.temporary import TemporaryFolder
from rnnbench.worker.channel import Channel, ChannelClosedError, LineTooLongError
from rnnbench.worker.kernel import (
    MARK,
    OomKills,
    family,
    keep_ended_children,
    kill_all,
    kill_until_gone,
    mark_process,
    signal_name,
)
from rnnbench.worker.memory import POLL_S, ResidentMemory
from rnnbench.worker.protocol import BAD_MESSAGE, Command, Failed, Reply, decode_reply, encode_command
from rnnbench.worker.supervisor import suite_mark, supervise

START_LIMIT_S = 120.0
"""Longest that an interpreter may take to start and import its framework."""
EXIT_LIMIT_S = 5.0
"""Longest that a worker whose channel is closed may take to exit, before it is killed."""
EXIT_GRACE_S = 1.0
"""How much later than its limit such a worker may exit."""
KILL_LIMIT_S = 1.5
"""Longest that a killed worker and its children are waited for. One that waits for a disk may take longer."""
NO_PLUGINS = {"PYDANTIC_DISABLE_PLUGINS": "__all__"}
"""For its plugins, which the suite has none of, pydantic reads the metadata of every installed package: 0.05 s."""
Ready = TypeVar("Ready")


class WorkerError(Exception):
    """A command failed, or its worker died."""

    def __init__(self, outcome: Outcome, reason: str, alive: bool, answered: bool = False) -> None:
        self.reason = safe_text(reason)
        super().__init__(self.reason)
        self.outcome = outcome
        self.alive = alive
        """Whether the worker can take another command."""
        self.answered = answered
        """Whether the worker answered so: it is then the doing of what it was asked for."""


@dataclass(frozen=True)
class RunFolders:
    """The folders that the workers of a run share."""

    artifacts: Path
    """What compilers leave behind, and beside it the figures of each cold build."""
    references: Path
    """Reference trajectories."""
    logs: Path
    cache: CacheFolder | None = None
    """What is kept from one run to the next; None where everything is made in this run."""

    @classmethod
    def of_run(cls, run: Path, cache: CacheFolder | None = None) -> RunFolders:
        return cls(run / "artifacts", run / "references", run / "logs", cache)

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


class ChildProcess(Protocol):
    """What is known of a process that was started here: as of a `subprocess.Popen`."""

    pid: int
    returncode: int | None

    def wait(self) -> int: ...


class ChannelProcess(Generic[Ready]):
    """A process at the other end of a channel. It takes commands, and whatever it does ends itself alone.

    `start` is the first command. Its reply is what `ready` returns. All that it starts has `mark` in its environment.
    Its temporary files are in `temporary`.
    """

    def __init__(
        self,
        process: ChildProcess,
        channel: Channel,
        start: Command[Ready],
        log: Path,
        mark: str,
        temporary: TemporaryFolder,
    ) -> None:
        self._started = time.monotonic()
        self._process = process
        self._channel = channel
        self._start = start
        self._log = log
        self._mark = mark
        self._temporary = temporary
        self._oom_kills = OomKills()
        self._findings: list[Finding] = []
        self._memory = ResidentMemory(process.pid)
        # Where it has ended already, or does not read, `ready` says so.
        with suppress(ChannelClosedError, TimeoutError):
            channel.send(encode_command(start), START_LIMIT_S)

    def ready(self, timeout: float = START_LIMIT_S, memory: int | None = None) -> Ready:
        """Wait for the reply to the first command, within `memory` resident bytes. Raises WorkerError."""
        return self._reply(self._start, time.monotonic() + timeout, timeout, memory)

    def ask(self, command: Command[Reply], timeout: float, memory: int | None = None) -> Reply:
        """The reply to a command, within `timeout` seconds and `memory` resident bytes. Raises WorkerError.

        Memory is looked at while the command runs and at its end: many commands are over before the first look.
        """
        deadline = time.monotonic() + timeout
        if self._channel.has_more:
            self._fail("crashed", "it sent a message that was not requested; killed")
        self._oom_kills = OomKills()
        try:
            self._channel.send(encode_command(command), max(timeout, 0.001))
        except ChannelClosedError:
            self._raise_cause_of_death(deadline)
        except TimeoutError:
            self._fail("timed-out", f"it read no command within {timeout:.4g} s; killed")
        return self._reply(command, deadline, timeout, memory)

    def take_findings(self) -> tuple[Finding, ...]:
        """What was found since the last call of this method."""
        taken, self._findings = tuple(self._findings), []
        return taken

    @property
    def age_s(self) -> float:
        """Seconds since its first command was sent."""
        return time.monotonic() - self._started

    @property
    def pid(self) -> int:
        return self._process.pid

    def pause(self) -> None:
        """Stop every thread of it: idle threads of runtimes spin."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def hold_to(self, cores: Iterable[int]) -> tuple[int, ...]:
        """Hold every thread of it to these cores, while it is stopped. Threads that it starts later inherit them.

        Returns the cores that it was held to before; none where it has ended.
        """
        before: set[int] = set()
        with suppress(ProcessLookupError, FileNotFoundError):
            before = os.sched_getaffinity(self.pid)
            for thread in os.listdir(f"/proc/{self.pid}/task"):
                os.sched_setaffinity(int(thread), cores)
        return tuple(sorted(before))

    def resident(self, *, look: bool = False) -> int:
        """Resident bytes of it and its descendants; see `ResidentMemory.read`."""
        return self._memory.read(look=look)

    def kill(self) -> None:
        """Kill it and all that descends from it. Whoever waits for an answer sees that it has ended."""
        if self._process.returncode is None:
            self._kill_family()

    def close(self) -> None:
        """Kill it and all that descends from it. What matters of it is on disk or has been answered."""
        if self._process.returncode is None:
            self._kill_family()
            self._process.wait()
            self._temporary.remove()
        self._channel.close()

    def _reply(self, command: Command[Reply], deadline: float, timeout: float, memory: int | None) -> Reply:
        try:
            line = self._line(deadline, timeout, memory)
        except ChannelClosedError:
            self._raise_cause_of_death(deadline)
        except LineTooLongError:
            self._fail("crashed", "its reply is longer than any reply may be; killed")
        try:
            answer = decode_reply(line, command)
        except BAD_MESSAGE as error:
            self._fail("crashed", f"it sent something that is no reply to {_name(command)}: {_what(error)}; killed")
        self._findings += answer.findings
        if isinstance(answer.reply, Failed):
            self._raise_failed(answer.reply)
        return answer.reply

    def _raise_failed(self, failed: Failed) -> NoReturn:
        """A failure that the worker told of. Where a process of a compiler was killed for memory, that is its cause."""
        outcome, reason = failed.outcome, failed.reason
        if outcome in ("build-failed", "run-failed") and self._oom_kills.happened():
            outcome = "out-of-memory"
            reason = f"{reason}; meanwhile the kernel's out-of-memory killer ended a process"
        if failed.harmed:
            self.close()
        raise WorkerError(outcome, reason, alive=not failed.harmed, answered=True)

    def _line(self, deadline: float, timeout: float, memory: int | None) -> bytes:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                self._fail("timed-out", f"no answer within {timeout:.4g} s, what its limits leave; killed")
            line = self._channel.receive(min(left, POLL_S))
            if line is None and self.has_ended:
                # A child of it that holds its end keeps the channel open. Its last words may still be there.
                line = self._channel.receive(EXIT_GRACE_S)
                if line is None:
                    raise ChannelClosedError
            if memory is not None and self.resident() > memory and (used := self._memory.read_shared_once()) > memory:
                self._fail("out-of-memory", f"{used >> 20} MiB resident, over its limit of {memory >> 20} MiB; killed")
            if line is not None:
                return line

    def _fail(self, outcome: Outcome, reason: str) -> NoReturn:
        self.close()
        raise WorkerError(outcome, reason, alive=False)

    def _raise_cause_of_death(self, deadline: float) -> NoReturn:
        """The cause is read before anything is killed."""
        has_ended = self._wait_for_end(deadline)
        oom_killed = self._oom_kills.happened()
        self._kill_family()
        status = self._process.wait()
        self._temporary.remove()
        self._channel.close()
        log_end = quoted_end(self._log)
        if not has_ended:
            raise WorkerError("crashed", f"closed its channel and ran on; killed{log_end}", alive=False)
        if status == -signal.SIGKILL and oom_killed:
            reason = f"died of SIGKILL: the kernel's out-of-memory killer ended it{log_end}"
            raise WorkerError("out-of-memory", reason, alive=False)
        died = f"died of {signal_name(-status)}" if status < 0 else f"exited with status {status}"
        hint = " (the kernel does so when memory runs out, and counted no such kill)" if status == -9 else ""
        raise WorkerError("crashed", f"{died}{hint}{log_end}", alive=False)

    def _wait_for_end(self, deadline: float) -> bool:
        """A worker that exits closes its channel first. It stays a zombie, so that its children can be killed too."""
        now = time.monotonic()
        until = max(now, min(now + EXIT_LIMIT_S, deadline)) + EXIT_GRACE_S
        while not self.has_ended:
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True

    @property
    def has_ended(self) -> bool:
        """It stays a zombie until it is waited for, so that its number is nobody else's."""
        if self._process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None

    def _kill_family(self) -> None:
        """Kill it, its descendants and its orphans, also those in a group or session of their own."""
        descendants = family(self._process.pid, self._mark)  # Once it has ended, nothing descends from it.
        self._signal(signal.SIGKILL)
        kill_all(descendants)
        kill_until_gone(lambda: family(self._process.pid, self._mark), KILL_LIMIT_S)

    def _signal(self, number: signal.Signals) -> None:
        """To the worker's process group. Not once it has been waited for: its number may be another's by then."""
        if self._process.returncode is not None:
            return
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return


class WorkerProcess(ChannelProcess[Ready]):
    """A fresh interpreter that runs a worker's module, and answers once it is `ready`."""

    def __init__(self, module: str, start: Command[Ready], host: Host) -> None:
        keep_ended_children()
        ours, theirs = socket.socketpair()
        host.log.parent.mkdir(parents=True, exist_ok=True)
        mark = new_mark()
        temporary = supervise()
        with theirs, os.fdopen(open_own(host.log, os.O_WRONLY | os.O_APPEND), "ab") as output:
            process = subprocess.Popen(
                [host.interpreter or sys.executable, "-m", module, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **host.variables, **NO_PLUGINS, MARK: mark, **temporary.variables},
                start_new_session=True,
            )
        mark_process(process.pid, mark)
        super().__init__(process, Channel(ours), start, host.log, mark, temporary)


def new_mark() -> str:
    """What finds the descendants of one process: it begins with what all of this suite have."""
    return f"{suite_mark()}-{uuid.uuid4().hex}"


def _name(command: Command[Reply]) -> str:
    return type(command).__name__


def _what(error: Exception) -> str:
    """The first thing that is wrong with a message, without its whole text."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return describe_error(error)
