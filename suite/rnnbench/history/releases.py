"""Backfills: the latency of each release of a package over that of a reference, and between which releases it changed.

A release was sampled in turn with the reference, so the machine's speed is in both and is divided out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from packaging.version import InvalidVersion, Version

from rnnbench.history.columns import SERIES_DEVICE, reference_ratios
from rnnbench.history.store import History
from rnnbench.results import COMPARED_PATHS, ERROR_RATE, SMALLEST, Judgement, judge_apart, judge_once


@dataclass(frozen=True)
class ReleasePoint:
    """One trial in one release."""

    version: str
    released: str
    """Day of the release; empty where it is not known."""
    outcome: str
    reason: str
    """Why it was not measured."""
    ratios: tuple[float, ...]
    """Latency over the reference's, of each pair of processes. Empty where it was not measured."""

    @property
    def judged(self) -> Judgement | None:
        """The verdict against the reference; None where it was not measured."""
        return judge_once(self.ratios, 1 - ERROR_RATE) if self.ratios else None


@dataclass(frozen=True)
class ReleaseStep:
    """Two measured releases that follow each other. Releases between them were not measured."""

    before: str
    after: str
    judged: Judgement
    """The ratio after / before."""


@dataclass(frozen=True)
class ReleaseSeries:
    """One latency path of one trial on one machine and device, in every release, the oldest first."""

    machine: str
    package: str
    reference: str
    trial: str
    path: str
    points: tuple[ReleasePoint, ...]
    device: str = ""
    """Name of its GPU; empty for the processor."""

    def steps(self, smallest: float = SMALLEST) -> list[ReleaseStep]:
        """Each measured release against the one before. All intervals of the series hold together with 99 %."""
        measured = [point for point in self.points if point.ratios]
        pairs = list(pairwise(measured))
        return [
            ReleaseStep(a.version, b.version, judge_apart(a.ratios, b.ratios, smallest, ERROR_RATE / len(pairs)))
            for a, b in pairs
        ]


def version_order(text: str) -> tuple[int, Version, str]:
    """Orders versions. Text that is no version by PEP 440 comes first."""
    try:
        return 1, Version(text), text
    except InvalidVersion:
        return 0, Version("0"), text


def release_versions(series: Iterable[ReleaseSeries]) -> list[str]:
    """Every release of some series once, the oldest first."""
    return sorted({point.version for each in series for point in each.points}, key=version_order)


def release_series(history: History) -> tuple[ReleaseSeries, ...]:
    """Every series of every backfill. Where a release was measured several times, its newest result counts."""
    if all(entry.release is None for entry in history.runs):
        return ()
    ratios = ", ".join(reference_ratios(path) for path in COMPARED_PATHS)
    rows = history.sql(
        "SELECT runs.machine, package, reference, trial, series_device, release, coalesce(released, ''), outcome, "
        f"coalesce(reason, ''), {ratios} FROM (SELECT *, {SERIES_DEVICE} AS series_device FROM rows) AS rows "
        f"JOIN runs USING (run_id) WHERE release IS NOT NULL "
        f"ORDER BY {reference_ratios(COMPARED_PATHS[0])} IS NOT NULL, runs.started, run_id"
    ).rows
    found: dict[tuple[str, str, str, str, str, str], dict[str, ReleasePoint]] = {}
    for machine, package, reference, trial, device, version, released, outcome, reason, *of_paths in rows:
        for path, values in zip(COMPARED_PATHS, of_paths, strict=True):
            point = ReleasePoint(version, released, outcome, reason, tuple(values or ()))
            found.setdefault((machine, package, reference, trial, path, device), {})[version] = point
    return tuple(
        ReleaseSeries(*key[:5], tuple(sorted(points.values(), key=lambda point: version_order(point.version))), key[5])
        for key, points in sorted(found.items())
    )


def release_changes(
    series: Sequence[ReleaseSeries], smallest: float = SMALLEST
) -> Iterator[tuple[ReleaseSeries, ReleaseStep]]:
    """The steps with a verdict of FASTER or SLOWER."""
    for each in series:
        for step in each.steps(smallest):
            if step.judged.verdict in ("FASTER", "SLOWER"):
                yield each, step
