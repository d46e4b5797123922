"""What a command prints beside tables. It may hold names and messages from outside, which no terminal must obey."""

from __future__ import annotations

import click

LONGEST_LINE = 4_000
"""Characters of a line: those of the longest text from outside that is kept (`outside_text`)."""


def tell(text: object, *, is_error: bool = False) -> None:
    """Print lines of text. Of each, what cannot be seen is shown as escapes. Errors and warnings go to stderr."""
    from rnnbench.results import visible

    lines = str(text).split("\n")
    click.echo("\n".join(visible(line, LONGEST_LINE) for line in lines), err=is_error)
