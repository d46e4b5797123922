"""Latency against chunk, latency against build time, build time against chunk: PNG and SVG.

The same run gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from rnnbench.measure import PATHS, LatencyPath
from rnnbench.reports.canvas import BEST, GREY, LOGARITHMIC, MARK, MOST_NUMBERS_BESIDE, Canvas
from rnnbench.reports.drawing import PALETTE, TOLD_BY_ALL, drawing
from rnnbench.reports.errors import ReportError
from rnnbench.reports.panels import (
    LEAST_DODGE,
    Line,
    Panels,
    Places,
    arrange,
    built,
    by_chunk,
    by_column,
    chunks_of,
    columns_of,
    fastest,
    latencies_of,
    legible,
    named_chunks,
    stream_tests,
    targets_of,
)
from rnnbench.reports.tables import p99
from rnnbench.results import COMPARED_PATHS, LEAST_POINTS, ORIGIN_MEANS, Entry, Family, Latency, Run, View, view_runs
from rnnbench.spelling import count

KERNELS = f"Kernel: {ORIGIN_MEANS['kernel']}."
CHUNKS = f"chunk: time steps per call, {LOGARITHMIC}"
PERIOD: dict[str, Any] = {**GREY, "linestyle": ":", "linewidth": 1.2}
PROGRAM_COLOURS = 2 * PALETTE[:TOLD_BY_ALL]
"""Colours of programs. The canvas tells the two programs of one colour apart."""
MOST_PROGRAMS = len(PROGRAM_COLOURS)
LONE_MARK = 7.0
"""Points of a mark in a picture of a single chunk, where no line shows its colour."""
SMALLEST_MARK, LARGEST_MARK = 4.5, 9.5
"""Points of the marks of the shortest and of the longest chunk, where their size tells the chunk."""


@dataclass(frozen=True)
class Picture:
    """One figure on disk: `<stem>.png` and `<stem>.svg` beside the page."""

    stem: str
    title: str
    subject: str
    """Of what: the model and how it is fed."""
    caption: str


def draw(view: View, folder: Path) -> list[Picture]:
    """Draw every picture of a report into `folder`. Needs Matplotlib, of the extra `report`."""
    pictures = []
    of_families = {family: legible(arrange(sizes), MOST_PROGRAMS) for family, sizes in view.families.items()}
    with drawing("drawing plots") as matplotlib:
        for family, (panels, left_out) in of_families.items():
            kernels = any(origin == "kernel" for origin, _ in panels)
            # Where there are enough colours, each program has the same one in all pictures.
            colours = _colours(view.targets if len(view.targets) <= MOST_PROGRAMS else targets_of(panels))
            for picture, fill in _pictures(family, panels):
                canvas = Canvas(matplotlib, panels, colours, _titles(picture, left_out))
                fill(canvas)
                canvas.save(folder, picture.stem)
                pictures.append(replace(picture, caption=f"{picture.caption} {KERNELS}") if kernels else picture)
    return pictures


def draw_latency(runs: Sequence[Run], file: Path, path: str = "bound") -> Path:
    """Draw latency per step against the chunk, of one latency path, into a PNG or SVG file. Returns the file.

    All trials must be of one workload, whatever the hidden size. Raises ReportError, and MissingExtraError without
    Matplotlib.
    """
    view = view_runs(runs)
    if len(view.families) != 1:
        raise ReportError(
            f"one plot shows one workload, and these runs have {len(view.families)}; plot them one by one"
        )
    ((family, sizes),) = view.families.items()
    panels, left_out = legible(arrange(sizes), MOST_PROGRAMS)
    if path not in PATHS or not latencies_of(panels, path):
        raise ReportError(f"no trial of these runs has a latency of the path '{path}'; there are: {', '.join(PATHS)}")
    with drawing("drawing plots") as matplotlib:
        titles = _titles(_latency_picture(family, PATHS[path], panels), left_out)
        canvas = Canvas(matplotlib, panels, _colours(targets_of(panels)), titles)
        draw_latencies(canvas, path=path)
        canvas.save_as(file)
    return file


def _colours(targets: Sequence[str]) -> dict[str, str]:
    return dict(zip(targets, PROGRAM_COLOURS, strict=False))


def _titles(picture: Picture, left_out: int) -> tuple[str, ...]:
    """`left_out`: programs that have no colour."""
    programs = count(left_out, "slowest program")
    slowest = f"Without the {programs}: {MOST_PROGRAMS} can be told apart. The tables have all."
    return (picture.title, picture.subject, *([slowest] if left_out else []))


def _pictures(family: Family, panels: Panels) -> Iterator[tuple[Picture, Callable[[Canvas], None]]]:
    """The pictures that have data, each with the function that draws it. A single mark says less than its table."""
    lines = [line for group in panels.values() for line in group]
    for path in COMPARED_PATHS:
        if len(latencies_of(panels, path)) > 1:
            yield _latency_picture(family, PATHS[path], panels), partial(draw_latencies, path=path)
    if any(stream_tests(entry) for line in lines for entry in line.points):
        yield _streams_picture(family), _streams
    if sum(len(built(line)) for line in lines) > 1:
        yield _build_picture(family), _builds
    if any(len(built(line)) >= LEAST_POINTS for line in lines):
        yield _growth_picture(family), _growth


def _latency_picture(family: Family, path: LatencyPath, panels: Panels) -> Picture:
    axis = "against chunk" if len(chunks_of(panels)) > 1 else "by program"
    return Picture(
        f"latency-{path.name}-{family.slug}",
        f"Latency per step {axis}, {path.name} path",
        str(family),
        f"{path.meaning} Marks are medians, bars p90. A thin line ends at p99; of fewer than 100 samples, at p90. "
        "Grey: the lowest median of all streaming programs, kernels left out: they are written by hand in this suite.",
    )


def _streams_picture(family: Family) -> Picture:
    return Picture(
        f"streams-{family.slug}",
        "Latency of a frame against the number of real-time streams",
        str(family),
        "Scenario streams: each mark is the median latency of a frame with so many streams. The last one of a line is "
        "the number that is held. The thin line reaches up to p99, in tests of 300 frames. Dotted: the period; streams "
        "are held while p99 stays below it.",
    )


def _build_picture(family: Family) -> Picture:
    return Picture(
        f"build-{family.slug}",
        "Latency per step, bound path, against build time",
        str(family),
        "Each point is one cold build; a larger point has a larger chunk. A line joins the chunks of one strategy; a "
        "point that is alone has a piece of it on its left. Lower and further left is better.",
    )


def _growth_picture(family: Family) -> Picture:
    return Picture(
        f"growth-{family.slug}",
        "Build time against chunk",
        str(family),
        "Each mark is one cold build. A flat line is a loop; the grey lines rise as chunk¹ and as chunk².",
    )


def draw_latencies(canvas: Canvas, path: str) -> None:
    """Latency per step against the chunk, an axis for each origin and size; of a single chunk, by program."""
    best, chunks = fastest(canvas.panels, path), chunks_of(canvas.panels)
    columns = columns_of(canvas.panels) if len(chunks) == 1 else []
    unit, scale = _unit([latency.median / e.chunk for e, latency in latencies_of(canvas.panels, path)])
    for (origin, hidden), axis in canvas.axes.items():
        _draw_fastest(axis, {chunk: seconds * scale for chunk, seconds in best[hidden].items()}, chunks)
        lines = canvas.panels.get((origin, hidden), ())
        for line, places in by_column(lines, columns) if columns else by_chunk(lines, chunks):
            _draw_latency(canvas, axis, line, places, path, scale, alone=bool(columns))
        if not columns:
            _chunk_axis(axis, chunks)
    if columns:
        canvas.name_columns([f"{target}, {time}" for time, target in columns])
    one_chunk = f"program, and how time advances in a call of {count(chunks[0], 'step')}"
    canvas.label(one_chunk if columns else CHUNKS, f"{unit} per step")
    looks: dict[str, dict[str, Any]] = {"bar: p90; end above it: p99": {**GREY, "linestyle": "none", "marker": "_"}}
    if any(best.values()):
        looks["lowest median, without kernels"] = BEST
    if not columns:
        canvas.number_programs()
    canvas.legend("latency", looks, times=not columns)


def _draw_fastest(axis: Any, best: Mapping[int, float], chunks: Sequence[int]) -> None:
    """A line by chunk. If only one of several chunks was measured, the line is as wide as its marks."""
    if len(best) > 1:
        axis.plot(list(best), list(best.values()), **BEST, zorder=1)
    for chunk, value in best.items() if len(best) == 1 else ():
        if len(chunks) == 1:
            axis.axhline(value, **BEST, zorder=1)
        else:
            axis.plot([chunk / 2**LEAST_DODGE, chunk * 2**LEAST_DODGE], [value, value], **BEST, zorder=1)


def _draw_latency(
    canvas: Canvas, axis: Any, line: Line, places: Places, path: str, scale: float, *, alone: bool
) -> None:
    """`alone`: all calls have one chunk, so no line joins the marks."""
    measured = [(e, latency) for e in line.points if (latency := e.latency(path)) is not None]
    x = [places[e.chunk] for e, _ in measured]
    y = [latency.median / e.chunk * scale for e, latency in measured]
    p90 = [_of_single_calls(latency, latency.p90) / e.chunk * scale for e, latency in measured]
    ends = [_of_single_calls(latency, p99(latency) or latency.p90) / e.chunk * scale for e, latency in measured]
    canvas.reach(axis, line, x, y, ends, linewidth=0.8)
    colour = canvas.look(line)["color"]
    axis.plot(x, p90, color=colour, linestyle="none", marker="_", markersize=5, alpha=0.7, zorder=2)
    if not alone:
        canvas.join(axis, line, x, y, zorder=3)
    canvas.mark(axis, line, list(zip(x, y, (e for e, _ in measured), strict=True)), LONE_MARK if alone else MARK)


def _of_single_calls(latency: Latency, quantile: float | None) -> float:
    """NaN, which is not drawn, where there is none: several calls that are timed at once have one mean."""
    return math.nan if quantile is None or latency.sampling.calls_per_sample > 1 else quantile


def _streams(canvas: Canvas) -> None:
    for key, axis in canvas.axes.items():
        for line in canvas.panels.get(key, ()):
            for entry in line.points:
                _draw_streams(canvas, axis, line, entry)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    canvas.label(f"real-time streams on one core, {LOGARITHMIC}", "latency of a frame, ms")
    looks: dict[str, dict[str, Any]] = {"end: p99": {**GREY, "linestyle": "none", "marker": "|"}, "period": PERIOD}
    canvas.number_programs()
    canvas.legend("frame", looks)


def _draw_streams(canvas: Canvas, axis: Any, line: Line, entry: Entry) -> None:
    tests = stream_tests(entry)
    streams = entry.measured.timing.streams if entry.measured else None
    if not tests or streams is None:
        return
    x, y = [test.streams for test in tests], [test.median * 1e3 for test in tests]
    axis.axhline(streams.period * 1e3, **PERIOD, zorder=1)
    canvas.reach(axis, line, x, y, [(test.p99 or test.median) * 1e3 for test in tests])
    canvas.join(axis, line, x, y, zorder=3)
    canvas.mark(axis, line, [(number, latency, entry) for number, latency in zip(x, y, strict=True)])


def _builds(canvas: Canvas) -> None:
    chunks = sorted({e.chunk for lines in canvas.panels.values() for line in lines for e, _, _ in built(line)})
    step = (LARGEST_MARK - SMALLEST_MARK) / max(1, len(chunks) - 1)
    smallest = SMALLEST_MARK if len(chunks) > 1 else LONE_MARK
    widths = {chunk: smallest + step * index for index, chunk in enumerate(chunks)}
    unit, scale = _unit([latency.median / e.chunk for e, latency in latencies_of(canvas.panels, "bound")])
    for key, axis in canvas.axes.items():
        for line in canvas.panels.get(key, ()):
            points = built(line)
            x = [seconds for _, seconds, _ in points]
            y = [latency.median / e.chunk * scale for e, _, latency in points]
            canvas.join(axis, line, x, y, 1.0, alpha=0.45, zorder=2)
            marks = list(zip(x, y, (entry for entry, _, _ in points), strict=True))
            for chunk, group in groupby(marks, key=lambda mark: mark[2].chunk):
                canvas.mark(axis, line, list(group), widths[chunk])
        axis.set_xscale("log")
        canvas.ticks(axis.xaxis, MOST_NUMBERS_BESIDE)
    canvas.label(f"build time, s, {LOGARITHMIC}", f"{unit} per step")
    sizes = {str(c): {**GREY, "linestyle": "none", "marker": "o", "markersize": width} for c, width in widths.items()}
    canvas.number_programs()
    canvas.legend("chunk", sizes)


def _growth(canvas: Canvas) -> None:
    points = [(e.chunk, s) for lines in canvas.panels.values() for line in lines for e, s, _ in built(line)]
    chunks = sorted({chunk for chunk, _ in points})
    shortest = min(seconds for _, seconds in points)
    most = max(seconds for _, seconds in points)
    thin = {**BEST, "linewidth": 1.5}
    for key, axis in canvas.axes.items():
        for power in (1, 2):
            slope = [shortest * (chunk / chunks[0]) ** power for chunk in chunks]
            axis.plot(chunks, slope, **thin, zorder=1)
        for line in canvas.panels.get(key, ()):
            x, y = [e.chunk for e, _, _ in built(line)], [seconds for _, seconds, _ in built(line)]
            canvas.join(axis, line, x, y, zorder=3)
            canvas.mark(axis, line, [(entry.chunk, seconds, entry) for entry, seconds, _ in built(line)])
        _chunk_axis(axis, chunks)
        axis.set_ylim(shortest / 1.5, most * 1.5)
    canvas.label(CHUNKS, "build time, s")
    canvas.number_programs()
    canvas.legend("growth", {"chunk¹; steeper: chunk²": thin})


def _chunk_axis(axis: Any, chunks: Sequence[int]) -> None:
    """Chunks along an axis, each with its number where that touches no other one."""
    axis.set_xscale("log", base=2)
    named = named_chunks(chunks)
    axis.set_xticks(chunks, [str(chunk) if chunk in named else "" for chunk in chunks])
    axis.minorticks_off()


def _unit(seconds: Sequence[float]) -> tuple[str, float]:
    """The unit of a picture's latencies, and how many there are in a second."""
    return ("ms", 1e3) if min(seconds) >= 1e-3 else ("µs", 1e6)
