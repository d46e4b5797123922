"""The SLOWER verdicts of a comparison, in the form of alerts, and the second comparison that confirms them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rnnbench.history import Detection, entry_of
from rnnbench.night.state import Slower
from rnnbench.pipeline import Observer, Side, SideBySide, confirm_sides
from rnnbench.results import COMPARED_PATHS, Comparison, Run, Store, read_run, versions_text

SLOWER = "slower"
"""The name of SLOWER in `Comparison.found`. All other names there are of facts."""


def slower_of(comparison: Comparison, both: SideBySide, night: Run) -> tuple[Slower, ...]:
    """A `Slower` for each latency path with a SLOWER verdict. `night` is the run of the newest versions."""
    return tuple(_slower(comparison, both, night))


def _slower(comparison: Comparison, both: SideBySide, night: Run) -> Iterator[Slower]:
    entry = entry_of(night, "")
    versions = versions_of(both)
    for path in COMPARED_PATHS:
        of_path = [change for change in comparison.latencies if change.path == path]
        slower = sorted((change for change in of_path if change.verdict == "SLOWER"), key=lambda change: change.ratio)
        if not slower:
            continue
        yield Slower(
            found=Detection(
                machine=entry.machine,
                backend=both.sides[1].facts.trials[0].trial.target.backend,
                what=path,
                evidence="compared",
                whole_backend=1 < len(slower) == len(of_path),
                night=entry.started,
                run=entry.run,
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


def confirmed(
    slower: Sequence[Slower], sides: tuple[Side, Side], seconds: float, store: Store, observer: Observer
) -> tuple[Slower, ...]:
    """Compare the same versions again, in fresh processes. Returns `slower` with the answers. Raises SideError."""
    answers = confirm_sides([one.found for one in slower], sides, seconds, store, observer)
    day = datetime.now(UTC).date().isoformat()
    return tuple(
        one.model_copy(update={"answer": answer.answer, "measured": answer.measured(day)})
        for one, answer in zip(slower, answers, strict=True)
    )
