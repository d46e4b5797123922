"""DuckDB: rows to Parquet, and SQL over Parquet files. The only module that imports DuckDB.

A database is in memory and lives as long as one call.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnbench.optional import require
from rnnbench.results import StoreError

THREADS = 2
"""Of a query. The tables are small, and a machine that measures needs its other cores."""
Rows = Sequence[Mapping[str, object]]


@dataclass(frozen=True)
class Table:
    """The result of a query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def parquet(types: Mapping[str, str], rows: Rows) -> bytes:
    """The rows as a Parquet file. A value that its column's type cannot hold is empty."""
    with tempfile.TemporaryDirectory() as folder, closing(_database()) as database:
        file = Path(folder) / "rows.parquet"
        _make_table(database, "written", types, rows)
        database.execute(f"COPY written TO {_quoted(str(file))} (FORMAT parquet, COMPRESSION zstd)")
        return file.read_bytes()


def query(
    sql: str, files: Sequence[Path], types: Mapping[str, str], tables: Mapping[str, tuple[Mapping[str, str], Rows]]
) -> Table:
    """The result of one SELECT over the table `rows`, which is in Parquet files, and other tables, in memory.

    The statement can read nothing else and write nothing. `types` has the columns of `rows` that are there even where
    no file has them. Raises StoreError.
    """
    duckdb = require("duckdb", "history", "the history")
    with closing(_database()) as database:
        try:
            _make_view(database, files, types)
            for name, (columns, rows) in tables.items():
                _make_table(database, name, columns, rows)
            _lock(database, files)
            return _selected(database, sql)
        except duckdb.Error as error:
            raise StoreError(f"the query failed: {_first_lines(str(error))}") from error


def _database() -> Any:
    duckdb = require("duckdb", "history", "the history")
    return duckdb.connect(config={"threads": THREADS, "python_enable_replacements": False})


def _lock(database: Any, files: Sequence[Path]) -> None:
    """From here on only these files can be read. COPY cannot write them either: it would begin with another file."""
    database.execute("SET temp_directory = ''")
    database.execute(f"SET allowed_paths = {_list(files)}")
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")


def _selected(database: Any, sql: str) -> Table:
    statements = database.extract_statements(sql)
    kinds = [statement.type.name for statement in statements]
    if kinds != ["SELECT"]:
        got = ", ".join(kinds) if kinds else "nothing"
        raise StoreError(f"the history answers one SELECT, DESCRIBE or SUMMARIZE, and this is: {got}")
    result = database.execute(statements[0])
    return Table(tuple(column[0] for column in result.description), tuple(result.fetchall()))


def _make_view(database: Any, files: Sequence[Path], types: Mapping[str, str]) -> None:
    _make_table(database, "no_rows", types, ())
    stored = f" UNION ALL BY NAME SELECT * FROM read_parquet({_list(files)}, union_by_name = true)" if files else ""
    database.execute(f"CREATE VIEW rows AS SELECT * FROM no_rows{stored}")


def _make_table(database: Any, name: str, types: Mapping[str, str], rows: Rows) -> None:
    """A table whose rows come as JSON: DuckDB takes rows one at a time else, which is a thousand times slower."""
    columns = ", ".join(f'"{column}" {kind}' for column, kind in types.items())
    database.execute(f"CREATE TABLE {name} ({columns})")
    if rows:
        structure = json.dumps([{column: _json_type(kind) for column, kind in types.items()}])
        database.execute(
            f"INSERT INTO {name} SELECT unnest(from_json(?, ?), recursive := true)", [json.dumps(list(rows)), structure]
        )


def _json_type(kind: str) -> object:
    return [kind.removesuffix("[]")] if kind.endswith("[]") else kind


def _list(files: Sequence[Path]) -> str:
    return "[" + ", ".join(_quoted(str(file.resolve())) for file in files) + "]"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _first_lines(message: str) -> str:
    """DuckDB's message without the blank lines, in one line."""
    return " ".join(message.split())
