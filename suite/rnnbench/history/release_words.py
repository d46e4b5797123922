"""Backfills in words and in tables: between which releases a latency changed, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rnnbench.history.measures import MEASURES
from rnnbench.history.releases import ReleasePoint, ReleaseSeries, ReleaseStep, release_changes
from rnnbench.results import ERROR_RATE, SMALLEST, short_names, visible

SIGNS = {"SLOWER": "▲", "FASTER": "▼"}
RELEASE_LEGEND = (
    "A figure is the latency over that of the reference release, which was sampled in turn with it. "
    "▲ slower, ▼ faster than the measured release before it; a dash was not measured. "
    f"All verdicts of one trial and path hold together with a chance of {100 * (1 - ERROR_RATE):.0f} %."
)
MISSING = "—"


@dataclass(frozen=True)
class ReleaseTable:
    """A table of text cells."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: int = 1
    """Columns from the left that hold text."""


def release_change_lines(series: Sequence[ReleaseSeries], smallest: float = SMALLEST) -> Iterator[str]:
    """Each package's changes, one line each."""
    packages = dict.fromkeys((each.package, each.reference, each.machine) for each in series)
    for package, reference, machine in packages:
        some = [
            each for each in series if (each.package, each.reference, each.machine) == (package, reference, machine)
        ]
        yield visible(f"Releases of {package} (each beside {reference}) [machine {machine}]")
        changes = list(release_changes(some, smallest))
        for each, step in changes:
            yield visible(f"  {change_sentence(each, step)}")
        if not changes:
            yield "  No latency has a verdict of SLOWER or FASTER from one measured release to the next."
        for version, reason in _not_measured(some):
            yield visible(f"  {version} was not measured: {reason}")


def change_sentence(series: ReleaseSeries, step: ReleaseStep) -> str:
    """ "between 1.20.1 and 1.21.0 the bound latency of … rose by 4.2 % (3.5 % to 4.9 %)".

    Its verdict is SLOWER or FASTER, so its interval is on one side of 1.
    """
    judged = step.judged
    low, high = judged.interval or (judged.ratio, judged.ratio)
    rose = judged.ratio > 1
    bounds = sorted(100 * abs(bound - 1) for bound in (low, high))
    return (
        f"between {step.before} and {step.after} the {MEASURES[series.path].title} of {series.trial} "
        f"{'rose' if rose else 'fell'} by {100 * abs(judged.ratio - 1):.1f} % ({bounds[0]:.1f} % to {bounds[1]:.1f} %)"
    )


def release_tables(series: Sequence[ReleaseSeries], smallest: float = SMALLEST) -> list[ReleaseTable]:
    """For each latency path the releases against the trials, then for each trial every release with its interval."""
    names = short_names(each.trial for each in series)
    measured = [each for each in series if any(point.ratios for point in each.points)]
    paths = dict.fromkeys(each.path for each in measured)
    overviews = [_overview(path, [each for each in measured if each.path == path], names, smallest) for path in paths]
    return [*overviews, *(_detail(each, smallest) for each in measured)]


def _overview(path: str, series: Sequence[ReleaseSeries], names: dict[str, str], smallest: float) -> ReleaseTable:
    versions = [point.version for point in max(series, key=lambda each: len(each.points)).points]
    columns = []
    for each in series:
        signs = {step.after: SIGNS.get(step.judged.verdict, "") for step in each.steps(smallest)}
        by_version = {point.version: point for point in each.points}
        columns.append([_ratio(by_version.get(version), signs.get(version, "")) for version in versions])
    rows = zip(versions, *columns, strict=True)
    heads = (names.get(each.trial, each.trial) for each in series)
    reference = series[0].reference
    return ReleaseTable(f"{path} latency over that of {reference}", ("release", *heads), tuple(rows))


def _detail(series: ReleaseSeries, smallest: float) -> ReleaseTable:
    steps = {step.after: step for step in series.steps(smallest)}
    rows = []
    for point in series.points:
        judged = point.judged
        rows.append(
            (
                point.version,
                point.released,
                _against(steps.get(point.version)) if judged else point.outcome,
                f"{judged.ratio:.3f}" if judged else MISSING,
                _interval(judged.interval) if judged else MISSING,
                str(judged.observations) if judged else MISSING,
            )
        )
    columns = ("release", "day", "against the release before", "ratio to the reference", "interval", "pairs")
    return ReleaseTable(f"{series.trial}, {series.path}", columns, tuple(rows), text=3)


def _against(step: ReleaseStep | None) -> str:
    return (
        f"{step.judged.verdict} {100 * (step.judged.ratio - 1):+.1f} % {_interval(step.judged.interval)}"
        if step
        else ""
    )


def _interval(interval: tuple[float, float] | None) -> str:
    return f"({interval[0]:.3f} to {interval[1]:.3f})" if interval else "(one pair)"


def _ratio(point: ReleasePoint | None, sign: str) -> str:
    judged = point.judged if point else None
    return f"{sign}{judged.ratio:.3f}" if judged else MISSING


def _not_measured(series: Sequence[ReleaseSeries]) -> Iterator[tuple[str, str]]:
    """Releases with a reason why no trial, or some trials, were not measured."""
    reasons = {
        (point.version, f"{point.outcome}: {point.reason}"): None
        for each in series
        for point in each.points
        if not point.ratios and point.outcome not in ("ok", "unsupported")
    }
    yield from reasons
