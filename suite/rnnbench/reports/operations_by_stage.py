"""A picture of programs on their way through compilers: a bar of operations for each stage, by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rnnbench.reports.drawing import PALETTE, drawing, save_figure
from rnnbench.reports.escape import in_picture

Stages = Sequence[tuple[str, Mapping[str, int]]]
"""Each stage's name, with how often each operation stands in it."""
MOST_KINDS = 17
"""Kinds of a picture that have a colour of their own."""
REST = "others"
GREY = "#c8c8c8"
LINE_INCHES, PANEL_INCHES, REST_INCHES = 0.27, 8.0, 1.0
LETTER = 0.0125
"""Part of a panel that a letter in a bar takes. The names are for those who cannot tell two colours apart."""


def draw_operations(programs: Mapping[str, Stages], file: Path) -> Path:
    """Draw the operations of each program, by stage, into a PNG or SVG file. Returns the file.

    `programs` are by title, one below the other. An operation of a dialect (`arith.addf`) counts for the dialect.
    Raises MissingExtraError without Matplotlib.
    """
    colours = colours_of_kinds(programs)
    with drawing("drawing the operations by stage") as matplotlib:
        heights = [len(stages) * LINE_INCHES + REST_INCHES for stages in programs.values()]
        figure = matplotlib.figure.Figure(figsize=(PANEL_INCHES, sum(heights) + REST_INCHES / 2), layout="constrained")
        panels = figure.subplots(len(programs), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
        for (axis,), (title, stages) in zip(panels, programs.items(), strict=True):
            _fill(axis, title, stages, colours)
        handles = [matplotlib.patches.Patch(color=colour, label=in_picture(kind)) for kind, colour in colours.items()]
        figure.legend(handles=handles, loc="outside lower center", frameon=False, ncols=6)
        save_figure(figure, file)
    return file


def _fill(axis: Any, title: str, stages: Stages, colours: Mapping[str, str]) -> None:
    """A bar for each stage, the first one on top, with its sum at its end."""
    counts = [counts_by_kind(operations, colours) for _, operations in stages]
    rows = range(len(stages))
    left = [0] * len(stages)
    whole = max([1, *(count.total() for count in counts)]) * 1.1
    for kind, colour in colours.items():
        widths = [count[kind] for count in counts]
        bars = axis.barh(rows, widths, left=left, color=colour, height=0.72)
        shown = in_picture(kind)
        names = [shown if width > (len(kind) + 1) * LETTER * whole else "" for width in widths]
        axis.bar_label(bars, names, label_type="center", color=_ink(colour), fontsize=8)
        left = [before + width for before, width in zip(left, widths, strict=True)]
    for row, total in zip(rows, left, strict=True):
        axis.annotate(f"{total:,}", (total, row), (4, 0), textcoords="offset points", va="center", fontsize=9)
    axis.set_yticks(rows, [in_picture(name) for name, _ in stages])
    axis.set_ylim(len(stages) - 0.5, -0.5)
    axis.set_xlim(0, whole)
    axis.grid(visible=False, axis="y")
    axis.set_xlabel("operations in the text of the stage")
    axis.set_title(in_picture(title), loc="left", fontweight="bold")


def _ink(colour: str) -> str:
    """Black or white, whichever is read better on a colour."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "white"


def _kind(operation: str) -> str:
    """The dialect of an operation, or the operation where it has none."""
    return operation.partition(".")[0]


def colours_of_kinds(programs: Mapping[str, Stages]) -> dict[str, str]:
    """The most frequent kinds with their colours, and grey for the rest where there is any."""
    total: Counter[str] = Counter()
    for stages in programs.values():
        for _, operations in stages:
            whole = sum(operations.values()) or 1
            for operation, count in operations.items():
                # A share: what there is much of in a small stage is seen too.
                total[_kind(operation)] += round(1_000_000 * count / whole)
    kinds = sorted(total, key=lambda kind: (-total[kind], kind))
    colours = dict(zip(kinds[:MOST_KINDS], PALETTE, strict=False))
    return {**colours, REST: GREY} if len(kinds) > MOST_KINDS else colours


def counts_by_kind(operations: Mapping[str, int], colours: Mapping[str, str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for operation, count in operations.items():
        kind = _kind(operation)
        counts[kind if kind in colours else REST] += count
    return counts
