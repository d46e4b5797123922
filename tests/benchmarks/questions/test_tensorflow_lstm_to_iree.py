"""Every form conforms in IREE, the state inside or passed (minutes; docs/questions/tensorflow-lstm-to-iree.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from question_pages import run_page

from rnnbench.results import Row


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder: Path = tmp_path_factory.mktemp("tensorflow-lstm-to-iree")
    return run_page("tensorflow-lstm-to-iree", folder, "--set", "measure.budget=600ms", "--processes", "2")


def of(rows: list[Row], target: str, **where: object) -> list[Row]:
    found = [row for row in rows if f"{row['backend']}:{row['route']}" == target and where.items() <= row.items()]
    assert found
    return found


def seconds(row: Row) -> float:
    return float(row["bound_median_s"])  # type: ignore[arg-type]


def test_every_form_conforms(rows: list[Row]) -> None:
    assert {row["outcome"] for row in of(rows, "iree:tensorflow")} == {"ok"}


def test_the_state_is_inside_the_module_and_not_in_the_session(rows: list[Row]) -> None:
    inside = of(rows, "iree:tensorflow", state="stateful")
    assert {row["support"] for row in inside if row["time"] != "fused"} == {"native"}


@pytest.mark.parametrize(
    ("time", "lowered"), [("looped", "looped 1"), ("unrolled", "unrolled 32"), ("fused", "unrolled 32")]
)
def test_what_each_form_becomes(rows: list[Row], time: str, lowered: str) -> None:
    assert {row["lowered"] for row in of(rows, "iree:tensorflow", time=time, chunk=32)} == {lowered}


@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_a_step_is_faster_than_in_tensorflow(rows: list[Row], state: str) -> None:
    (imported,) = of(rows, "iree:tensorflow", time="unrolled", state=state, chunk=1)
    (graph,) = of(rows, "tensorflow:graph", time="unrolled", state=state, chunk=1)
    assert seconds(imported) < seconds(graph)
