"""Text that comes from outside the suite: messages of compilers and adapters, notes, versions, logs.

It may have anything in it: half a surrogate pair, terminal commands, 200 MB in one line. It is made safe and short
where it enters, so that everything after it can print, store and compare it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

TEXT_LIMIT = 4000
"""Characters of one text that are kept. A compiler's message says what is wrong at its beginning or at its end."""
_KEPT_AT_THE_END = 1000
_ROOM_FOR_THE_CUT = 50
"""What says that text was cut counts too: a text that is short is not cut again."""
LOG_ENDS = "; its log ends: "
"""Begins the end of a log behind what a process died of."""
LOG_TAIL = 64 << 10
"""Bytes at the end of a log that are read."""
LOG_LINES = 3
"""Lines at the end of a log that the reason of a failure quotes."""
_TERMINAL_COMMANDS = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and newline, marks that change the direction of text, and lone surrogates."""
_BREAKS = re.compile(r"[\t\n\u2028\u2029]\s*")
"""What is left of characters that begin another line or column, and the indentation after it."""


def safe_text(text: str, limit: int = TEXT_LIMIT) -> str:
    """The text without what could break a terminal or a file, and cut to `limit` characters.

    An unsafe character becomes U+FFFD, and commands to a terminal go. A cut is in the middle and says how long it is,
    where there is room for that.
    """
    if len(text) <= limit and text.isprintable():
        return text
    if len(text) > limit:
        end = min(_KEPT_AT_THE_END, limit // 4)
        begin = limit - end - _ROOM_FOR_THE_CUT
        if begin > 0:
            text = f"{text[:begin]} … [{len(text) - begin - end} characters cut] … {text[len(text) - end :]}"
        else:
            text = f"{text[: limit - 1 - end]}…{text[len(text) - end :]}"
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", _TERMINAL_COMMANDS.sub("", text.replace("\r\n", "\n")))


def one_line(text: str, limit: int = TEXT_LIMIT) -> str:
    """The text made safe, and in one line."""
    return _BREAKS.sub(" ", safe_text(text, limit))


class Place(str):
    """A note of this suite on an exception: where it was raised. Frameworks' notes are about their own tracebacks."""


def describe_error(error: BaseException) -> str:
    """Its type, message and place, made safe. An exception whose message cannot be made is told by its type."""
    try:
        message = str(error)
    except BaseException as another:  # noqa: BLE001 anything may be raised by a class from outside
        message = f"its message cannot be shown: {type(another).__name__}"
    places = [f" ({note})" for note in getattr(error, "__notes__", ()) if isinstance(note, Place)]
    return safe_text(": ".join(filter(None, (type(error).__name__, message)))) + "".join(places)


def read_tail(path: Path) -> str:
    """The last 64 KiB of a log, or nothing where there is none. A pipe in its place is not waited for."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as log:
            log.seek(0, 2)
            log.seek(max(0, log.tell() - LOG_TAIL))
            return log.read(LOG_TAIL).decode(errors="replace")
    except OSError:
        return ""


def quoted_end(log: Path) -> str:
    """The end of a log, to follow what its process died of: `; its log ends: … | …`. Empty where it has no text."""
    lines = [line for line in read_tail(log).splitlines() if line.strip()]
    return LOG_ENDS + " | ".join(lines[-LOG_LINES:]) if lines else ""


def _if_text(value: object) -> object:
    return safe_text(value) if isinstance(value, str) else value


OutsideText = Annotated[str, BeforeValidator(_if_text)]
"""A field of a message or a record that holds text from outside."""
