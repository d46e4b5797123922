"""SQL over Parquet files, through DuckDB. A database is in memory, and lives as long as its object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnbench.optional import require
from rnnbench.results import StoreError, TableRows, make_table, open_database, sql_literal, visible

PURPOSE = "the history"
ZONES = "a time with a zone has no value in Python here; cast it, as now()::TIMESTAMP"
BATCH = 2_000
"""Rows of a stream that are in memory at once."""
Content = tuple[Mapping[str, str], TableRows]
"""The columns of a table with their types, and its rows."""
Arrays = dict[str, Any]
"""NumPy arrays by column; masked where a value is NULL."""


@dataclass(frozen=True)
class Table:
    """The result of a query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def require_history() -> None:
    """Before a long measurement that ends in the history. Raises MissingExtraError."""
    require("duckdb", "history", PURPOSE)
    require("ruamel.yaml", "history", "the file of the alerts")


class Database:
    """The table `rows`, which is in Parquet files, and other tables, in memory. A statement can read nothing else.

    Opening it takes longer than most statements.
    """

    def __init__(
        self,
        files: Sequence[Path],
        types: Mapping[str, str],
        tables: Mapping[str, Content],
        replaced: Mapping[str, Mapping[str, str]],
    ) -> None:
        """`types` has the columns of `rows` that are there even where no file has them.

        `replaced` has, by column, the values that stand for others. Raises StoreError.
        """
        self._database = open_database(PURPOSE)
        _require_utf8(files)
        with _errors_told():
            _make_view(self._database, files, types, replaced)
            for name, (columns, rows) in tables.items():
                make_table(self._database, name, columns, rows)
            _lock(self._database, files)

    def query(self, sql: str) -> Table:
        """The result of one SELECT. Raises StoreError."""
        with self._selected(sql) as result:
            return Table(tuple(column[0] for column in result.description), tuple(result.fetchall()))

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """The rows of one SELECT, BATCH of them at a time. They are in the order of the files where nothing sorts them.

        Another statement ends it.
        """
        with self._selected(sql) as result:
            while rows := result.fetchmany(BATCH):
                yield from rows

    def arrays(self, sql: str) -> Arrays:
        """The same as an array for each column, for results of many rows."""
        with self._selected(sql) as result:
            arrays: Arrays = result.fetchnumpy()
            return arrays

    @contextmanager
    def _selected(self, sql: str) -> Iterator[Any]:
        with _errors_told():
            sql.encode()
            yield self._database.execute(_select(self._database, sql))


@contextmanager
def _errors_told() -> Iterator[None]:
    """Raise StoreError for what DuckDB or Python cannot do."""
    duckdb = require("duckdb", "history", PURPOSE)
    try:
        yield
    except duckdb.Error as error:
        reason = ZONES if "pytz" in str(error) else " ".join(str(error).split())
        mistakes = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
        advice = "; `DESCRIBE rows` shows the columns of the table" if isinstance(error, mistakes) else ""
        raise StoreError(f"the query failed: {visible(reason)}{advice}") from error
    except (ValueError, OverflowError) as error:  # A text that is no UTF-8, and an interval of a million years.
        raise StoreError(f"the query failed: Python cannot hold a value of it: {visible(str(error))}") from error


def _require_utf8(files: Sequence[Path]) -> None:
    """DuckDB takes no other paths, and says only that a type is wrong. Raises StoreError."""
    for path in map(str, map(Path.resolve, files)):
        try:
            path.encode()
        except UnicodeEncodeError as error:
            raise StoreError(
                f"{visible(path)}: the history is not read where the name of a folder is not UTF-8; rename the folder, "
                f"or move the history into another one"
            ) from error


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


def _make_view(
    database: Any, files: Sequence[Path], types: Mapping[str, str], replaced: Mapping[str, Mapping[str, str]]
) -> None:
    make_table(database, "no_rows", types, ())
    alike = "".join(
        f" UNION ALL BY NAME SELECT * FROM read_parquet({_list(some)})" for some in _of_one_schema(database, files)
    )
    names = ", ".join(f'"{column}"' for column in types)
    cast = ", ".join(f'{_value(column, kind, replaced.get(column))} AS "{column}"' for column, kind in types.items())
    # An older rnnbench may have written a column with another type. `* REPLACE` would take twice as long to bind.
    database.execute(f"CREATE VIEW rows AS SELECT {cast}, * EXCLUDE ({names}) FROM (SELECT * FROM no_rows{alike})")


def _of_one_schema(database: Any, files: Sequence[Path]) -> list[list[Path]]:
    """The files in groups that have the same columns.

    `union_by_name` reads them together too, but keeps the footer of each file and reads it with each statement: of
    2,000 files that is 0.8 GB and 5 s, and of one group 0.1 GB and 2 s.
    """
    if not files:
        return []
    columns = "list((name, type, num_children, converted_type, logical_type))::VARCHAR"
    schemas = database.execute(f"SELECT file_name, {columns} FROM parquet_schema({_list(files)}) GROUP BY file_name")
    groups: dict[str, list[Path]] = {}
    for file, schema in schemas.fetchall():
        groups.setdefault(schema, []).append(Path(file))
    return list(groups.values())


def _value(column: str, kind: str, replaced: Mapping[str, str] | None) -> str:
    """The SQL of a column of the view, from the column of the files."""
    cast = f'TRY_CAST("{column}" AS {kind})'
    whens = "".join(f" WHEN {sql_literal(a)} THEN {sql_literal(b)}" for a, b in (replaced or {}).items())
    return f"CASE {cast}{whens} ELSE {cast} END" if whens else cast


def _list(files: Sequence[Path]) -> str:
    return "[" + ", ".join(sql_literal(str(file.resolve())) for file in files) + "]"
