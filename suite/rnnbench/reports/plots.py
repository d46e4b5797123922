"""Latency against chunk, and latency against compile time: PNG and SVG, the same bytes for the same run.

A row of panels an origin and a column a hidden size, all on the same axes. Colour is the program (backend:route), the
line how time advances, the marker who carries the state; each means the same in every picture of a report.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rnnbench.reports.entries import ORIGINS, Entry, Family, View
from rnnbench.reports.fits import LEAST_POINTS
from rnnbench.reports.panels import Line, Panels, arrange, built, fastest, latency_of
from rnnbench.results.compare import KINDS, Kind
from rnnbench.results.extras import require

# Okabe and Ito (2008) without their yellow, which is faint on white; then three of Tol's "muted" scheme.
PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#882255",
    "#999933",
    "#332288",
)
LINES = {"looped": "-", "unrolled": (0, (5, 2)), "fused": (0, (1, 1.4))}
PARTIAL = (0, (6, 1.5, 1, 1.5))
"""The line of `unrolled:k`, whatever k."""
MARKERS = {"stitched": "o", "stateful": "s", "none": "^"}
CARRIES = {"stitched": "carried by the caller", "stateful": "kept inside", "none": "whole sequence"}
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
    "savefig.dpi": 150,
}
BEST: dict[str, Any] = {"color": "#d4d4d4", "linewidth": 4, "solid_capstyle": "round"}
"""The line of the fastest of any origin."""
GREY = {"color": "#444444"}
DODGE = 0.4
"""Part of the distance between two chunks over which a panel spreads its lines, so that their marks stand apart."""
WIDEST_DODGE = 0.5
"""Most octaves of that."""
LEGEND_INCHES = 2.7
TITLE_CHARACTERS = 12.5
"""Characters of a title to an inch of the panels that it stands over."""


@dataclass(frozen=True)
class Picture:
    """One figure on disk: `<stem>.png` and `<stem>.svg` beside the page."""

    stem: str
    title: str
    caption: str


def draw(view: View, folder: Path) -> list[Picture]:
    """Draw every picture of a report into `folder`. Needs Matplotlib, of the extra `report`."""
    matplotlib = require("matplotlib", "report", "drawing plots")
    require("matplotlib.figure", "report", "drawing plots")
    pictures = []
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        colours = {target: PALETTE[index % len(PALETTE)] for index, target in enumerate(view.targets)}
        for family, sizes in view.families.items():
            panels = arrange(sizes)
            if not panels:
                continue
            for kind in KINDS:
                if not any(latency_of(e, kind) for lines in panels.values() for line in lines for e in line.points):
                    continue
                picture = _latency_picture(family, kind)
                _save(_latency_figure(matplotlib, panels, colours, family, picture, kind), folder, picture)
                pictures.append(picture)
            if any(built(line) for lines in panels.values() for line in lines):
                picture = _build_picture(family)
                _save(_build_figure(matplotlib, panels, colours, family, picture), folder, picture)
                pictures.append(picture)
            if any(len(built(line)) >= LEAST_POINTS for lines in panels.values() for line in lines):
                picture = _growth_picture(family)
                _save(_growth_figure(matplotlib, panels, colours, family, picture), folder, picture)
                pictures.append(picture)
    return pictures


def _latency_picture(family: Family, kind: Kind) -> Picture:
    what = "the least the runtime needs" if kind == "bound" else "NumPy in, NumPy out"
    return Picture(
        f"latency-{kind}-{family.slug}",
        f"Latency per step, {kind} path ({what}), against chunk",
        "Median; the thin line reaches up to p99, with a bar at p90. "
        "Grey: the fastest of any origin that a stream can be fed to.",
    )


def _build_picture(family: Family) -> Picture:
    return Picture(
        f"build-{family.slug}",
        "Latency per step, bound path, against compile time",
        "Each point is one cold build, larger where its chunk is; a line joins the chunks of one strategy. "
        "Down and left is better.",
    )


def _growth_picture(family: Family) -> Picture:
    return Picture(
        f"growth-{family.slug}",
        "Compile time against chunk",
        "Each mark is one cold build. A flat line is a loop; the grey lines rise as chunk¹ and as chunk².",
    )


def _growth_figure(
    matplotlib: Any, panels: Panels, colours: Mapping[str, str], family: Family, picture: Picture
) -> Any:
    figure, axes = _grid(matplotlib, panels, family, picture)
    points = [(e.chunk, seconds) for lines in panels.values() for line in lines for e, seconds, _ in built(line)]
    chunks = sorted({chunk for chunk, _ in points})
    least = min(seconds for _, seconds in points)
    most = max(seconds for _, seconds in points)
    for key, axis in axes.items():
        for power in (1, 2):
            slope = [least * (chunk / chunks[0]) ** power for chunk in chunks]
            axis.plot(chunks, slope, **{**BEST, "linewidth": 1.5}, zorder=1)
        for line in panels.get(key, ()):
            x, y = [e.chunk for e, _, _ in built(line)], [seconds for _, seconds, _ in built(line)]
            axis.plot(x, y, color=colours[line.target], linestyle=_dash(line.time), linewidth=1.5, zorder=3)
            for entry, seconds, _ in built(line):
                _mark(axis, entry.chunk, seconds, colours[line.target], line.state, entry)
        axis.set_xscale("log", base=2)
        axis.set_xticks(chunks, [str(chunk) for chunk in chunks])
        axis.minorticks_off()
        axis.set_ylim(least / 1.5, most * 1.5)
    _finish(matplotlib, figure, axes, "chunk: time steps per call", "cold build, s")
    _legend(matplotlib, figure, panels, colours, "growth", {"chunk¹ and chunk²": {**BEST, "linewidth": 1.5}})
    return figure


def _latency_figure(
    matplotlib: Any,
    panels: Panels,
    colours: Mapping[str, str],
    family: Family,
    picture: Picture,
    kind: Kind,
) -> Any:
    figure, axes = _grid(matplotlib, panels, family, picture)
    best = fastest(panels, kind)
    chunks = sorted({e.chunk for lines in panels.values() for line in lines for e in line.points})
    spread = min([WIDEST_DODGE, *(DODGE * math.log2(b / a) for a, b in pairwise(chunks))])
    for (origin, hidden), axis in axes.items():
        envelope = [seconds * 1e6 for seconds in best[hidden].values()]
        if len(envelope) > 1:
            axis.plot(list(best[hidden]), envelope, **BEST, zorder=1)
        elif envelope:
            axis.axhline(envelope[0], **BEST, zorder=1)
        lines = panels.get((origin, hidden), ())
        for index, line in enumerate(lines):
            shift = 2 ** (spread * (index / (len(lines) - 1) - 0.5)) if len(lines) > 1 else 1.0
            _draw_latency(axis, line, colours[line.target], shift, kind)
        axis.set_xscale("log", base=2)
        axis.set_xticks(chunks, [str(chunk) for chunk in chunks])
        axis.minorticks_off()
    _finish(matplotlib, figure, axes, "chunk: time steps per call", "µs per step")
    latencies: dict[str, dict[str, Any]] = {
        "bar: p90; end: p99": {**GREY, "linestyle": "none", "marker": "_"},
        "fastest of any origin": BEST,
    }
    _legend(matplotlib, figure, panels, colours, "latency", latencies)
    return figure


def _draw_latency(axis: Any, line: Line, colour: str, shift: float, kind: Kind) -> None:
    measured = [(e, latency) for e in line.points if (latency := latency_of(e, kind)) is not None]
    x = [e.chunk * shift for e, _ in measured]
    y = [latency.median / e.chunk * 1e6 for e, latency in measured]
    p90 = [latency.p90 / e.chunk * 1e6 for e, latency in measured]
    p99 = [latency.p99 / e.chunk * 1e6 for e, latency in measured]
    axis.vlines(x, y, p99, color=colour, linewidth=0.8, alpha=0.55, zorder=2)
    axis.plot(x, p90, color=colour, linestyle="none", marker="_", markersize=5, alpha=0.7, zorder=2)
    axis.plot(x, y, color=colour, linestyle=_dash(line.time), linewidth=1.5, zorder=3)
    for point_x, point_y, (entry, _) in zip(x, y, measured, strict=True):
        _mark(axis, point_x, point_y, colour, line.state, entry)


def _build_figure(
    matplotlib: Any,
    panels: Panels,
    colours: Mapping[str, str],
    family: Family,
    picture: Picture,
) -> Any:
    figure, axes = _grid(matplotlib, panels, family, picture)
    chunks = sorted({e.chunk for lines in panels.values() for line in lines for e, _, _ in built(line)})
    widths = {chunk: 3.5 + 6 * index / max(1, len(chunks) - 1) for index, chunk in enumerate(chunks)}
    for key, axis in axes.items():
        for line in panels.get(key, ()):
            points = built(line)
            x = [seconds for _, seconds, _ in points]
            y = [latency.median / e.chunk * 1e6 for e, _, latency in points]
            axis.plot(x, y, color=colours[line.target], linestyle=_dash(line.time), linewidth=1.0, alpha=0.45, zorder=2)
            for point_x, point_y, (entry, _, _) in zip(x, y, points, strict=True):
                _mark(axis, point_x, point_y, colours[line.target], line.state, entry, widths[entry.chunk])
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 3)))
        axis.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axis.xaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    _finish(matplotlib, figure, axes, "cold build, s", "µs per step")
    sizes = {str(c): {**GREY, "linestyle": "none", "marker": "o", "markersize": width} for c, width in widths.items()}
    _legend(matplotlib, figure, panels, colours, "chunk", sizes)
    return figure


def _mark(axis: Any, x: float, y: float, colour: str, state: str, entry: Entry, size: float = 5.0) -> None:
    # Large marks lie below small ones, so that neither hides the other.
    face = "white" if entry.shares else colour
    look = {"markerfacecolor": face, "markeredgecolor": colour if entry.shares else "white", "markeredgewidth": 0.7}
    axis.plot([x], [y], marker=MARKERS[state], markersize=size, linestyle="none", zorder=4 - size / 20, **look)


def _grid(matplotlib: Any, panels: Panels, family: Family, picture: Picture) -> tuple[Any, dict[tuple[str, int], Any]]:
    origins = sorted({origin for origin, _ in panels}, key=ORIGINS.index)
    sizes = sorted({hidden for _, hidden in panels})
    width, height = max(4.8, 3.4 * len(sizes)), max(4.6, 1.3 + 2.6 * len(origins))
    figure = matplotlib.figure.Figure(figsize=(width + LEGEND_INCHES, height), layout="constrained")
    title = [textwrap.fill(text, int(width * TITLE_CHARACTERS)) for text in (picture.title, str(family))]
    figure.suptitle("\n".join(title), fontsize=10.5, x=0.01, ha="left")
    grid = figure.subplots(len(origins), len(sizes), sharex=True, sharey="col", squeeze=False)
    axes = {}
    for row, origin in enumerate(origins):
        for column, hidden in enumerate(sizes):
            axes[origin, hidden] = grid[row][column]
            grid[row][column].set_title(f"{origin}, hidden {hidden}", loc="left", fontweight="bold")
            if (origin, hidden) not in panels:
                grid[row][column].text(0.5, 0.5, "nothing measured", transform=grid[row][column].transAxes, ha="center")
    return figure, axes


def _finish(matplotlib: Any, figure: Any, axes: Mapping[tuple[str, int], Any], x: str, y: str) -> None:
    for axis in axes.values():
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    figure.supxlabel(x, fontsize=9.5)
    figure.supylabel(y, fontsize=9.5)


def _legend(
    matplotlib: Any,
    figure: Any,
    panels: Panels,
    colours: Mapping[str, str],
    also: str,
    looks: Mapping[str, Mapping[str, Any]],
) -> None:
    """Right of the panels: programs, time, state, and what is special to this picture."""
    lines = [line for group in panels.values() for line in group]
    entries = [entry for line in lines for entry in line.points]
    approximate = {entry.target for entry in entries if entry.approximate}
    programs = {t: f"{t} (approximate)" if t in approximate else t for t in sorted({line.target for line in lines})}
    sections: dict[str, dict[str, Mapping[str, Any]]] = {
        "program": {name: {"color": colours[target], "linewidth": 3} for target, name in programs.items()},
        "time": {time: {**GREY, "linestyle": _dash(time)} for time in sorted({line.time for line in lines})},
        "state": {
            f"{state} ({CARRIES[state]})": {**GREY, "linestyle": "none", "marker": marker}
            for state, marker in MARKERS.items()
            if any(line.state == state for line in lines)
        },
        also: dict(looks),
    }
    if any(entry.shares for entry in entries):
        look = {**GREY, "linestyle": "none", "marker": "o", "markerfacecolor": "white"}
        sections["hollow"] = {"same program, measured once": look}
    handles: list[Any] = []
    titles: list[int] = []
    for title, items in sections.items():
        titles.append(len(handles))
        handles.append(matplotlib.lines.Line2D([], [], linestyle="none", label=title))
        handles.extend(matplotlib.lines.Line2D([], [], label=label, **look) for label, look in items.items())
    legend = figure.legend(handles=handles, loc="outside right upper", frameon=False, handlelength=2.6)
    for index in titles:
        legend.get_texts()[index].set_fontweight("bold")


def _dash(time: str) -> Any:
    return LINES.get(time, PARTIAL)


def _save(figure: Any, folder: Path, picture: Picture) -> None:
    """Without dates and versions in the files, so that the same run gives the same bytes."""
    figure.savefig(folder / f"{picture.stem}.png", metadata={"Software": None})
    figure.savefig(folder / f"{picture.stem}.svg", metadata={"Date": None, "Creator": None})
