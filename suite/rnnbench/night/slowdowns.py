"""The SLOWER verdicts of a comparison, in the form of alerts, and the second comparison that confirms them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rnnbench.history import Detection, utc_of
from rnnbench.night.state import Slowdown
from rnnbench.pipeline import Observer, Side, SideBySide, confirm_sides
from rnnbench.results import COMPARED_PATHS, Comparison, Run, Store, fingerprint, read_run, versions_text

SLOWER = "slower"
"""The name of SLOWER in `Comparison.found`. All other names there are of facts."""


def slowdowns_of(comparison: Comparison, both: SideBySide, night: Run) -> tuple[Slowdown, ...]:
    """A `Slowdown` for each latency path with a SLOWER verdict. `night` is the run of the newest versions."""
    return tuple(_slowdowns(comparison, both, night))


def _slowdowns(comparison: Comparison, both: SideBySide, night: Run) -> Iterator[Slowdown]:
    versions = versions_of(both)
    for path in COMPARED_PATHS:
        of_path = [change for change in comparison.latencies if change.path == path]
        slower = sorted((change for change in of_path if change.verdict == "SLOWER"), key=lambda change: change.ratio)
        if not slower:
            continue
        yield Slowdown(
            found=Detection(
                machine=fingerprint(night.info.machine),
                backend=both.sides[1].facts.trials[0].trial.target.backend,
                what=path,
                evidence="compared",
                whole_backend=1 < len(slower) == len(of_path),
                night=utc_of(night.info.started, night),
                run=night.info.run,
                versions=versions,
                ratio=round(slower[(len(slower) - 1) // 2].ratio, 4),
                members=tuple(sorted(change.trial for change in slower)),
            )
        )


def versions_of(both: SideBySide) -> tuple[str, str]:
    """The versions of the backend's packages on both sides, as texts of rows."""
    before, after = (read_run(run).info.versions for run in both.runs)
    (a,), (b,) = before.values(), after.values()
    return versions_text(a), versions_text(b)


def confirm_slowdowns(
    slowdowns: Sequence[Slowdown], sides: tuple[Side, Side], seconds: float, store: Store, observer: Observer
) -> tuple[Slowdown, ...]:
    """Compare the same versions again, in fresh processes. Returns `slowdowns` with the answers. Raises SideError."""
    answers = confirm_sides([one.found for one in slowdowns], sides, seconds, store, observer)
    day = datetime.now(UTC).date().isoformat()
    return tuple(
        one.model_copy(update={"answer": answer.answer, "measured": answer.measured(day)})
        for one, answer in zip(slowdowns, answers, strict=True)
    )
