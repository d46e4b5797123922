"""The worker's side of the line: a process that reads commands, calls their handlers and sends what they return."""

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
from rnnbench.worker.channel import Channel
from rnnbench.worker.protocol import Command, Failed, decode_command, encode_reply

Handlers = Mapping[type[Command[Any]], Callable[[Any], object]]
"""What carries out each command: called with the command, returns its reply, or None where it has replied itself."""
Result = TypeVar("Result")


def open_channel() -> Channel:
    """The worker's end: the descriptor whose number is the last word of the command line.

    Ends this process where the suite has gone already: it may have done so before `die_with_parent` was called.
    """
    end = socket.socket(fileno=int(sys.argv[-1]))
    poll = select.poll()
    poll.register(end, select.POLLHUP)
    if poll.poll(0):
        os._exit(1)
    return Channel(end)


def receive_command(channel: Channel, commands: Mapping[type[Command[Any]], object]) -> Command[Any]:
    """The next command, however long it takes. Raises ChannelClosedError."""
    line = channel.receive()
    assert line is not None, "without a timeout a channel waits"
    return decode_command(line, {command.__name__: command for command in commands})


def serve(
    channel: Channel,
    handlers: Handlers,
    last: type[Command[Any]] | None = None,
    take_findings: Callable[[], Sequence[Finding]] = tuple,
) -> None:
    """Carry out commands until the channel closes, or until one of type `last` is done.

    `take_findings` gives what was found during the command, and is called once after each. Raises ChannelClosedError.
    """
    while True:
        command = receive_command(channel, handlers)
        reply = attempt(partial(handlers[type(command)], command), "run-failed")
        if reply is not None:
            channel.send(encode_reply(reply, take_findings()))
        flush_output()
        if last is not None and isinstance(command, last):
            return


def attempt(work: Callable[[], Result], outcome: Outcome) -> Result | Failed:
    """What `work` returns, or `Failed` with that outcome where it raises. The traceback goes to the worker's log.

    A child that `work` forked, and that returns too, ends here: there is one worker at the channel.
    """
    worker = os.getpid()
    reply = _attempted(work, outcome)
    if os.getpid() != worker:
        os._exit(0)
    return reply


def _attempted(work: Callable[[], Result], outcome: Outcome) -> Result | Failed:
    """A program that asks the interpreter to exit has harmed the process: it has ended what it thinks it owns."""
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
    except Exception as error:  # noqa: BLE001 whatever a framework raises ends its trial, not the run
        _log_traceback()
        return Failed(outcome, describe_error(error))
    except BaseException as error:  # noqa: BLE001 a program that exits must not take the worker's own stack with it
        _log_traceback()
        return Failed("crashed", f"asked the interpreter to exit: {describe_error(error)}", harmed=True)


def _has_limited_memory() -> bool:
    """Whether this process may get no memory for a MemoryError: a function of Python then ends without an exception."""
    return resource.getrlimit(resource.RLIMIT_DATA)[0] != resource.RLIM_INFINITY


def _log_traceback() -> None:
    """A program may have closed or replaced the stream that it is written to."""
    with suppress(BaseException):
        traceback.print_exc()


def flush_output() -> None:
    """Write out what was printed, where the program has left the stream that it was printed to."""
    with suppress(BaseException):
        sys.stdout.flush()
