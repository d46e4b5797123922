"""Starting a worker process, sending it commands, and finding out why it died."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

from pydantic import ValidationError

from rnnbench.disk import open_own
from rnnbench.measure import family_cpu_seconds, memory_limit
from rnnbench.outside_text import LOG_TAIL, describe_error, quoted_end, safe_text
from rnnbench.process_tree import is_stopped
from rnnbench.results import Finding, Outcome
from rnnbench.temporary import TemporaryFolder
from rnnbench.worker.channel import Channel, ChannelClosedError, LineTooLongError
from rnnbench.worker.finding_log import FindingLog
from rnnbench.worker.memory import POLL_S
from rnnbench.worker.process_family import (
    MARK,
    OomKills,
    end_first_without_memory,
    keep_ended_children,
    mark_process,
    signal_name,
)
from rnnbench.worker.protocol import BAD_MESSAGE, Command, Failed, Reply, decode_reply, encode_command
from rnnbench.worker.started_process import ChildProcess, StartedProcess
from rnnbench.worker.supervisor import new_mark, supervise

_CALLED: list[Callable[[], None]] = []
START_LIMIT_S = 120.0
"""Seconds in which an interpreter must start and import its framework."""
EXIT_LIMIT_S = 5.0
"""Seconds in which a worker that has closed its channel must exit. It is then killed."""
EXIT_GRACE_S = 1.0
"""Further seconds in which such a worker may exit, also after the limit of its command."""
STOPPED_S = 5.0
"""Seconds in which the suite looks at a worker at least once, also on a busy machine. If it did not, it was stopped: by
Ctrl-Z, or with its container or its machine."""
MOST_PRINTED = 256 << 20
"""Bytes that may be added to a worker's log during one command. What prints more would fill the disk of the run."""
MOST_STOPS = 3
"""Stops that count within one command. A program that starves the suite would have no limit of time otherwise."""
NO_PLUGINS = {"PYDANTIC_DISABLE_PLUGINS": "__all__"}
"""The suite uses no plugins of pydantic. To look for them, pydantic reads the metadata of every package: 0.05 s."""
Ready = TypeVar("Ready")


@contextmanager
def called_while_waiting(call: Callable[[], None]) -> Iterator[None]:
    """While this suite waits for a worker or a helper, in any thread, have `call` called at least every few seconds."""
    _CALLED.append(call)
    try:
        yield
    finally:
        _CALLED.remove(call)


def waited() -> None:
    """Make the calls of `called_while_waiting`. Each loop that waits for another process calls this."""
    for call in tuple(_CALLED):
        call()


class WorkerError(Exception):
    """A command failed, or its worker died."""

    def __init__(
        self, outcome: Outcome, reason: str, alive: bool, answered: bool = False, cpu_s: float | None = None
    ) -> None:
        self.reason = safe_text(reason)
        super().__init__(self.reason)
        self.outcome = outcome
        self.alive = alive
        """Whether the worker can take another command."""
        self.answered = answered
        """Whether the worker replied with this failure. Otherwise the suite noticed it."""
        self.cpu_s = cpu_s
        """CPU seconds that the worker used for the command, where the suite killed it."""


@dataclass(frozen=True)
class Host:
    """Where a worker runs."""

    log: Path
    """The file for everything that the worker prints."""
    variables: Mapping[str, str]
    """Environment variables, in addition to those of this process."""
    interpreter: str = ""
    """The Python that runs the worker; empty for that of this process."""


