"""What an export declares. It writes a run to a text file, to a binary file or to a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

from rnnbench.results.run import Run


@dataclass(frozen=True)
class Export:
    """A format of text, in UTF-8."""

    name: str
    """Value of `--format`."""
    ending: str
    """Ending of such a file, with its dot."""
    description: str
    """A few words for the command's help."""
    write: Callable[[Run, TextIO], None]


@dataclass(frozen=True)
class BinaryExport:
    """A format of bytes. It is not written to a terminal."""

    name: str
    ending: str
    description: str
    write: Callable[[Run, BinaryIO], None]


@dataclass(frozen=True)
class FolderExport:
    """A format of several files in one folder."""

    name: str
    description: str
    write: Callable[[Run, Path], bool]
    """Whether it replaced an earlier export of the run.

    Raises StoreError where the folder has something else in it, and OSError where it cannot be written.
    """


AnyExport = Export | BinaryExport | FolderExport
