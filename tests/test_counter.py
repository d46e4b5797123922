"""`docs/questions/counter.py` on NumPy. The benchmarks have the other backends, each in processes of its own."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from question_pages import FOLDER


def _count(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What the script says of the target, and what it counts."""
    runpy.run_path(str(FOLDER / "counter.py"))["main"]("numpy:eager", folder)
    support, counted = capsys.readouterr().out.splitlines()
    return support, counted


def test_a_counter_goes_on_from_its_saved_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [_count(tmp_path, capsys)[1] for _ in range(2)] == ["2 3 4", "5 6 7"]


def test_a_counter_without_a_saved_state_begins_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _count(tmp_path, capsys)
    (tmp_path / "state.npz").unlink()
    support, counted = _count(tmp_path, capsys)
    assert (support.split(".")[0], counted) == ("numpy:eager: emulated", "2 3 4")
