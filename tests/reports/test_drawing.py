"""Files of pictures: the format is that of the ending, and nothing in them is of the day or of Matplotlib's version."""

from __future__ import annotations

import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from rnnbench.reports.drawing import PALETTE, drawing, save_figure
from rnnbench.reports.escape import in_picture

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


def test_names_that_the_font_of_pictures_lacks_are_told_apart_without_a_warning(tmp_path: Path) -> None:
    names = [in_picture(name) for name in ("测试", "模型", "µs ≈ † é", "\N{ROCKET}")]
    assert names == ["/u6d4b/u8bd5", "/u6a21/u578b", "µs ≈ † é", "/U0001f680"]
    with drawing("tests") as matplotlib, warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = matplotlib.figure.Figure()
        figure.suptitle(" ".join(names))
        save_figure(figure, tmp_path / "named.png")


SEEN: dict[str, list[list[float]]] = {
    "by most people": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "without red cones": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "without green cones": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ],
    "without blue cones": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.3039],
    ],
}
"""What becomes of linear red, green and blue (Machado, Oliveira and Fernandes, 2009)."""
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])
LEAST_APART = 15.0
"""Of CIELAB's distance (1976). The olive that stood beside the orange had 10 for those without green cones."""


def lab(colour: str, seen: list[list[float]]) -> npt.NDArray[np.float64]:
    """A colour in CIELAB, as it is seen."""
    coded = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    share = TO_XYZ @ np.clip(np.array(seen) @ linear, 0, 1) / WHITE
    x, y, z = np.where(share > 216 / 24389, np.cbrt(share), (24389 / 27 * share + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("seen", SEEN)
def test_everybody_can_tell_ten_programs_by_their_colours(seen: str) -> None:
    """As many as there are in a report of the default routes."""
    ten = {colour: lab(colour, SEEN[seen]) for colour in PALETTE[:10]}
    distances = {(a, b): np.linalg.norm(ten[a] - ten[b]) for a, b in combinations(ten, 2)}
    assert min(distances.values()) > LEAST_APART
