"""Matplotlib as all pictures use it: one palette, one style, and files that have the same bytes each time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rnnbench.disk import write_whole
from rnnbench.optional import require

# Okabe and Ito (2008) without their yellow, which is faint on white; two of Tol's "muted" scheme, and a brown between
# them, where that scheme's olive would be their orange to the colour-blind; then as many again for a report of every
# route, lighter and darker than those.
PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#882255",
    "#554400",
    "#332288",
    "#7B5B3A",
    "#8FD175",
    "#F0A3A3",
    "#5E5E5E",
    "#005F56",
    "#B58BE0",
    "#C2B000",
    "#94D6E8",
    "#7A0000",
    "#FF6FCF",
)
TOLD_BY_ALL = 10
"""So many of its first colours are told apart by everybody."""
STYLE = {
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.labelsize": 9.5,
    "legend.fontsize": 9,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "rnnbench",
    "figure.dpi": 150,
}


@contextmanager
def drawing(purpose: str) -> Iterator[Any]:
    """Matplotlib, with the style of all pictures until the block ends. Raises MissingExtraError without it."""
    matplotlib = require("matplotlib", "report", purpose)
    for module in ("matplotlib.figure", "matplotlib.patheffects"):
        require(module, "report", purpose)
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield matplotlib


def save_figure(figure: Any, file: Path) -> None:
    """As PNG or SVG by the file's ending, PNG without one. The file has no date and no version of Matplotlib in it."""
    form = file.suffix[1:] or "png"
    metadata = {"Software": None} if form == "png" else {"Date": None, "Creator": None}
    write_whole(file, lambda stream: figure.savefig(stream, format=form, metadata=metadata))
