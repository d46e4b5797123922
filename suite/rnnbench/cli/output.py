"""The text that a command prints beside tables. It may hold names and messages from outside: no terminal must obey
them."""

from __future__ import annotations

import fcntl
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from rnnbench.fleet import UnfinishedTrials
    from rnnbench.results import Record

LONGEST_LINE = 4_000
"""Most characters of a line: as many as the longest text from outside that is kept (`outside_text`)."""
LONGEST_WORD = 400
"""Most characters of a word in a mistake or a warning: more than the name of a trial has. The sentence around a longer
word can then still be seen."""
_BEGIN, _END = 200, 100
"""Characters that are kept of a longer word, at its beginning and end."""


def make_streams_usable() -> None:
    """Make the standard streams take whatever is printed.

    A stream that is closed, or an output that is open for reading alone, becomes the null device. Otherwise a file that
    is opened later would get the number of a closed one, and its output. Characters that an encoding lacks are shown as
    escapes.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            os.set_inheritable(number := os.open(os.devnull, os.O_RDWR), True)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
            _make_writable(stream)


def _make_writable(stream: TextIO) -> None:
    with suppress(OSError, ValueError):  # It has no descriptor.
        number = stream.fileno()
        if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            with open(os.devnull, "w") as null:
                os.dup2(null.fileno(), number)


def tell(text: object, *, is_error: bool = False) -> None:
    """Print lines of text, with escapes for what cannot be seen. Errors go to stderr, with long words cut."""
    from rnnbench.results import visible

    lines = (_short_words(str(text)) if is_error else str(text)).split("\n")
    click.echo("\n".join(visible(line, LONGEST_LINE) for line in lines), err=is_error)


def _short_words(text: str) -> str:
    """The text, without the middle of words that are longer than any that a person gives."""
    return re.sub(
        rf"\S{{{LONGEST_WORD + 1},}}",
        lambda word: f"{word[0][:_BEGIN]}… ({len(word[0]) - _BEGIN - _END:,} more characters) …{word[0][-_END:]}",
        text,
    )


def tell_warnings(warnings: Iterable[str]) -> None:
    """Print warnings on standard error, a line each."""
    for warning in warnings:
        tell(f"warning: {warning}", is_error=True)


def tell_left(left: Sequence[UnfinishedTrials], how_to_go_on: str) -> None:
    """Say which trials a cluster gave no record of."""
    from rnnbench.spelling import count

    without = count(sum(len(one.trials) for one in left), "trial")
    reasons = "; ".join(dict.fromkeys(one.reason for one in left))
    tell(f"\n{without} without a record: {reasons}.", is_error=True)
    tell(f"To continue: {how_to_go_on}", is_error=True)


def tell_failed_checks(records: Iterable[Record]) -> None:
    """Say what each check asks that failed, expected failures included."""
    from rnnbench.conformance import CHECK_SENTENCES

    failed = {name for record in records for name in record.failed_checks}
    if asked := [f"  {name}: {sentence}" for name, sentence in CHECK_SENTENCES.items() if name in failed]:
        tell("Of a program that passes a check, this is true (docs/conformance.md):")
        for line in asked:
            tell(line)


@contextmanager
def written(what: str, file: Path) -> Iterator[None]:
    """Say that a file was written inside this block, and whether it replaced an earlier one.

    Nothing is said of a device or a pipe: the output may go into it.
    """
    replaced = ", in place of the earlier file" if file.is_file() else ""
    yield
    if file.is_file():
        tell(f"{what}  {file}{replaced}")


def write_text_file(what: str, file: Path, text: str, option: str) -> None:
    """Write the file that a user has named with `option`, and say `what` it is. Raises StoreError."""
    from rnnbench.disk import write_given
    from rnnbench.results import StoreError

    try:
        with written(what, file):
            write_given(file, lambda stream: stream.write(text.encode()))
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"cannot write {file}: {reason}; choose another file with {option}") from error
