"""DuckDB: rows to Parquet, and SQL over Parquet files. The only module that imports DuckDB.

A database is in memory and lives as long as one call.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnbench.optional import require
from rnnbench.results import StoreError, visible

THREADS = 2
"""Of a query. The tables are small, and a machine that measures needs its other cores."""
Rows = Sequence[Mapping[str, object]]
Content = tuple[Mapping[str, str], Rows]
"""The columns of a table with their types, and its rows."""
Arrays = dict[str, Any]
"""NumPy arrays by column; masked where a value is NULL."""


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


def query(sql: str, files: Sequence[Path], types: Mapping[str, str], tables: Mapping[str, Content]) -> Table:
    """The result of one SELECT over the table `rows`, which is in Parquet files, and other tables, in memory.

    The statement can read nothing else and write nothing. `types` has the columns of `rows` that are there even where
    no file has them. Raises StoreError.
    """
    with _selected(sql, files, types, tables) as result:
        return Table(tuple(column[0] for column in result.description), tuple(result.fetchall()))


def query_arrays(sql: str, files: Sequence[Path], types: Mapping[str, str], tables: Mapping[str, Content]) -> Arrays:
    """The same as an array for each column, for results of many rows."""
    with _selected(sql, files, types, tables) as result:
        arrays: Arrays = result.fetchnumpy()
        return arrays


@contextmanager
def _selected(
    sql: str, files: Sequence[Path], types: Mapping[str, str], tables: Mapping[str, Content]
) -> Iterator[Any]:
    duckdb = require("duckdb", "history", "the history")
    with closing(_database()) as database:
        try:
            _make_view(database, files, types)
            for name, (columns, rows) in tables.items():
                _make_table(database, name, columns, rows)
            _lock(database, files)
            yield database.execute(_select(database, sql))
        except duckdb.Error as error:
            raise StoreError(f"the query failed: {visible(' '.join(str(error).split()))}") from error


def _database() -> Any:
    duckdb = require("duckdb", "history", "the history")
    return duckdb.connect(config={"threads": THREADS, "python_enable_replacements": False})


def _lock(database: Any, files: Sequence[Path]) -> None:
    """From here on only these files can be read. COPY cannot write them either: it would begin with another file."""
    database.execute("SET temp_directory = ''")
    database.execute(f"SET allowed_paths = {_list(files)}")
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")


def _select(database: Any, sql: str) -> Any:
    statements = database.extract_statements(sql)
    kinds = [statement.type.name for statement in statements]
    if kinds != ["SELECT"]:
        got = ", ".join(kinds) if kinds else "nothing"
        raise StoreError(f"the history answers one SELECT, DESCRIBE or SUMMARIZE, and this is: {got}")
    return statements[0]


def _make_view(database: Any, files: Sequence[Path], types: Mapping[str, str]) -> None:
    _make_table(database, "no_rows", types, ())
    stored = f" UNION ALL BY NAME SELECT * FROM read_parquet({_list(files)}, union_by_name = true)" if files else ""
    cast = ", ".join(f'TRY_CAST("{column}" AS {kind}) AS "{column}"' for column, kind in types.items())
    # An older rnnbench may have written a column with another type.
    database.execute(f"CREATE VIEW rows AS SELECT * REPLACE ({cast}) FROM (SELECT * FROM no_rows{stored})")


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
