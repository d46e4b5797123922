"""What an export declares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TextIO

from rnnbench.results.rows import Row


@dataclass(frozen=True)
class Export:
    """One format to which a run's rows are written."""

    name: str
    """Value of `--format`."""
    ending: str
    """Ending of such a file, with its dot."""
    description: str
    """A few words for the command's help."""
    write: Callable[[Sequence[Row], TextIO], None]
    """Writes the rows, all of which have the columns `rows.COLUMNS`, to a text stream."""
