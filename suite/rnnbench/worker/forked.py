"""Running a piece of work in a forked child, so that nothing it leaves behind stays in this process."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from typing import TypeVar

from rnnbench.worker.protocol import Command, Failed, decode_reply, encode_reply

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1

Reply = TypeVar("Reply")


def die_with_parent() -> None:
    """The kernel kills this process when its parent ends (prctl(2)). A forked child has to ask for it again."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def run_forked(command: Command[Reply], work: Callable[[], Reply | Failed]) -> Reply | Failed:
    """What `work`, which carries out `command`, returns in a child of this process.

    `Failed` where the child dies without an answer.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        die_with_parent()
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(encode_reply(work()))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        line = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return Failed("crashed", f"died of {signal.Signals(os.WTERMSIG(status)).name}")
    if not line:
        return Failed("crashed", f"exited with status {os.waitstatus_to_exitcode(status)}")
    return decode_reply(line, command)
