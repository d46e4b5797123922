"""Backfills in words: between which releases a latency changed, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rnnbench.history.measures import MEASURES
from rnnbench.history.releases import ReleaseSeries, ReleaseStep, release_changes
from rnnbench.results import SMALLEST, visible
from rnnbench.spelling import percents


def release_change_lines(series: Sequence[ReleaseSeries], smallest: float = SMALLEST) -> Iterator[str]:
    """Each package's changes, one line each."""
    backfills: dict[tuple[str, str, str], list[ReleaseSeries]] = {}
    for each in series:
        backfills.setdefault((each.package, each.reference, each.machine), []).append(each)
    for (package, reference, machine), of_backfill in backfills.items():
        yield visible(f"Releases of {package} (each beside {reference}) [machine {machine}]")
        changes = list(release_changes(of_backfill, smallest))
        for each, step in changes:
            yield visible(f"  {change_sentence(each, step)}")
        if not changes:
            yield "  No latency has a verdict of SLOWER or FASTER from one measured release to the next."
        for version, reason in _not_measured(of_backfill):
            yield visible(f"  {version} was not measured: {reason}")


def change_sentence(series: ReleaseSeries, step: ReleaseStep) -> str:
    """ "between 1.20.1 and 1.21.0 the bound latency of … rose by 4.2 % (3.5 % to 4.9 %)".

    Its verdict is SLOWER or FASTER, so its interval is on one side of 1.
    """
    judged = step.judged
    rose = judged.ratio > 1
    on = f" on {series.device}" if series.device else ""
    low, high = sorted(abs(bound - 1) for bound in judged.bounds)
    return (
        f"between {step.before} and {step.after} the {MEASURES[series.path].title} of {series.trial}{on} "
        f"{'rose' if rose else 'fell'} by {percents(abs(judged.ratio - 1))} ({percents(low)} to {percents(high)})"
    )


def _not_measured(series: Sequence[ReleaseSeries]) -> Iterator[tuple[str, str]]:
    """Releases with a reason why no trial, or some trials, were not measured."""
    reasons = {
        (point.version, f"{point.outcome}: {point.reason}"): None
        for each in series
        for point in each.points
        if not point.ratios and point.outcome not in ("ok", "unsupported")
    }
    yield from reasons
