"""CSV: a header and a line for each row (RFC 4180). A value that is not there is an empty field."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TextIO

from rnnbench.results.exports.export import Export
from rnnbench.results.rows import COLUMNS, Row


def _write(rows: Sequence[Row], stream: TextIO) -> None:
    writer = csv.DictWriter(stream, [column.name for column in COLUMNS], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


EXPORT = Export("csv", ".csv", "comma-separated values with a header", _write)
