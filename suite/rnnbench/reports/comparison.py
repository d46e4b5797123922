"""A comparison of two runs in the terminal: warnings first, then what changed, and the answer at the end."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from rnnbench.reports.comparison_tables import (
    TWO_MACHINES,
    UNCHANGED,
    comparison_tables,
    counts,
    headline,
    latency_note,
)
from rnnbench.reports.escape import grid, line, print_grid, show
from rnnbench.reports.tables import NOT_BELIEVED
from rnnbench.results import Comparison, short_names

MOST_ROWS = 40
"""Rows of one table; the page has more."""
STYLES = {
    "SLOWER": "bold red",
    "WORSE": "bold red",
    "MORE": "red",
    "above": "yellow",
    "FASTER": "green",
    "better": "green",
    "LESS": "green",
    "UNDECIDED": "yellow",
    "SAME": "dim",
    NOT_BELIEVED: "bold red",
}


def print_comparison(comparison: Comparison, console: Console) -> None:
    """What `rnnbench compare` and `ab` print, with short names; `compare` leaves out what stayed the same."""
    for warning in comparison.warnings:
        show(console, f"warning: {warning}", style="yellow")
    names = short_names(_trials(comparison))
    for content in comparison_tables(comparison):
        shown = grid(content.title)
        for index, name in enumerate(content.columns):
            text = index < content.text
            shown.add_column(name, justify="left" if text else "right", overflow="fold", no_wrap=not text)
        rows = [row for row in content.rows if comparison.paired or _word(row) not in UNCHANGED]
        for row in rows[:MOST_ROWS]:
            shown.add_row(*(line(names.get(cell, cell)) for cell in row), style=STYLES.get(_word(row)))
        if rows:
            print_grid(console, shown)
        if len(rows) > MOST_ROWS:
            show(console, f"… and {len(rows) - MOST_ROWS} more")
    show(console, headline(comparison), style="bold red" if comparison.regressed else "green")
    show(console, counts(comparison))
    if comparison.latencies:
        show(console, latency_note(comparison), style="dim")


def _word(row: tuple[str, ...]) -> str:
    return row[0].removesuffix(TWO_MACHINES)


def _trials(comparison: Comparison) -> Iterator[str]:
    for changes in (comparison.latencies, comparison.facts, comparison.costs, comparison.not_believed):
        yield from (change.trial for change in changes)
