"""Larger stacks take longer, steps of longer calls less (minutes; docs/questions/sizes-people-know.md).

What the page's command finds on one machine. Figures of other machines are never compared.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from question_pages import run_page

from rnnbench.results import Row


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder: Path = tmp_path_factory.mktemp("sizes")
    options = ("--processes", "1", "--filter", "hidden=128|256", "--set", "measure.budget=300ms")
    return run_page("sizes-people-know", folder, *options)


def microseconds_a_step(rows: list[Row], hidden: int, layers: int, chunk: int) -> float:
    (row,) = (
        row
        for row in rows
        if (row["model_hidden"], json.loads(str(row["model"])).get("layers", 1), row["chunk"])
        == (hidden, layers, chunk)
    )
    assert row["outcome"] == "ok"
    return float(row["bound_per_step_s"]) * 1e6  # type: ignore[arg-type]


def test_a_stack_of_more_and_wider_layers_takes_longer(rows: list[Row]) -> None:
    assert microseconds_a_step(rows, 256, 3, 1) > microseconds_a_step(rows, 128, 2, 1)


def test_a_step_of_a_longer_call_costs_less(rows: list[Row]) -> None:
    assert microseconds_a_step(rows, 128, 2, 16) < microseconds_a_step(rows, 128, 2, 1)


def test_a_window_of_steps_costs_more_than_its_one_new_step(rows: list[Row]) -> None:
    assert 16 * microseconds_a_step(rows, 128, 2, 16) > microseconds_a_step(rows, 128, 2, 1)