class ChannelProcess(StartedProcess, Generic[Ready]):
    """A process at the other end of a channel. It takes commands. If it crashes, only it ends.

    `start` is its first command, and `ready` returns the reply. Its temporary files are in `temporary`.
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
        super().__init__(process, mark)
        self._started = time.monotonic()
        self._channel = channel
        self._start = start
        self._log = log
        self._temporary = temporary
        self._number = 0
        """The number of the last command. A reply has that of its command."""
        self._cpu_before = 0.0
        """CPU seconds of the process and its descendants before that command."""
        self.stopped_s = 0.0
        """Seconds in which this suite was stopped while it waited for the last reply. The process may have run."""
        self._printed_before = self._printed()
        """Bytes of its log before that command."""
        self._oom_kills = OomKills()
        self._findings = FindingLog()
        # If the process has ended already, or does not read, `ready` raises.
        with suppress(ChannelClosedError, TimeoutError):
            channel.send(encode_command(start), START_LIMIT_S)

    def ready(self, timeout: float = START_LIMIT_S, memory: int | None = None) -> Ready:
        """Wait for the reply to the first command, within `memory` resident bytes. Raises WorkerError."""
        return self._reply(self._start, time.monotonic() + timeout, timeout, memory)

    def ask(self, command: Command[Reply], timeout: float, memory: int | None = None) -> Reply:
        """The reply to a command, within `timeout` seconds and `memory` resident bytes. Raises WorkerError.

        Memory is read while the command runs and at its end: many commands are over before the first reading.
        """
        deadline = time.monotonic() + timeout
        if self._channel.has_more:
            self._fail("crashed", "it sent a message that was not requested; killed")
        self._oom_kills = OomKills()
        self._number += 1
        self._printed_before = self._printed()
        self._cpu_before = family_cpu_seconds(self.pid)
        try:
            self._channel.send(encode_command(command, self._number), max(timeout, 0.001))
        except ChannelClosedError:
            self._raise_cause_of_death(deadline)
        except TimeoutError:
            self._fail("timed-out", f"it read no command within {timeout:.4g} s; killed")
        return self._reply(command, deadline, timeout, memory)

    def take_findings(self) -> tuple[Finding, ...]:
        """The findings since the last call of this method."""
        return self._findings.take()

    @property
    def age_s(self) -> float:
        """Seconds since its first command was sent."""
        return time.monotonic() - self._started

    def close(self) -> None:
        """Kill the process and its descendants, and release the channel and the temporary files."""
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
            answer = decode_reply(line, command, self._number)
        except BAD_MESSAGE as error:
            name = type(command).__name__
            self._fail("crashed", f"it sent something that is no reply to {name}: {_fault(error)}; killed")
        self._findings.add(answer.findings)
        if not isinstance(answer.reply, Failed):
            return answer.reply
        failed = self.with_its_cause(answer.reply)
        if failed.harmed:
            self.close()
        raise WorkerError(failed.outcome, failed.reason, alive=not failed.harmed, answered=True)

    def with_its_cause(self, failed: Failed) -> Failed:
        """A failure that the worker replied. Its cause is memory if the kernel killed a process meanwhile."""
        if failed.outcome not in ("build-failed", "run-failed") or not self._oom_kills.happened():
            return failed
        why = f"meanwhile the kernel's out-of-memory killer ended a process, {memory_limit()}"
        return Failed("out-of-memory", f"{failed.reason}; {why}", failed.harmed)

    def _line(self, deadline: float, timeout: float, memory: int | None) -> bytes:
        """The next line. The deadline is later by the seconds in which this suite was stopped."""
        self.stopped_s, stops, looked = 0.0, 0, time.monotonic()
        while True:
            left = deadline + self.stopped_s - looked
            if left <= 0:
                is_told = "; a signal or a debugger had stopped it" if is_stopped(self.pid) else ""
                self._fail("timed-out", f"no answer within {timeout:.4g} s, the rest of its limit{is_told}; killed")
            line = self._channel.receive(min(left, POLL_S))
            waited()
            if line is None and self.has_ended:
                # A child that holds its end keeps the channel open. A last line may still be there.
                line = self._channel.receive(EXIT_GRACE_S)
                if line is None:
                    raise ChannelClosedError
            if memory is not None and self.resident() > memory and (used := self._memory.read_shared_once()) > memory:
                self._fail("out-of-memory", f"{used >> 20} MiB resident, over its limit of {memory >> 20} MiB; killed")
            if self._printed() - self._printed_before > MOST_PRINTED:
                self._fail_for_its_log()
            before, looked = looked, time.monotonic()
            if looked - before > STOPPED_S and stops < MOST_STOPS:
                self.stopped_s, stops = self.stopped_s + looked - before, stops + 1
            if line is not None:
                return line

    def _fail(self, outcome: Outcome, reason: str) -> NoReturn:
        cpu_s = family_cpu_seconds(self.pid) - self._cpu_before
        self.close()
        raise WorkerError(outcome, reason, alive=False, cpu_s=cpu_s)

    def _fail_for_its_log(self) -> NoReturn:
        """Fail, and cut the log: as many bytes for each of a hundred trials would fill the disk too."""
        try:
            self._fail("crashed", f"it printed more than {MOST_PRINTED >> 20} MiB; killed{quoted_end(self._log)}")
        finally:
            with suppress(OSError):
                os.truncate(self._log, self._printed_before + LOG_TAIL)

    def _printed(self) -> int:
        try:
            return self._log.stat().st_size
        except OSError:  # Somebody removed it.
            return 0

    def _raise_cause_of_death(self, deadline: float) -> NoReturn:
        """Raise why the process died. The cause is read before anything is killed."""
        has_ended = self._wait_for_end(deadline)
        oom_killed = self._oom_kills.happened()
        self.close()
        status = self._process.wait()
        log_end = quoted_end(self._log)
        if not has_ended:
            raise WorkerError("crashed", f"closed its channel and ran on; killed{log_end}", alive=False)
        if status == -signal.SIGKILL and oom_killed:
            reason = f"died of SIGKILL: the kernel's out-of-memory killer ended it, {memory_limit()}{log_end}"
            raise WorkerError("out-of-memory", reason, alive=False)
        died = f"died of {signal_name(-status)}" if status < 0 else f"exited with status {status}"
        hint = " (the kernel does so when memory runs out, and counted no such kill)" if status == -9 else ""
        raise WorkerError("crashed", f"{died}{hint}{log_end}", alive=False)

    def _wait_for_end(self, deadline: float) -> bool:
        """Wait until a process that has closed its channel ends. It stays a zombie, so that its children can be found.

        Returns False if it still runs after its time.
        """
        now = time.monotonic()
        until = max(now, min(now + EXIT_LIMIT_S, deadline)) + EXIT_GRACE_S
        while not self.has_ended:
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True


class WorkerProcess(ChannelProcess[Ready]):
    """A fresh interpreter that runs a worker's module, and answers once it is `ready`."""

    def __init__(self, module: str, start: Command[Ready], host: Host) -> None:
        keep_ended_children()
        ours, theirs = socket.socketpair()
        host.log.parent.mkdir(parents=True, exist_ok=True)
        mark = new_mark()
        temporary = supervise()
        with theirs, _opened(host.log) as output:
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
        end_first_without_memory(process.pid)
        super().__init__(process, Channel(ours), start, host.log, mark, temporary)


@contextmanager
def _opened(log: Path) -> Iterator[int]:
    """The log's descriptor, for a worker alone. The suite writes nothing there, so no close of its own loses any."""
    descriptor = open_own(log, os.O_WRONLY | os.O_APPEND)
    try:
        yield descriptor
    finally:
        with suppress(OSError):
            os.close(descriptor)


def _fault(error: Exception) -> str:
    """The first error of a message, without the message's whole text."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return describe_error(error)
