"""Running a piece of work in a forked child, so that nothing it leaves behind stays in this process."""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn, TypeVar

from rnnbench.measure import memory_limit
from rnnbench.results import Finding
from rnnbench.worker.channel import MAX_LINE
from rnnbench.worker.process_family import OomKills, die_with_parent, has_ended, keep_ended_children, signal_name
from rnnbench.worker.protocol import BAD_MESSAGE, Answer, Command, Failed, decode_reply, encode_reply

Reply = TypeVar("Reply")
POLL_MS = 100.0
"""Milliseconds between two checks whether a silent child has ended."""
_PIECE = 1 << 16


def run_forked(
    command: Command[Reply], work: Callable[[], Reply | Failed], findings: Callable[[], Sequence[Finding]] = tuple
) -> Answer[Reply]:
    """Run `work` in a child of this process. Return what it returns there, and the child's `findings`.

    `work` carries out `command`. The reply is `Failed` if the child dies without an answer.
    """
    keep_ended_children()
    reading, writing = os.pipe()
    parent, oom_kills = os.getpid(), OomKills()
    child = os.fork()
    if child == 0:
        die_with_parent(parent)
        os.close(reading)
        _answer(writing, work, findings)
    os.close(writing)
    try:
        line = _read_answer(reading, child)
    finally:
        os.close(reading)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        died = f"died of {signal_name(os.WTERMSIG(status))}"
        if os.WTERMSIG(status) == signal.SIGKILL and oom_kills.happened():
            killer = f"the kernel's out-of-memory killer ended it, {memory_limit()}"
            return Answer(Failed("out-of-memory", f"{died}: {killer}"))
        return Answer(Failed("crashed", died))
    if not line:
        return Answer(Failed("crashed", f"exited with status {os.waitstatus_to_exitcode(status)}"))
    try:
        answer = decode_reply(line, command)
    except BAD_MESSAGE as error:
        return Answer(Failed("crashed", f"its forked child sent something that is no reply: {error}"))
    # What harmed the child is gone with it.
    return replace(answer, reply=replace(answer.reply, harmed=False)) if isinstance(answer.reply, Failed) else answer


def _read_answer(pipe: int, child: int) -> bytes:
    """The child's line. If the child ends early, what it wrote until then, even if a grandchild keeps the pipe open."""
    line = bytearray()
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    while b"\n" not in line and len(line) < MAX_LINE:
        if not poll.poll(POLL_MS):
            if not has_ended(child):
                continue
            if not poll.poll(0):  # All that it wrote before its end has arrived by now.
                break
        piece = os.read(pipe, _PIECE)
        if not piece:
            break
        line += piece
    first, end, _ = bytes(line).partition(b"\n")
    return first + end


def _answer(pipe: int, work: Callable[[], object], findings: Callable[[], Sequence[Finding]]) -> NoReturn:
    """Send what `work` returns as a line, then exit. Never return: the stack above is the parent's."""
    status = 1
    try:
        with os.fdopen(pipe, "wb") as file:
            reply = work()
            file.write(encode_reply(reply, findings()) + b"\n")
        sys.stdout.flush()
        status = 0
    except BaseException:  # noqa: BLE001 the parent reports the status, and the log has the traceback
        traceback.print_exc()
    os._exit(status)
