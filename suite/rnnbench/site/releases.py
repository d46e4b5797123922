"""Backfills: the releases of a package, each against a reference release that was sampled in turn with it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from rnnbench.history import MEASURES, History, ReleaseSeries, ReleaseStep, release_changes, release_versions
from rnnbench.reports import change_with_interval
from rnnbench.results import ERROR_RATE, SMALLEST, Judgement, short_names
from rnnbench.site.changes import SIGN
from rnnbench.site.content import Content
from rnnbench.site.page import Folder, as_line
from rnnbench.site.stored_records import Row
from rnnbench.site.stored_runs import rows_of_runs

SIGNS = {"SLOWER": ("▲ SLOWER", "bad"), "FASTER": ("▼ FASTER", "good")}
"""Sign with word, and class, of a verdict against the release before."""
MARGIN = 3.0
"""Per cent of a drawing's width that is left free on either side."""


@dataclass(frozen=True)
class ReleaseRow:
    """One release in one series."""

    version: str
    released: str
    judged: Judgement | None
    """Against the reference; None where it was not measured."""
    missing: str
    """Why it was not measured."""
    verdict: str
    """Against the measured release before, with a sign; empty for the first."""
    kind: str
    """Class of the verdict."""
    step: Judgement | None
    places: tuple[float, float, float] | None
    """The interval's lower end, the ratio and the upper end, in per cent of the drawing."""


@dataclass(frozen=True)
class ReleaseChart:
    """One latency path of one trial in every release, on a logarithmic axis of ratios."""

    series: ReleaseSeries
    rows: tuple[ReleaseRow, ...]
    low: float
    high: float
    """Ends of the axis."""
    one: float
    """Place of the ratio 1, in per cent."""


@dataclass(frozen=True)
class ReleaseNews:
    """A latency that changed from one measured release to the next."""

    direction: Literal["worse", "better"]
    release: str
    trial: str
    page: str
    sentence: str

    @property
    def sign(self) -> str:
        return SIGN[self.direction]


@dataclass(frozen=True)
class RatioTable:
    """The ratios of one latency path: releases × trials."""

    path: str
    trials: tuple[tuple[str, str], ...]
    """Short names and pages."""
    rows: tuple[tuple[str, tuple[ReleaseRow | None, ...]], ...]
    """For each release, its row in the series of each trial."""


@dataclass(frozen=True)
class Backfill:
    """All series of one package on one machine."""

    package: str
    reference: str
    machine: str
    cpu: str
    measured: int
    """Releases with a result."""
    news: tuple[ReleaseNews, ...]
    missing: tuple[tuple[str, str], ...]
    """Releases that were not measured, and why."""
    tables: tuple[RatioTable, ...]

    @property
    def anchor(self) -> str:
        return f"{self.package}-{self.machine}"


def release_charts(series: Sequence[ReleaseSeries]) -> list[ReleaseChart]:
    """The charts of the series that were measured at least once."""
    return [_chart(each) for each in series if any(point.ratios for point in each.points)]


def backfills_of(content: Content) -> list[Backfill]:
    """By machine and package; those with a change come first."""
    groups = groupby(content.releases, lambda each: (each.machine, each.package, each.reference))
    backfills = [_backfill(content, list(series)) for _, series in groups]
    return sorted(backfills, key=lambda backfill: not backfill.news)


def _backfill(content: Content, series: Sequence[ReleaseSeries]) -> Backfill:
    first = series[0]
    points = [point for each in series for point in each.points]
    measured = {point.version for point in points if point.ratios}
    missing = {p.version: f"{p.outcome}: {p.reason}" for p in points if p.version not in measured}
    cpu = next((entry.machine_cpu for entry in content.backfill_runs if entry.machine == first.machine), None)
    return Backfill(
        first.package,
        first.reference,
        first.machine,
        cpu or first.machine,
        len(measured),
        tuple(_news(content, each, step) for each, step in release_changes(series)),
        tuple(missing.items()),
        tuple(_tables(content, release_charts(series))),
    )


def _news(content: Content, series: ReleaseSeries, step: ReleaseStep) -> ReleaseNews:
    change = change_with_interval(step.judged.ratio, step.judged.interval)
    return ReleaseNews(
        direction="worse" if step.judged.verdict == "SLOWER" else "better",
        release=step.after,
        trial=series.trial,
        page=content.pages.get((series.machine, series.trial), ""),
        sentence=f"{MEASURES[series.path].title} {change} against {step.before}",
    )


def write_releases(content: Content, history: History | None, folder: Folder) -> None:
    """`releases.html`, and of each trial the rows of all its releases."""
    backfills = backfills_of(content)
    folder.page("releases.html", "releases.html", content=content, backfills=backfills, confidence=1 - ERROR_RATE)
    if history is None or not content.releases:
        return
    rows: dict[tuple[str, str], list[Row]] = {}
    for of_run in rows_of_runs(history, [entry.run_id for entry in content.backfill_runs]).values():
        for row in of_run:
            rows.setdefault((row["machine"], row["trial"]), []).append(row)
    for key, page in content.pages.items():
        if key in rows:
            folder.write(f"records/{releases_file(page)}", as_line(rows[key]))


def releases_file(page: str) -> str:
    """Name of the file with the rows of a trial's releases, in `records/`."""
    return f"{page}-releases.json"


def _chart(series: ReleaseSeries) -> ReleaseChart:
    steps = {step.after: step.judged for step in series.steps(SMALLEST)}
    judged = {point.version: point.judged for point in series.points}
    ends = [1.0, *(end for judgement in judged.values() if judgement for end in judgement.bounds)]
    low, high = min(ends), max(max(ends), min(ends) * 1.01)

    def place(ratio: float) -> float:
        return MARGIN + (100 - 2 * MARGIN) * math.log(ratio / low) / math.log(high / low)

    rows = []
    for point in series.points:
        judgement, step = judged[point.version], steps.get(point.version)
        verdict, kind = SIGNS.get(step.verdict, (step.verdict, "")) if step else ("", "")
        places = None
        if judgement:
            low_end, high_end = judgement.bounds
            places = place(low_end), place(judgement.ratio), place(high_end)
        missing = "" if judgement else ": ".join(filter(None, (point.outcome, point.reason)))
        rows.append(ReleaseRow(point.version, point.released, judgement, missing, verdict, kind, step, places))
    return ReleaseChart(series, tuple(rows), low, high, place(1.0))


def _tables(content: Content, charts: Sequence[ReleaseChart]) -> Iterator[RatioTable]:
    names = short_names(chart.series.trial for chart in charts)
    for path in dict.fromkeys(chart.series.path for chart in charts):
        of_path = [chart for chart in charts if chart.series.path == path]
        trials = tuple(
            (names[c.series.trial], content.pages.get((c.series.machine, c.series.trial), "")) for c in of_path
        )
        by_version = [{row.version: row for row in chart.rows} for chart in of_path]
        versions = release_versions(chart.series for chart in of_path)
        rows = tuple((version, tuple(chart_rows.get(version) for chart_rows in by_version)) for version in versions)
        yield RatioTable(path, trials, rows)
