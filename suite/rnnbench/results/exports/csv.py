"""CSV: a header and a line for each row (RFC 4180). A value that is not there is an empty field.

Text that a spreadsheet would run as a formula has a `'` before it.
"""

from __future__ import annotations

import csv
from typing import TextIO

from rnnbench.results.exports.export import Export
from rnnbench.results.rows import COLUMNS
from rnnbench.results.run import Run
from rnnbench.results.text import spreadsheet


def _write(run: Run, stream: TextIO) -> None:
    writer = csv.DictWriter(stream, [column.name for column in COLUMNS], lineterminator="\n")
    writer.writeheader()
    for row in run.rows():
        writer.writerow({name: spreadsheet(value) if isinstance(value, str) else value for name, value in row.items()})


EXPORT = Export("csv", ".csv", "rows of comma-separated values, with a header", _write)
