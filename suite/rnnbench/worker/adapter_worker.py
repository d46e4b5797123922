"""The process that imports an adapter's module and calls its `probe` and `support`. It is forked from the suite.

    suite ─► guard ─► adapter

The guard runs no code of the adapter. It adopts every process that the adapter starts, and kills them all when the
adapter's process or the suite ends. It then removes their temporary files, and ends as the adapter's process did.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from rnnbench.backends import Backend, Probe, Request, Support, find
from rnnbench.cases import Precision, Strategy
from rnnbench.process_tree import living_descendants
from rnnbench.rnn import AnyNetwork, Weights
from rnnbench.temporary import TemporaryFolder
from rnnbench.worker.channel import Channel, ChannelClosedError
from rnnbench.worker.process_family import MARK, adopt_orphans, kill_until_gone, mark_process
from rnnbench.worker.protocol import Command, Done, Failed
from rnnbench.worker.server import Handlers, attempt, serve

END_LIMIT_S = 1.0
"""Longest that the guard keeps killing processes that do not end."""


@dataclass(frozen=True)
class LoadAdapter(Command[Done]):
    """The first command: import the adapter's module."""

    backend: str


@dataclass(frozen=True)
class AskProbe(Command[Probe]):
    """Ask the adapter what is installed."""


@dataclass(frozen=True)
class SentRequest:
    """A request without its weights, which `support` does not read."""

    route: str
    model: AnyNetwork
    strategy: Strategy
    batch: int
    precision: Precision
    device: str
    threads: int
    ragged: bool

    @classmethod
    def of(cls, request: Request) -> SentRequest:
        return cls(**{name: value for name, value in vars(request).items() if name != "weights"})

    @property
    def request(self) -> Request:
        return Request(weights=Weights(()), **vars(self))


@dataclass(frozen=True)
class AskSupport(Command[tuple[Support | Failed, ...]]):
    """Whether the adapter supports each of the requests."""

    requests: tuple[SentRequest, ...]

    @classmethod
    def of(cls, requests: Iterable[Request]) -> AskSupport:
        return cls(tuple(map(SentRequest.of, requests)))


class AdapterWorker:
    """Carries out the commands for one adapter."""

    def __init__(self) -> None:
        self._backend: Backend

    @property
    def handlers(self) -> Handlers:
        return {LoadAdapter: self.load, AskProbe: self.probe, AskSupport: self.support}

    def load(self, command: LoadAdapter) -> Done:
        self._backend = find(command.backend)
        return Done()

    def probe(self, command: AskProbe) -> Probe:
        return self._backend.probe()

    def support(self, command: AskSupport) -> tuple[Support | Failed, ...]:
        return tuple(attempt(partial(self._backend.support, sent.request), "run-failed") for sent in command.requests)


def guard(channel: int, suite: int, mark: str, temporary: TemporaryFolder) -> NoReturn:
    """Fork the adapter's process, outlive it, and end what it started. This is all that the suite's child does.

    `channel` is the adapter's end of the channel. `suite` is a pipe that the kernel closes when the suite ends.
    """
    status = 1
    try:
        leave_the_suite({channel, suite})
        adopt_orphans()
        os.environ[MARK] = mark
        temporary.use()
        ended, woken = os.pipe()
        os.set_blocking(woken, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(woken)
        adapter = os.fork()
        if adapter == 0:
            for descriptor in (suite, ended, woken):
                os.close(descriptor)
            mark_process(os.getpid(), mark)  # The guard has no mark, or the supervisor would kill it too early.
            _serve(channel)
        os.close(channel)
        status = _wait(adapter, suite, ended)
        kill_until_gone(lambda: living_descendants(os.getpid()), END_LIMIT_S)
        temporary.remove()  # Nobody else does where the suite's folder could not be made.
        _end_as(status)
    finally:
        os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


def leave_the_suite(kept: Collection[int]) -> None:
    """Give up the suite's terminal, files and signal handlers.

    The garbage collector skips the suite's objects from now on: a file object that it collects would close the
    descriptor of its number, which may be another file by then.
    """
    gc.collect(0)
    gc.freeze()
    os.setsid()
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for descriptor in [int(name) for name in os.listdir("/proc/self/fd")]:
        if descriptor not in kept:
            with suppress(OSError):
                os.close(descriptor)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    if nothing > 2:
        os.close(nothing)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = (open(number, "w", errors="replace", closefd=False) for number in (1, 2))  # noqa: SIM115


def _serve(channel: int) -> NoReturn:
    """Carry out commands until the suite closes the channel, then exit: the stack above this call is the suite's."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        os.set_inheritable(channel, True)
        sys.argv = ["rnnbench.worker", str(channel)]
        with suppress(ChannelClosedError):
            serve(Channel(socket.socket(fileno=channel)), AdapterWorker().handlers)
        os._exit(0)
    finally:
        os._exit(1)


def _wait(adapter: int, suite: int, ended: int) -> int:
    """The wait status of the adapter's process; 0 if the suite ended first."""
    poll = select.poll()
    poll.register(suite, 0)
    poll.register(ended, select.POLLIN)
    while True:
        if any(descriptor == suite for descriptor, _ in poll.poll()):
            return 0
        os.read(ended, 4096)
        with suppress(ChildProcessError):
            while (child := os.waitpid(-1, os.WNOHANG))[0]:
                if child[0] == adapter:
                    return child[1]


def _end_as(status: int) -> None:
    """Die of the signal that killed the adapter's process. Return if it exited instead."""
    if not os.WIFSIGNALED(status):
        return
    number = os.WTERMSIG(status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
