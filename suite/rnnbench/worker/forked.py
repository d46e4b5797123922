"""Running a piece of work in a forked child, so that nothing it leaves behind stays in this process."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn, TypeVar

from rnnbench.results import Finding
from rnnbench.worker.channel import MAX_LINE
from rnnbench.worker.kernel import OomKills, die_with_parent, signal_name
from rnnbench.worker.protocol import BAD_MESSAGE, Answer, Command, Failed, decode_reply, encode_reply

Reply = TypeVar("Reply")


def run_forked(
    command: Command[Reply], work: Callable[[], Reply | Failed], findings: Callable[[], Sequence[Finding]] = tuple
) -> Answer[Reply]:
    """What `work`, which carries out `command`, returns in a child of this process, and its `findings` there.

    `Failed` where the child dies without an answer.
    """
    reading, writing = os.pipe()
    parent, oom_kills = os.getpid(), OomKills()
    child = os.fork()
    if child == 0:
        die_with_parent(parent)
        os.close(reading)
        _answer(writing, work, findings)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        line = pipe.readline(MAX_LINE)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        died = f"died of {signal_name(os.WTERMSIG(status))}"
        if os.WTERMSIG(status) == signal.SIGKILL and oom_kills.happened():
            return Answer(Failed("out-of-memory", f"{died}: the kernel's out-of-memory killer ended it"))
        return Answer(Failed("crashed", died))
    if not line:
        return Answer(Failed("crashed", f"exited with status {os.waitstatus_to_exitcode(status)}"))
    try:
        answer = decode_reply(line, command)
    except BAD_MESSAGE as error:
        return Answer(Failed("crashed", f"its forked child sent something that is no reply: {error}"))
    # What harmed the child is gone with it.
    return replace(answer, reply=replace(answer.reply, harmed=False)) if isinstance(answer.reply, Failed) else answer


def _answer(pipe: int, work: Callable[[], object], findings: Callable[[], Sequence[Finding]]) -> NoReturn:
    """Send what `work` returns, a line, and end here whatever happens: the stack above is the parent's."""
    status = 1
    try:
        with os.fdopen(pipe, "wb") as file:
            reply = work()
            file.write(encode_reply(reply, findings()) + b"\n")
        sys.stdout.flush()
        status = 0
    except BaseException:  # noqa: BLE001 the parent tells of the status, and the log has the traceback
        traceback.print_exc()
    os._exit(status)
