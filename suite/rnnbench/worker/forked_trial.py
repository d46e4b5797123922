"""`Fork`: a child of a worker that has imported a framework serves one trial. The worker itself stays unchanged."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import NoReturn

from rnnbench.results import Finding
from rnnbench.worker import commands
from rnnbench.worker.channel import Channel, ChannelClosedError
from rnnbench.worker.preload import freeze, preload
from rnnbench.worker.process_family import die_with_parent, keep_ended_children
from rnnbench.worker.protocol import Done
from rnnbench.worker.server import Handlers, answer, serve


class Forking:
    """Carries out `Fork`: a child serves the channel up to `EndFork`, while this process waits.

    Only the child answers. If the child dies, this process dies in the same way, so that the suite sees it.
    """

    def __init__(
        self,
        channel: Channel,
        handlers: Handlers,
        take_findings: Callable[[], tuple[Finding, ...]],
        prepare: Callable[[commands.Fork], object],
    ) -> None:
        self._channel = channel
        self._handlers = handlers
        self._take_findings = take_findings
        self._prepare = prepare
        """Called in this process before each fork."""

    def __call__(self, command: commands.Fork) -> None:
        preload(command.modules)
        self._prepare(command)
        freeze()
        keep_ended_children()
        parent = os.getpid()
        served, tell_served = os.pipe()
        child = os.fork()
        if child == 0:
            die_with_parent(parent)
            self._serve_in_child(tell_served)
        os.close(tell_served)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            os.kill(os.getpid(), os.WTERMSIG(status))
        os.set_blocking(served, False)
        with os.fdopen(served, "rb", buffering=0) as pipe:
            if not pipe.read(1):
                os._exit(os.waitstatus_to_exitcode(status))

    def _serve_in_child(self, tell_served: int) -> NoReturn:
        """Serve up to `EndFork`, tell the parent, and exit. Never return: the loop above this call is the parent's.

        The parent needs to be told, since a program may also exit with status 0 before `EndFork`.
        """
        status = 0
        try:
            answer(self._channel, Done())
            serve(self._channel, self._handlers, commands.EndFork, self._take_findings)
            os.write(tell_served, b".")
        except ChannelClosedError:
            pass
        except BaseException:  # noqa: BLE001 its parent ends with the same status
            traceback.print_exc()
            status = 1
        os._exit(status)
