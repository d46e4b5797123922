"""The worker's side of the channel: it reads commands, calls their handlers and sends the replies."""

from __future__ import annotations

import os
import resource
import select
import socket
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from rnnbench.backends import AdapterError, BuildError
from rnnbench.outside_text import describe_error
from rnnbench.results import Finding, Outcome
from rnnbench.worker.channel import Channel, ChannelClosedError
from rnnbench.worker.process_family import die_with_parent
from rnnbench.worker.protocol import Command, Failed, decode_command, encode_reply

Handlers = Mapping[type[Command[Any]], Callable[[Any], object]]
"""The handler of each command: called with the command, it returns the reply, or None if it has replied itself."""
Result = TypeVar("Result")


def open_channel() -> Channel:
    """The worker's end of the channel. The last word of the command line is the number of its descriptor.

    Exits if the suite has ended already: it may have done so before `die_with_parent` was called.
    """
    end = socket.socket(fileno=int(sys.argv[-1]))
    poll = select.poll()
    poll.register(end, select.POLLHUP)
    if poll.poll(0):
        os._exit(1)
    return Channel(end)


def receive_command(channel: Channel, commands: Mapping[type[Command[Any]], object]) -> Command[Any]:
    """Wait for the next command. Its number is that of the following `answer`. Raises ChannelClosedError."""
    line = channel.receive()
    assert line is not None, "without a timeout a channel waits"
    command, channel.answers = decode_command(line, {command.__name__: command for command in commands})
    return command


def answer(channel: Channel, reply: object, findings: Sequence[Finding] = ()) -> None:
    """Send the reply to the last command. Raises ChannelClosedError."""
    channel.send(encode_reply(reply, findings, channel.answers))


def run_worker(handlers: Handlers) -> None:
    """The whole work of a process: carry out commands until the suite closes the channel, or ends."""
    die_with_parent()
    with suppress(ChannelClosedError):
        serve(open_channel(), handlers)


def serve(
    channel: Channel,
    handlers: Handlers,
    last: type[Command[Any]] | None = None,
    take_findings: Callable[[], Sequence[Finding]] = tuple,
) -> None:
    """Carry out commands until the channel closes, or until a command of type `last` is done.

    `take_findings` is called once after each command, and returns the findings during it. Raises ChannelClosedError.
    """
    while True:
        command = receive_command(channel, handlers)
        reply = attempt(partial(handlers[type(command)], command), "run-failed")
        if reply is not None:
            answer(channel, reply, take_findings())
        flush_output()
        if last is not None and isinstance(command, last):
            return


def attempt(work: Callable[[], Result], outcome: Outcome) -> Result | Failed:
    """Run `work`. Returns its result, or `Failed` with `outcome` if it raises. The traceback goes to the worker's log.

    If `work` forked a child and the child returns too, the child exits here: only one process may use the channel.
    """
    worker = os.getpid()
    reply = _attempted(work, outcome)
    if os.getpid() != worker:
        os._exit(0)
    return reply


def _attempted(work: Callable[[], Result], outcome: Outcome) -> Result | Failed:
    """As `attempt`. A program that asks the interpreter to exit harms the process: it may have cleaned up before."""
    try:
        return work()
    except MemoryError as error:
        return Failed("out-of-memory", describe_error(error))
    except SystemError as error:
        _log_traceback()
        return Failed("out-of-memory" if _has_limited_memory() else outcome, describe_error(error))
    except BuildError as error:
        return Failed("build-failed", str(error))
    except AdapterError as error:
        return Failed("run-failed", str(error))
    except Exception as error:  # noqa: BLE001 any error of a framework ends its trial, not the run
        _log_traceback()
        return Failed(outcome, describe_error(error))
    except BaseException as error:  # noqa: BLE001 a program that exits must not take the worker's own stack with it
        _log_traceback()
        return Failed("crashed", f"asked the interpreter to exit: {describe_error(error)}", harmed=True)


def _has_limited_memory() -> bool:
    """Whether this process has a limit of memory. Without memory for a MemoryError, Python raises a SystemError."""
    return resource.getrlimit(resource.RLIMIT_DATA)[0] != resource.RLIM_INFINITY


def _log_traceback() -> None:
    """Print the traceback. Errors are ignored: a program may have closed or replaced the stream."""
    with suppress(BaseException):
        traceback.print_exc()


def flush_output() -> None:
    """Flush standard output. Errors are ignored: a program may have closed or replaced the stream."""
    with suppress(BaseException):
        sys.stdout.flush()
