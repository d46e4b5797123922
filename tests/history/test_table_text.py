"""Tables of the history: short in a terminal, whole as CSV."""

from __future__ import annotations

import csv

from rnnbench.history import Table, csv_lines, plain_table

LONG = "x" * 200
TABLE = Table(("seconds", "bytes", "text", "nothing"), ((0.000123456789012, 123456789.0, LONG, None),))


def test_csv_has_every_figure_and_text_whole() -> None:
    (row,) = csv.DictReader(csv_lines(TABLE))
    assert (float(row["seconds"]), float(row["bytes"])) == TABLE.rows[0][:2]
    assert (row["text"], row["nothing"]) == (LONG, "")


def test_a_plain_table_is_short() -> None:
    _, line = plain_table(TABLE)
    assert line.split()[:2] == ["0.000123457", "1.23457e+08"]
    assert LONG not in line
