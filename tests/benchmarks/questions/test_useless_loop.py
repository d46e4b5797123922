"""A loop of one pass stays in Keras' program, and each remedy is faster (minutes; docs/questions/useless-loop.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from question_pages import run_page

from rnnbench.results import Row

REMEDIES = [("keras", "unrolled"), ("graph", "unrolled"), ("keras-xla", "looped"), ("xla", "looped")]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder: Path = tmp_path_factory.mktemp("useless-loop")
    options = ("--set", "workload.chunk=1", "--set", "measure.budget=800ms", "--processes", "2")
    return run_page("useless-loop", folder, *options)


def of(rows: list[Row], route: str, time: str) -> Row:
    (row,) = (row for row in rows if (row["route"], row["time"]) == (route, time))
    return row


def seconds(row: Row) -> float:
    return float(row["bound_median_s"])  # type: ignore[arg-type]


@pytest.mark.parametrize("route", ["graph", "keras", "keras-xla"])
def test_the_loop_of_one_pass_is_in_the_compiled_program(rows: list[Row], route: str) -> None:
    assert of(rows, route, "looped")["lowered"] == "looped 1"
    assert of(rows, route, "unrolled")["lowered"] == "unrolled 1"


def test_xla_removes_the_loop_of_a_module_of_cells(rows: list[Row]) -> None:
    assert of(rows, "xla", "looped")["lowered"] == "unrolled 1"


@pytest.mark.parametrize(("route", "time"), REMEDIES)
def test_a_remedy_is_faster_than_keras_as_it_is(rows: list[Row], route: str, time: str) -> None:
    assert seconds(of(rows, route, time)) < seconds(of(rows, "keras", "looped"))
