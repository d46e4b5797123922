"""Rows as tables of DuckDB: every row arrives, whatever its text and numbers are."""

import errno
import math
import os
import tempfile
from datetime import datetime

import pytest

from rnnbench.results import StoreError, tables
from rnnbench.results.tables import make_table, open_database

TYPES = {"median": "DOUBLE", "reason": "VARCHAR"}


def table_of(rows):
    database = open_database("a test")
    make_table(database, "t", TYPES, rows)
    return database.execute("SELECT * FROM t").fetchall()


@pytest.mark.parametrize(
    ("text", "kept"),
    [("plain", "plain"), ("a \ud800 half", "a ? half"), ("nul \x00", "nul \x00"), ("two\nlines", "two\nlines")],
)
def test_any_text_arrives_with_its_row(text, kept):
    assert table_of([{"median": 1.0, "reason": text}, {"median": 2.0, "reason": "after it"}]) == [
        (1.0, kept),
        (2.0, "after it"),
    ]


def test_numbers_that_are_none_arrive():
    ((not_a_number, _), (infinite, _), (none, _)) = table_of(
        [{"median": value, "reason": ""} for value in (math.nan, math.inf, None)]
    )
    assert math.isnan(not_a_number)
    assert (infinite, none) == (math.inf, None)


@pytest.mark.parametrize("time", ["9999-99-99T", "", "no time", "2026-02-30T00:00:00", "x\x00y"])
def test_a_time_that_cannot_be_is_empty_and_its_row_arrives(time):
    database = open_database("a test")
    rows = [{"text": "a", "time": time}, {"text": "b", "time": "2026-11-25T19:59:23.5+00:00"}, {"text": "c"}]
    make_table(database, "t", {"text": "VARCHAR", "time": "TIMESTAMP"}, rows)
    assert database.execute("SELECT * FROM t").fetchall() == [
        ("a", None),
        ("b", datetime(2026, 11, 25, 19, 59, 23, 500_000)),
        ("c", None),
    ]


def test_a_row_that_does_not_fit_is_an_error_and_not_left_out():
    with pytest.raises(Exception, match="Failed to cast"):
        table_of([{"median": "text", "reason": ""}])


@pytest.mark.parametrize("count", [10**30, -(10**30), 1 << 63])
def test_a_count_of_more_than_64_bits_is_empty_and_its_row_arrives(count):
    database = open_database("a test")
    rows = [{"text": "a", "count": count}, {"text": "b", "count": (1 << 63) - 1}, {"text": "c"}]
    make_table(database, "t", {"text": "VARCHAR", "count": "BIGINT"}, rows)
    assert database.execute("SELECT * FROM t").fetchall() == [("a", None), ("b", (1 << 63) - 1), ("c", None)]


@pytest.mark.parametrize("full", [True, False])
def test_a_full_disk_of_temporary_files_is_named(monkeypatch, full):
    """An error of DuckDB's own too; other errors stay what they are."""
    of_disk = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(tables, "error_of_disk", lambda folder: of_disk if full else None)

    def rows():
        yield {"median": 1.0, "reason": ""}
        raise RuntimeError("IO Error: could not write")

    with pytest.raises(OSError if full else RuntimeError) as raised:
        tables.parquet(TYPES, rows(), "a test")
    if full:
        assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, tempfile.gettempdir())


def test_a_temporary_file_that_duckdb_cannot_use_is_told(monkeypatch):
    """As at a limit of open files."""
    monkeypatch.setattr(tables, "_path_of", lambda file: "'/missing/file'")
    with pytest.raises(StoreError, match=r"DuckDB cannot use a temporary file in .*: IO Error: .*; see that"):
        tables.parquet(TYPES, [{"median": 1.0, "reason": ""}], "a test")
