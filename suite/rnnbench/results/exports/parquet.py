"""Parquet: the flat rows, with a type for each column. A value that is not there is NULL. Needs the extra `history`."""

from __future__ import annotations

from typing import BinaryIO

from rnnbench.results.exports.export import BinaryExport
from rnnbench.results.run import Run
from rnnbench.results.tables import COLUMN_TYPES, parquet


def _write(run: Run, stream: BinaryIO) -> None:
    stream.write(parquet(COLUMN_TYPES, run.rows(), "the export to Parquet"))


EXPORT = BinaryExport("parquet", ".parquet", "rows as Parquet; needs the extra history", _write)
