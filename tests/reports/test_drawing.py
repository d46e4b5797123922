"""Files of pictures: the format is that of the ending, and nothing in them is of the day or of Matplotlib's version."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnnbench.reports.drawing import drawing, save_figure

pytest.importorskip("matplotlib")


def test_a_file_without_an_ending_is_the_same_png(tmp_path: Path) -> None:
    with drawing("tests") as matplotlib:
        for name in ("named.png", "plain"):
            save_figure(matplotlib.figure.Figure(), tmp_path / name)
    named, plain = ((tmp_path / name).read_bytes() for name in ("named.png", "plain"))
    assert named == plain
    assert b"Matplotlib" not in plain


def test_a_picture_for_a_browser_has_no_date(tmp_path: Path) -> None:
    with drawing("tests") as matplotlib:
        save_figure(matplotlib.figure.Figure(), tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text()
    assert "<svg" in text
    assert "<dc:date>" not in text
