"""The suite's side of an adapter's process: forking it, asking it, ending it. See `adapter_worker`."""

from __future__ import annotations

import os
import socket
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import psutil

from rnnbench.backends import Request, Support
from rnnbench.worker.adapter_worker import AskSupport, LoadAdapter, guard
from rnnbench.worker.channel import Channel
from rnnbench.worker.launcher import ChannelProcess
from rnnbench.worker.memory import POLL_S
from rnnbench.worker.process_family import KILL_LIMIT_S, family, keep_ended_children, kill_until_gone
from rnnbench.worker.protocol import Command, Done, Failed, Reply
from rnnbench.worker.supervisor import new_mark, supervise

ANSWER_LIMIT_S = 20.0
"""Longest that the import of an adapter may take, and each of its answers. Those of this suite take 0.1 s and 25 ms."""
MEMORY_LIMIT = 1 << 30
"""Resident bytes that an adapter and the processes it starts may add to what they share with the suite."""
MAX_ANSWER = 4 << 20
"""Bytes of one answer."""
GUARD_LIMIT_S = KILL_LIMIT_S
"""Longest that the guard may take to kill the processes that its adapter started."""
_PROCESSES = 2
"""The guard and the adapter's process. Each has what the suite has resident when it is forked."""


class ForkedChild:
    """A forked child as a `ChildProcess`: a subset of `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode


class AdapterProcess(ChannelProcess[Done]):
    """A process that has imported one adapter's module, and answers for it."""

    def __init__(self, backend: str) -> None:
        keep_ended_children()
        ours, theirs = socket.socketpair()
        held, self._held_by_suite = os.pipe()
        mark = new_mark()
        self._limit = _PROCESSES * int(psutil.Process().memory_info().rss) + MEMORY_LIMIT
        self._used, self._looked = 0, time.monotonic()
        temporary = supervise()
        with warnings.catch_warnings():
            # The child runs only Python. If a lock of another thread stops it, its limit of time ends it.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            guard(theirs.fileno(), held, mark, temporary)
        theirs.close()
        os.close(held)
        super().__init__(
            ForkedChild(pid), Channel(ours, MAX_ANSWER), LoadAdapter(backend), Path(os.devnull), mark, temporary
        )

    def answer(self, command: Command[Reply]) -> Reply:
        """The reply to a command, within the limits of every adapter. Raises WorkerError."""
        return self.ask(command, ANSWER_LIMIT_S, self._limit)

    def supports(self, requests: Sequence[Request]) -> tuple[Support | Failed, ...]:
        """The answer to each request. Raises WorkerError."""
        replies = self.answer(AskSupport.of(requests))
        return tuple(self.with_its_cause(reply) if isinstance(reply, Failed) else reply for reply in replies)

    def load(self) -> None:
        """Wait until the adapter's module is imported. Raises WorkerError."""
        self.ready(ANSWER_LIMIT_S, self._limit)

    def resident(self, *, look: bool = False) -> int:
        """Resident bytes, at most POLL_S old: an adapter may be asked thousands of times per second."""
        if look or time.monotonic() - self._looked >= POLL_S:
            self._used, self._looked = super().resident(look=look), time.monotonic()
        return self._used

    def _kill_family(self) -> None:
        """Let the guard kill the processes that it adopted, which no mark finds. Then kill the rest."""
        if self._held_by_suite >= 0:
            os.close(self._held_by_suite)
            self._held_by_suite = -1
        until = time.monotonic() + GUARD_LIMIT_S
        while not self.has_ended and time.monotonic() < until:
            time.sleep(0.005)
        self._kill_adopted()
        super()._kill_family()

    def _kill_adopted(self) -> None:
        """Kill what the guard adopted, if the guard still runs. A running guard also adopts new orphans."""
        kill_until_gone(lambda: set() if self.has_ended else family(self.pid, self._mark) - {self.pid})
