"""Worker commands and replies: typed, frozen messages, validated on both ends.

A command is a frozen dataclass that names the type of its reply: `class Look(Command[Seen])`. A worker answers each
command with one reply, or with `Failed`. To add a command, write its dataclass and give the worker a handler for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_args

from pydantic import TypeAdapter

from rnnbench.outside_text import safe_text
from rnnbench.results import Finding, Outcome

Reply = TypeVar("Reply")
BAD_MESSAGE = (ValueError, KeyError, TypeError, RecursionError)
"""The errors of reading a line that is no JSON or no message. pydantic's ValidationError is a ValueError."""


class Command(Generic[Reply]):
    """A command to a worker. Subclasses are frozen dataclasses; `Reply` is the type of the worker's reply."""


@dataclass(frozen=True)
class Done:
    """The reply to a command that has no result."""


@dataclass(frozen=True)
class Failed:
    """The reply to a command that a worker could not carry out."""

    outcome: Outcome
    reason: str
    harmed: bool = False
    """Whether the process may be unfit for other trials. It is then ended."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", safe_text(self.reason))


def encode_command(command: Command[Any], number: int = 0) -> bytes:
    """One line of JSON: the command's name, its fields and its number, which its reply must have."""
    fields = type_adapter(type(command)).dump_python(command, mode="json")
    return json.dumps({"command": type(command).__name__, "number": number, "fields": fields}).encode()


def decode_command(line: bytes, commands: dict[str, type[Command[Any]]]) -> tuple[Command[Any], int]:
    """The command in a line, and its number.

    Raises KeyError if it is not among `commands`, and pydantic's ValidationError.
    """
    message = json.loads(line)
    command: Command[Any] = type_adapter(commands[message["command"]]).validate_python(message["fields"])
    return command, message["number"]


@dataclass(frozen=True)
class Answer(Generic[Reply]):
    """A worker's answer to a command: its reply, and the findings made during the command."""

    reply: Reply | Failed
    findings: tuple[Finding, ...] = ()


def encode_reply(reply: object, findings: Sequence[Finding] = (), number: int = 0) -> bytes:
    """One line of JSON: {"reply": …, "number": …, "findings": […]}, or {"failed": …} with the same.

    `number` is that of the command.
    """
    kind = "failed" if isinstance(reply, Failed) else "reply"
    message = {kind: type_adapter(type(reply)).dump_python(reply, mode="json")}
    found = [finding.model_dump(mode="json") for finding in findings]
    return json.dumps({**message, "number": number, "findings": found}).encode()


def decode_reply(line: bytes, command: Command[Reply], number: int = 0) -> Answer[Reply]:
    """The answer in a line. Raises one of `BAD_MESSAGE`, for example if the reply is not of the command's type, or has
    the number of an earlier command.
    """
    message = json.loads(line)
    if not isinstance(message, dict):
        raise TypeError(f"{type(message).__name__} instead of an object")
    if (answered := message["number"]) != number:
        raise ValueError(f"it answers command {answered!r}, and not {number}")
    findings = type_adapter(_FINDINGS).validate_python(message.get("findings", ()))
    if "failed" in message:
        return Answer(type_adapter(Failed).validate_python(message["failed"]), findings)
    return Answer(type_adapter(reply_type(type(command))).validate_python(message["reply"]), findings)


def prepare_messages(commands: Iterable[type[Command[Any]]]) -> None:
    """Make the validators of these commands and their replies, for children of this process that are forked later.

    Each takes milliseconds.
    """
    for message in (Failed, _FINDINGS, *(kind for command in commands for kind in (command, reply_type(command)))):
        type_adapter(message)


_FINDINGS = tuple[Finding, ...]
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}


def reply_type(command: type[Command[Any]]) -> Any:
    (base,) = (base for base in command.__orig_bases__ if get_args(base))  # type: ignore[attr-defined]
    return get_args(base)[0]


def type_adapter(message: Any) -> TypeAdapter[Any]:
    if message not in _ADAPTERS:
        _ADAPTERS[message] = TypeAdapter(message)
    return _ADAPTERS[message]
