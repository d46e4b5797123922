"""CSV: a header and a line for each row (RFC 4180). A value that is not there is an empty field.

Text that a spreadsheet would run as a formula has a `'` before it.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TextIO

from rnnbench.results.exports.export import Export
from rnnbench.results.rows import COLUMNS, Row
from rnnbench.results.text import spreadsheet


def _write(rows: Sequence[Row], stream: TextIO) -> None:
    writer = csv.DictWriter(stream, [column.name for column in COLUMNS], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: spreadsheet(value) if isinstance(value, str) else value for name, value in row.items()})


EXPORT = Export("csv", ".csv", "comma-separated values with a header", _write)
