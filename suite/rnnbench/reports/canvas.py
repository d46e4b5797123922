"""What all pictures share: colours, lines and markers, the panels, their axes and the legend.

A row of panels for each origin and a column for each hidden size, all on the same axes. Colour is the
program (backend:route), the line is how time advances, the marker is who keeps the state, in every picture of a report.
The lower half of a marker is white where a call replays a recorded graph (`launch: graph`).
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rnnbench.reports.drawing import save_figure
from rnnbench.reports.escape import LONGEST_IN_PICTURE, drawable, in_picture
from rnnbench.reports.panels import Line, Panels
from rnnbench.results import ORIGINS, Entry, size_label

LINES = {"looped": "-", "unrolled": (0, (5, 2)), "fused": (0, (1, 1.4)), "parallel": (0, (1, 3.5))}
PARTIAL = (0, (6, 1.5, 1, 1.5))
"""The line of `unrolled:k` and `chunked:k`, whatever k."""
MARKERS = {"stitched": "o", "stateful": "s", "none": "^"}
REPLAYED = {"fillstyle": "top", "markerfacecoloralt": "white"}
"""Look of the marker of a program whose calls replay a graph."""
MARK = 5.0
"""Points of a mark."""
CORE = 0.4
"""Part of a line, and of a mark, that is white in its middle where another program has the colour too."""
CORE_POINTS = 1.0
"""What a line with a white core is wider than others."""
OTHER_MARKER = "x"
"""Marker of a state that this version does not know."""
CARRIES = {"stitched": "kept by the caller", "stateful": "kept inside", "none": "whole sequence"}
BEST: dict[str, Any] = {"color": "#d4d4d4", "linewidth": 4, "solid_capstyle": "round"}
"""The grey line of the fastest program."""
GREY = {"color": "#444444"}
ALONE_POINTS = 16
"""Length of the piece of line left of a mark that no line joins to another one."""
ALONE_MARGIN = 0.1
"""Part of an axis that is left free for it on either side."""
LEGEND_INCHES = 2.7
LEGEND_CHARACTERS = 36
"""Characters of a line of the legend."""
LEGEND_LINE_INCHES = 0.2
LOGARITHMIC = "log scale"
"""Says of an axis that equal distances on it are equal ratios. A narrow one has the numbers of any other axis."""
NARROW = 3.0
"""An axis that spans less than this factor has evenly spaced numbers: SUBDIVISIONS may have two of it."""
SUBDIVISIONS: tuple[tuple[float, ...], ...] = ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,))
"""Numbers of each power of ten on a logarithmic axis, the densest first."""
MOST_NUMBERS = 10
"""Numbers along a vertical axis."""
MOST_NUMBERS_BESIDE = 6
"""Numbers along a horizontal axis: they stand side by side."""
COLUMN_INCHES, LETTER_INCHES, LONGEST_COLUMN = 0.19, 0.075, 40
"""Width of a column that has a name, of a letter of the name, and most letters of a name."""
NUMBER_POINTS = 7.5
"""Size of the number beside a mark."""
NUMBER_OFFSETS = tuple(9.0 * np.array(to) for to in ((1, 0), (0, 1), (-1, 0), (0, -1)))
"""Where a number may stand beside its mark, in points: about as far as a large mark reaches, and half a number."""
PANEL_POINTS = np.array((220.0, 160.0))
"""About the size of a panel, in points: its layout is made when it is drawn."""
Point = tuple[float, float]
LONGEST_TITLE = 300
"""Characters of a title."""
TITLE_CHARACTERS = 13.2
"""Characters of a title to an inch of the panels that it stands over."""


def farthest(
    marks: npt.NDArray[np.float64], taken: Sequence[npt.NDArray[np.float64]]
) -> tuple[int, npt.NDArray[np.float64]]:
    """Which of the marks [marks, 2] has a place beside it that is farthest from all that is taken, and its offset.

    All in points. A place outside of the panel is the last choice.
    """

    def room(choice: tuple[int, npt.NDArray[np.float64]]) -> tuple[bool, float]:
        place = marks[choice[0]] + choice[1]
        is_inside = bool(((place >= 0) & (place <= PANEL_POINTS)).all())
        return is_inside, float(np.hypot(*(np.array(taken) - place).T).min())

    return max(((mark, offset) for mark in range(len(marks)) for offset in NUMBER_OFFSETS), key=room)


class Canvas:
    """A figure with its panels: `axes` by origin and hidden size.

    `colours`: by target. The second program of a colour has a white core in its lines and marks.
    """

    def __init__(self, matplotlib: Any, panels: Panels, colours: Mapping[str, str], titles: Sequence[str]) -> None:
        self.panels = panels
        self.times = sorted({line.time for lines in panels.values() for line in lines})
        self._matplotlib = matplotlib
        self._colours = colours
        firsts: dict[str, str] = {}
        for target, colour in colours.items():
            firsts.setdefault(colour, target)
        self._cored = colours.keys() - firsts.values()
        targets = colours if len(colours) > 1 else ()
        self._numbers = {target: str(number) for number, target in enumerate(targets, start=1)}
        self._marks: dict[Any, dict[str, list[Point]]] = {}
        origins = sorted({origin for origin, _ in panels}, key=ORIGINS.index)
        sizes = sorted({hidden for _, hidden in panels})
        width, height = max(4.8, 3.4 * len(sizes)), max(4.6, 1.3 + 2.6 * len(origins))
        self._figure = matplotlib.figure.Figure(figsize=(width + LEGEND_INCHES, height), layout="constrained")
        filled = [textwrap.fill(in_picture(title, LONGEST_TITLE), int(width * TITLE_CHARACTERS)) for title in titles]
        self._figure.suptitle("\n".join(filled), fontsize=10.5, x=0.01, ha="left")
        grid = self._figure.subplots(len(origins), len(sizes), sharex=True, sharey="col", squeeze=False)
        self.axes: dict[tuple[str, int], Any] = {}
        for row, origin in enumerate(origins):
            for column, hidden in enumerate(sizes):
                axis = self.axes[origin, hidden] = grid[row][column]
                # Given its place (y), a title is not moved above the ticks, which all would have to be laid out for.
                title = ", ".join(filter(None, (origin, size_label(hidden))))
                axis.set_title(title, loc="left", fontweight="bold", y=1.0)
                if (origin, hidden) not in panels:
                    axis.text(0.5, 0.5, "nothing measured", transform=axis.transAxes, ha="center")

    def look(self, line: Line, width: float = 1.5) -> dict[str, Any]:
        """Colour, width and dashes of a line."""
        return {**self._coloured(line.target, width), "linestyle": _dashes(line.time)}

    def _coloured(self, target: str, width: float) -> dict[str, Any]:
        look: dict[str, Any] = {"color": self._colours[target], "linewidth": width}
        if target in self._cored:
            effects, wider = self._matplotlib.patheffects, width + CORE_POINTS
            core = effects.Stroke(linewidth=CORE * wider, foreground="white")
            look |= {"linewidth": wider, "path_effects": [effects.Normal(), core]}
        return look

    def join(
        self, axis: Any, line: Line, x: Sequence[float], y: Sequence[float], width: float = 1.5, **look: Any
    ) -> None:
        """The line through the points. Where times differ, a point that is alone has a piece of it left of its mark."""
        look = {**self.look(line, width), **look}
        axis.plot(x, y, **look)
        if len(x) == 1 and len(self.times) > 1:
            axis.margins(x=ALONE_MARGIN)
            piece = {**look, "arrowstyle": "-", "shrinkA": 0, "shrinkB": 0}
            axis.annotate("", (x[0], y[0]), (-ALONE_POINTS, 0), textcoords="offset points", arrowprops=piece)

    def mark(self, axis: Any, line: Line, points: Sequence[tuple[float, float, Entry]], size: float = MARK) -> None:
        """The points of a line at (x, y); hollow where a trial shares another one's measurement.

        One call for all of them: Matplotlib takes a millisecond for each.
        """
        colour = self._colours[line.target]
        self._marks.setdefault(axis, {}).setdefault(line.target, []).extend((x, y) for x, y, _ in points)
        for hollow in (False, True):
            at = [(x, y) for x, y, entry in points if bool(entry.shares) is hollow]
            face, edge = ("white", colour) if hollow else (colour, "white")
            look = {"markerfacecolor": face, "markeredgecolor": edge, "markeredgewidth": 0.7, "linestyle": "none"}
            if line.launch == "graph":
                look |= {**REPLAYED, "markeredgecolor": colour}
            marker = MARKERS.get(line.state, OTHER_MARKER)
            if at:
                # Large marks lie below small ones, so that neither hides the other.
                zorder = 4 - size / 20
                axis.plot(*zip(*at, strict=True), marker=marker, markersize=size, zorder=zorder, **look)
                if line.target in self._cored:
                    core = {"marker": ".", "markersize": 2 * CORE * size, "color": edge, "markeredgewidth": 0}
                    axis.plot(*zip(*at, strict=True), linestyle="none", zorder=zorder, **core)

    def reach(
        self, axis: Any, line: Line, x: Sequence[float], low: Sequence[float], high: Sequence[float], **look: Any
    ) -> None:
        """A vertical line from low to high at each x. One path with gaps: a path for each takes ten times as long."""
        gap = math.nan
        xs = [value for at in x for value in (at, at, gap)]
        ys = [value for ends in zip(low, high, strict=True) for value in (*ends, gap)]
        axis.plot(xs, ys, color=self._colours[line.target], alpha=0.55, zorder=2, **look)

    def number_programs(self) -> None:
        """A number beside one mark of each program in each panel, as the legend has it: it can be read without colour.

        None where there is one program. It stands where the marks and the other numbers are farthest away. The axes
        must have their final limits.
        """
        halo = [self._matplotlib.patheffects.withStroke(linewidth=1.8, foreground="white")]
        for axis, by_target in self._marks.items() if self._numbers else ():
            to_panel = axis.transScale + axis.transLimits
            marks = {target: to_panel.transform(points) * PANEL_POINTS for target, points in by_target.items()}
            taken = [place for points in marks.values() for place in points]
            for target in sorted(marks, key=lambda target: len(marks[target])):
                mark, offset = farthest(marks[target], taken)
                taken.append(marks[target][mark] + offset)
                axis.annotate(
                    self._numbers[target],
                    by_target[target][mark],
                    offset,
                    textcoords="offset points",
                    fontsize=NUMBER_POINTS,
                    ha="center",
                    va="center",
                    path_effects=halo,
                    zorder=5,
                )

    def ticks(self, axis: Any, most: int) -> None:
        """Plain numbers along one direction of a logarithmic axis, at most so many.

        There are no ticks between them: each takes as long as one with a number.
        """
        ticker = self._matplotlib.ticker
        low, high = axis.get_view_interval()
        even = ticker.MaxNLocator(nbins=6, steps=(1, 2, 2.5, 5, 10))
        narrow = high / low < NARROW
        axis.set_major_locator(even if narrow else ticker.LogLocator(subs=subdivision(low, high, most)))
        axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(ticker.NullLocator())

    def name_columns(self, names: Sequence[str]) -> None:
        """Columns along the horizontal axes, with their names below the lowest panels, for which the figure grows."""
        shown = [in_picture(name, LONGEST_COLUMN) for name in names]
        for axis in self.axes.values():
            axis.set_xticks(range(len(shown)), shown, rotation=90)
            axis.set_xlim(-0.5, len(shown) - 0.5)
        sizes = len({hidden for _, hidden in self.axes})
        width = COLUMN_INCHES * len(shown) * sizes + LEGEND_INCHES
        self._figure.set_figwidth(max(self._figure.get_figwidth(), width))
        self._figure.set_figheight(self._figure.get_figheight() + LETTER_INCHES * max(map(len, shown)))

    def label(self, x: str, y: str) -> None:
        """What all axes show; the vertical ones are logarithmic."""
        for axis in self.axes.values():
            axis.set_yscale("log")
            self.ticks(axis.yaxis, MOST_NUMBERS)
        self._below = self._figure.supxlabel(x, fontsize=9.5)
        self._beside = self._figure.supylabel(f"{y}, {LOGARITHMIC}", fontsize=9.5)

    def legend(self, also: str, looks: Mapping[str, Mapping[str, Any]], *, times: bool = True) -> None:
        """Right of the panels: programs, time, state, launch if one is a graph, and what is special to this picture.

        `times`: whether lines tell how time advances.
        """
        handles: list[Any] = []
        titles: list[int] = []
        for title, items in self._legend_sections(also, looks, times=times).items():
            titles.append(len(handles))
            handles.append(self._matplotlib.lines.Line2D([], [], linestyle="none", label=title))
            handles.extend(self._matplotlib.lines.Line2D([], [], label=label, **look) for label, look in items.items())
        rows = sum(handle.get_label().count("\n") + 1 for handle in handles)
        self._figure.set_figheight(max(self._figure.get_figheight(), LEGEND_LINE_INCHES * (rows + 2)))
        legend = self._figure.legend(handles=handles, loc="outside right upper", frameon=False, handlelength=2.6)
        for index in titles:
            legend.get_texts()[index].set_fontweight("bold")

    def _legend_sections(
        self, also: str, looks: Mapping[str, Mapping[str, Any]], *, times: bool
    ) -> dict[str, dict[str, Mapping[str, Any]]]:
        """The look of each entry, by section."""
        lines = [line for group in self.panels.values() for line in group]
        entries = [entry for line in lines for entry in line.points]
        approximate = {entry.target for entry in entries if entry.approximate}
        programs = {
            t: _wrapped(
                "  ".join(filter(None, (self._numbers.get(t), f"{t} (approximate)" if t in approximate else t)))
            )
            for t in sorted({line.target for line in lines})
        }
        sections: dict[str, dict[str, Mapping[str, Any]]] = {
            "program": {name: self._coloured(target, 3) for target, name in programs.items()},
            **(
                {"time": {in_picture(time): {**GREY, "linestyle": _dashes(time)} for time in self.times}}
                if times
                else {}
            ),
            "state": {
                f"{state} ({CARRIES[state]})": {**GREY, "linestyle": "none", "marker": marker}
                for state, marker in MARKERS.items()
                if any(line.state == state for line in lines)
            },
        }
        if any(line.launch == "graph" for line in lines):
            sections["launch"] = {"graph": {**GREY, **REPLAYED, "linestyle": "none", "marker": "o"}}
        sections[also] = dict(looks)
        if any(entry.shares for entry in entries):
            look = {**GREY, "linestyle": "none", "marker": "o", "markerfacecolor": "white"}
            sections["hollow"] = {"same program, measured once": look}
        return sections

    def save(self, folder: Path, stem: str) -> None:
        """As PNG and as SVG."""
        for ending in ("png", "svg"):
            self.save_as(folder / f"{stem}.{ending}")

    def save_as(self, file: Path) -> None:
        """As PNG or SVG, by its ending.

        The layout is computed once, and here: to have it, `savefig` would draw all twice.
        """
        if (layout := self._figure.get_layout_engine()) is not None:
            layout.execute(self._figure)
            self._figure.set_layout_engine("none")
            self._centre_labels()
        save_figure(self._figure, file)

    def _centre_labels(self) -> None:
        """Along the panels. The layout centres labels in the figure, of which the legend is a part."""
        panels = self._matplotlib.transforms.Bbox.union([axis.get_position() for axis in self.axes.values()])
        self._below.set_x((panels.x0 + panels.x1) / 2)
        self._beside.set_y((panels.y0 + panels.y1) / 2)


def subdivision(low: float, high: float, most: int) -> tuple[float, ...]:
    """The densest of SUBDIVISIONS that has at most so many numbers between two ends; the last one if none has."""
    powers = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    for steps in SUBDIVISIONS:
        if sum(low <= step * power <= high for power in powers for step in steps) <= most:
            return steps
    return SUBDIVISIONS[-1]


def _wrapped(name: str) -> str:
    """A name of a program in lines that the legend has room for."""
    return "\n".join(map(in_picture, textwrap.wrap(drawable(name, LONGEST_IN_PICTURE), LEGEND_CHARACTERS)))


def _dashes(time: str) -> Any:
    return LINES.get(time, PARTIAL)
