"""The table of what is kept from one run to the next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console

from rnnbench.cache import CacheFolder, Use
from rnnbench.reports import units
from rnnbench.reports.escape import show
from rnnbench.reports.tables import Table, print_table


def print_cache(folder: CacheFolder, uses: Sequence[Use], console: Console) -> None:
    """The folder, and a line for each kind of entry."""
    total = units.nbytes(sum(use.nbytes for use in uses))
    show(console, f"folder  {folder.path}")
    show(console, f"size    {total} of {units.nbytes(folder.bound)}")
    if uses:
        print_table(_table(uses), console)


def _table(uses: Sequence[Use]) -> Table:
    rows = tuple(
        (use.kind, f"{use.entries:,}", units.nbytes(use.nbytes), _time(use.oldest), _time(use.newest)) for use in uses
    )
    return Table("Entries", ("of", "entries", "size", "oldest use (UTC)", "newest use (UTC)"), rows)


def _time(seconds: float) -> str:
    """A file of another machine may have a time that is in no calendar."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}" if seconds else units.MISSING
    except (ValueError, OverflowError, OSError):
        return units.MISSING
