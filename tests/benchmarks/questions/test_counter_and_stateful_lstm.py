"""A counter and an LSTM keep their state on every backend (minutes; docs/questions/counter-and-stateful-lstm.md).

A counter that is saved goes on in another process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from question_pages import FOLDER, read_page, run_page
from waiting import PATIENCE_S

from rnnbench.results import Row

INSIDE = {"iree", "openvino", "litert", "torch", "tensorflow"}
"""Backends whose programs keep a state. The others pass it through buffers of the session."""


def _targets() -> list[str]:
    """The backends of the page's run."""
    words = next(command for command in read_page("counter-and-stateful-lstm").commands if command[0] == "run")
    return next(word.partition("=")[2] for word in words if word.startswith("--backend=")).split(",")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder = tmp_path_factory.mktemp("counter")
    return run_page("counter-and-stateful-lstm", folder, "--set", "measure.budget=50ms", "--set", "measure.processes=1")


def test_a_counter_and_an_lstm_conform_on_every_backend(rows: list[Row]) -> None:
    assert {(row["backend"], row["model_cell"], row["outcome"]) for row in rows} == {
        (target.partition(":")[0], cell, "ok") for target in _targets() for cell in ("counter", "lstm")
    }


def test_who_keeps_the_state_is_as_the_page_says(rows: list[Row]) -> None:
    assert {row["backend"] for row in rows if row["support"] == "native"} == INSIDE


@pytest.mark.parametrize("target", _targets())
def test_a_saved_counter_goes_on_in_another_process(target: str, tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "counter.py"), target, str(tmp_path)]
    counted = [
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout for _ in range(2)
    ]
    assert [text.splitlines()[-1] for text in counted] == ["2 3 4", "5 6 7"]
