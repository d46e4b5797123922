"""Running a piece of work in a forked child, so that nothing it leaves behind stays in this process."""

from __future__ import annotations

import ctypes
import json
import os
import signal
from collections.abc import Callable

from rnnbench.run.messages import Failure, write_failure
from rnnbench.run.wire import Message

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """From here on the kernel kills this process when its parent is gone; a child that it forks has to say so anew."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def run_forked(work: Callable[[], Message]) -> Message:
    """What `work` returns in a child of this process; a failure where the child dies without returning anything."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        die_with_parent()
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            json.dump(work(), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return write_failure(Failure("crashed", f"died of {signal.Signals(os.WTERMSIG(status)).name}"))
    if not text:
        return write_failure(Failure("crashed", f"exited with status {os.waitstatus_to_exitcode(status)}"))
    reply: Message = json.loads(text)
    return reply
