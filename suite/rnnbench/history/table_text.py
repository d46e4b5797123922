"""Tables of the history as plain text, safe in a terminal and shortened, and as CSV, whole."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from rnnbench.history.database import Table
from rnnbench.results import spreadsheet, visible

LONGEST_CELL = 100
"""Characters of a cell of a plain table."""


def plain_table(table: Table) -> Iterator[str]:
    """A header and a line for each row, in columns as wide as they need to be."""
    lines = [table.columns, *([_cell(value) for value in row] for row in table.rows)]
    shown = [[visible(cell, LONGEST_CELL) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    numbers = [_is_number(index, table) for index in range(len(widths))]
    for line in shown:
        cells = zip(line, widths, numbers, strict=True)
        yield "  ".join(cell.rjust(width) if number else cell.ljust(width) for cell, width, number in cells).rstrip()


def csv_lines(table: Table) -> Iterator[str]:
    """CSV (RFC 4180), with every text and figure whole. Text that begins as a formula has a `'` before it."""
    for row in (table.columns, *table.rows):
        line = io.StringIO()
        cells = [spreadsheet(value) if isinstance(value, str) else value for value in row]
        csv.writer(line, lineterminator="").writerow(cells)
        yield line.getvalue()


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _is_number(column: int, table: Table) -> bool:
    return all(row[column] is None or isinstance(row[column], int | float) for row in table.rows)
