"""The task on a node, as Ray runs it: it starts the process that measures, and passes its messages on.

It is an actor that lives for one trial group. Unlike a generator task, an actor also works through `ray://`.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from rnnbench.fleet.messages import GO, GroupFailed, encode
from rnnbench.optional import require
from rnnbench.outside_text import quoted_end
from rnnbench.worker import Channel, ChannelClosedError

MODULE = "rnnbench.fleet.node_process"
BEGIN_LIMIT_S = 120.0
"""Seconds in which the process must start and send the facts of the node."""
EXIT_LIMIT_S = 5.0
"""Seconds in which a process that has closed its channel must exit. It is then killed."""


class GroupTask:
    """One trial group on one node. Ray creates it there, and the driver calls its methods."""

    def __init__(self) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 it lives as long as the task
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                # -P: nothing is imported from the working folder.
                [sys.executable, "-P", "-m", MODULE, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                env=node_environment(),
                start_new_session=True,
            )
        self._channel = Channel(ours)

    def begin(self, work: bytes) -> tuple[str, bytes]:
        """Ray's id of the node, and the first message of the process: `NodeFacts`, or `GroupFailed`."""
        node: str = require("ray", "fleet", "a task").get_runtime_context().get_node_id()
        try:
            self._channel.send(work, BEGIN_LIMIT_S)
            line = self._channel.receive(BEGIN_LIMIT_S)
        except (ChannelClosedError, TimeoutError):
            return node, self._failed()
        return node, line or encode(GroupFailed(f"its process did not start within {BEGIN_LIMIT_S:.0f} s"))

    def measure(self) -> None:
        """Let the process measure."""
        self._channel.send(GO)

    def messages(self, wait_s: float) -> list[bytes]:
        """The messages that the process has sent. Waits up to `wait_s` seconds for the first one."""
        lines: list[bytes] = []
        try:
            line = self._channel.receive(wait_s)
            while line is not None:
                lines.append(line)
                line = self._channel.receive(0)
        except ChannelClosedError:
            return lines or [self._failed()]
        return lines

    def _failed(self) -> bytes:
        """A message about how the process died."""
        try:
            status = self._process.wait(EXIT_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        died = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
        log_end = quoted_end(Path(f"/proc/self/fd/{self._log.fileno()}"))
        return encode(GroupFailed(f"the process that measures {died}{log_end}"))


def node_environment() -> dict[str, str]:
    """The environment variables that the node was started with, without Ray's.

    Ray changes its process's variables later (OMP_NUM_THREADS=1, PYTHONBREAKPOINT). The kernel still has the first
    ones.
    """
    entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    pairs = (entry.decode(errors="surrogateescape").partition("=") for entry in entries if entry)
    return {name: value for name, _, value in pairs if not name.startswith("RAY_")}
