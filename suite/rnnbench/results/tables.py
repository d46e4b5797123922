"""Rows as a table of DuckDB, and as Parquet. DuckDB is in the extra `history`.

A database is in memory and lives as long as one call.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from rnnbench.optional import require
from rnnbench.results.rows import COLUMNS

THREADS = 2
"""Of a query. The tables are small, and a machine that measures needs its other cores."""
FIGURE = "DOUBLE"
TYPES: Mapping[str, str] = {
    "count": "BIGINT",
    "steps": "BIGINT",
    "flag": "BOOLEAN",
    "text": "VARCHAR",
    "json": "VARCHAR",
    "time": "TIMESTAMP",
}
"""DuckDB's type of a column by its unit. Every other unit is that of a figure."""
COLUMN_TYPES: Mapping[str, str] = {
    column.name: FIGURE if column.name.startswith("metric_") else TYPES.get(column.unit, FIGURE) for column in COLUMNS
}
"""Every column of the flat row with DuckDB's type."""
TableRows = Sequence[Mapping[str, object]]


def parquet(types: Mapping[str, str], rows: TableRows, purpose: str) -> bytes:
    """The rows as a Parquet file. A value that its column's type cannot hold is empty."""
    with tempfile.TemporaryDirectory() as folder, closing(open_database(purpose)) as database:
        file = Path(folder) / "rows.parquet"
        make_table(database, "written", types, rows)
        database.execute(f"COPY written TO {sql_literal(str(file))} (FORMAT parquet, COMPRESSION zstd)")
        return file.read_bytes()


def open_database(purpose: str) -> Any:
    """A database in memory. Raises MissingExtraError, which says what `purpose` needs."""
    duckdb = require("duckdb", "history", purpose)
    return duckdb.connect(config={"threads": THREADS, "python_enable_replacements": False})


def make_table(database: Any, name: str, types: Mapping[str, str], rows: TableRows) -> None:
    """A table whose rows come as JSON: DuckDB takes rows one at a time else, which is a thousand times slower."""
    columns = ", ".join(f'"{column}" {kind}' for column, kind in types.items())
    database.execute(f"CREATE TABLE {name} ({columns})")
    if rows:
        structure = json.dumps([{column: _json_type(kind) for column, kind in types.items()}])
        database.execute(
            f"INSERT INTO {name} SELECT unnest(from_json(?, ?), recursive := true)", [json.dumps(list(rows)), structure]
        )


def sql_literal(text: str) -> str:
    """A literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _json_type(kind: str) -> object:
    return [kind.removesuffix("[]")] if kind.endswith("[]") else kind
