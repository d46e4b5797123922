"""Int8 stands beside float32 in one table, with bytes, the ratio to the floor and the ratio to float32."""

from __future__ import annotations

from typing import Any

from fake_records import record

from rnnbench.reports.int8 import int8_tables
from rnnbench.reports.tables import NOT_BELIEVED
from rnnbench.results import Entry, Finding, FindingKind, View
from rnnbench.results.record import Record


def entry(dtype: str, seconds: float, nbytes: int, **changes: Any) -> Entry:
    made = record("fakelib", "ops", time="fused", state="stitched", chunk=1, hidden=128, bound=seconds, **changes)
    params = made.params.model_copy(update={"dtype": dtype})
    artifact = made.artifact.model_copy(update={"nbytes": nbytes}) if made.artifact else None
    changed: Record = made.model_copy(update={"params": params, "artifact": artifact, "trial": made.trial + dtype})
    return Entry(changed, changed)


def test_an_int8_program_stands_beside_that_of_float32_with_its_bytes_and_ratio() -> None:
    entries = (entry("float32", 20e-6, 400_000), entry("int8_dynamic", 10e-6, 100_000))
    (table,) = int8_tables(View((), entries, ()))
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [row["number format"] for row in rows] == ["float32", "int8_dynamic"]
    assert [row["× of float32"] for row in rows] == ["1.00×", "0.505×"]
    assert rows[0]["artifact"] != rows[1]["artifact"]
    assert "float32 and int8" in table.title


def test_an_int8_program_that_is_not_believed_has_no_ratio() -> None:
    finding = Finding(kind=FindingKind.TIME, detail="work was moved out of the blocks", disbelieved=True)
    entries = (entry("float32", 20e-6, 400_000), entry("int8_dynamic", 1e-9, 100_000, findings=(finding,)))
    (table,) = int8_tables(View((), entries, ()))
    row = dict(zip(table.columns, table.rows[1], strict=True))
    assert (row["× of floor"], row["× of float32"]) == (NOT_BELIEVED, "—")


def test_only_a_program_of_the_same_strategy_is_compared_with_float32() -> None:
    other = entry("float32", 20e-6, 400_000)
    other = Entry(
        *[other.record.model_copy(update={"params": other.record.params.model_copy(update={"time": "looped"})})] * 2
    )
    (table,) = int8_tables(View((), (other, entry("int8_dynamic", 10e-6, 100_000)), ()))
    assert [row[-1] for row in table.rows] == ["—"]


def test_without_int8_there_is_no_table() -> None:
    assert list(int8_tables(View((), (entry("float32", 20e-6, 400_000),), ()))) == []
