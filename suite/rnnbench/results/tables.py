"""Rows as a table of DuckDB, and as Parquet. DuckDB is in the extra `history`.

A database is in memory and lives as long as one call.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

from rnnbench.disk import error_of_disk
from rnnbench.optional import require
from rnnbench.outside_text import one_line
from rnnbench.results.reading import StoreError
from rnnbench.results.rows import COLUMNS

THREADS = 2
"""Threads of a query. The tables are small, and a machine that measures needs its other cores."""
LARGEST_ROW = 64 << 20
"""Bytes of a row as JSON."""
_SHOWN = 400
"""Characters of an error of DuckDB that are shown."""
FIGURE = "DOUBLE"
TIME, COUNT = "TIMESTAMP", "BIGINT"
TYPES: Mapping[str, str] = {
    "count": COUNT,
    "steps": COUNT,
    "flag": "BOOLEAN",
    "text": "VARCHAR",
    "json": "VARCHAR",
    "time": TIME,
}
"""DuckDB's type of a column by its unit. Every other unit is that of a figure."""
COLUMN_TYPES: Mapping[str, str] = {
    column.name: FIGURE if column.name.startswith("metric_") else TYPES.get(column.unit, FIGURE) for column in COLUMNS
}
"""Every column of the flat row with DuckDB's type."""
TableRows = Iterable[Mapping[str, object]]


def parquet(types: Mapping[str, str], rows: TableRows, purpose: str) -> bytes:
    """The rows as a Parquet file. A value that its column's type cannot hold is empty.

    Raises OSError, which names the folder of temporary files where that one's disk is full, and StoreError where DuckDB
    cannot use a temporary file, as at a limit of open files.
    """
    with _temporary_files(), tempfile.TemporaryFile() as file, closing(open_database(purpose)) as database:
        options = "FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false"
        with _lines_of(rows) as lines:  # A table in between would take as long as the rest.
            database.execute(f"COPY ({_selection(lines, types)}) TO {_path_of(file)} ({options})")
        return file.read()


@contextmanager
def _temporary_files() -> Iterator[None]:
    """Raise an error of the disk with its folder: a temporary file has no name, and DuckDB has errors of its own."""
    try:
        yield
    except Exception as error:
        folder = tempfile.gettempdir()
        if of_disk := error_of_disk(Path(folder)):
            raise OSError(of_disk.errno, of_disk.strerror, folder) from error
        if isinstance(error, require("duckdb", "history", "a table").IOException):
            raise StoreError(
                f"DuckDB cannot use a temporary file in {folder}: {one_line(str(error), _SHOWN)}; see that enough "
                f"files may be opened (`ulimit -n`), or name another folder with TMPDIR"
            ) from error
        raise


def _path_of(file: IO[Any]) -> str:
    """The literal of a file's path. It has no name of its own, so that nothing is left of it where a kill comes."""
    return sql_literal(f"/proc/self/fd/{file.fileno()}")


def open_database(purpose: str) -> Any:
    """A database in memory. Raises MissingExtraError, which says what `purpose` needs."""
    duckdb = require("duckdb", "history", purpose)
    return duckdb.connect(config={"threads": THREADS, "python_enable_replacements": False})


def make_table(database: Any, name: str, types: Mapping[str, str], rows: TableRows) -> None:
    """A table whose rows come as lines of JSON. DuckDB would take them one at a time, a thousand times slower.

    As one JSON text in a parameter they would take 2 MB each. Half a surrogate pair, which UTF-8 has no bytes for,
    becomes a question mark. A time that cannot be, as of a 99th day, and a count of more than 64 bits are empty: no row
    is left out.
    """
    columns = ", ".join(f'"{column}" {kind}' for column, kind in types.items())
    database.execute(f"CREATE TABLE {name} ({columns})")
    if rows == ():
        return
    with _temporary_files(), _lines_of(rows) as lines:
        database.execute(f"INSERT INTO {name} BY NAME {_selection(lines, types)}")


@contextmanager
def _lines_of(rows: TableRows) -> Iterator[IO[str]]:
    """A file with a line of JSON for each row."""
    with tempfile.TemporaryFile("w", encoding="utf-8", errors="replace") as lines:
        lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        lines.flush()
        yield lines


def _selection(lines: IO[str], types: Mapping[str, str]) -> str:
    """The statement that reads the lines."""
    tried = {column: kind for column, kind in types.items() if kind in (TIME, COUNT)}
    read = {**types, **dict.fromkeys(tried, "VARCHAR")}
    kinds = ", ".join(f"{sql_literal(column)}: {sql_literal(kind)}" for column, kind in read.items())
    cast = ", ".join(f'TRY_CAST("{column}" AS {kind}) AS "{column}"' for column, kind in tried.items())
    return (
        f"SELECT * {f'REPLACE ({cast}) ' if tried else ''}FROM read_json({_path_of(lines)}, columns = {{{kinds}}}, "
        f"format = 'newline_delimited', maximum_object_size = {LARGEST_ROW})"
    )


def sql_literal(text: str) -> str:
    """A literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
