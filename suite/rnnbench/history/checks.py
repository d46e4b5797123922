"""Checks of the history: what `rnnbench check` found of one version of a backend, and what the next version changed.

A file each, `checks/<run_id>-<backend>.json`. They are in the table `checks`. A check times nothing, and its trials are
those of another set of cases than a night's: it is no night, and its rows are in no series.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from rnnbench.history.entry import ENTRY_TYPES, Entry, fields_of
from rnnbench.results import FrozenModel, Outcome, Record, Run, file_name, read_info, versions_text

NOT_CHECKED = ("unsupported", "unavailable")


class FailedTrial(FrozenModel):
    """A trial that failed, and was not expected to."""

    trial: str
    outcome: Outcome
    failed_checks: tuple[str, ...]
    reason: str

    @property
    def symptom(self) -> str:
        """The checks that it fails; its outcome where it did not come to the checks."""
        return ", ".join(self.failed_checks) or self.outcome


class CheckEntry(Entry):
    """The check of one backend: the file, and a row of the table `checks`."""

    backend: str
    versions: str
    """Versions of its packages, as rows have them."""
    cases: tuple[str, ...]
    """`RunInfo.case_files`."""
    trials: tuple[str, ...]
    """Ids of those that were built and checked."""
    expected_failures: int
    """Trials that fail as `expectations.yaml` says."""
    unexpected_passes: int
    """Trials that pass against `expectations.yaml`."""
    unsupported: int
    unavailable: tuple[str, ...] = ()
    """Why targets are not installed there, a sentence each."""
    failed: tuple[FailedTrial, ...] = ()
    too_short: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """By trial, the checks whose time was over too soon to mean anything."""

    @property
    def name(self) -> str:
        return f"{self.run_id}-{file_name(self.backend)}"

    @property
    def failed_by_trial(self) -> Mapping[str, FailedTrial]:
        return {failed.trial: failed for failed in self.failed}

    def conforms_again(self, trial: str, failed_checks: Iterable[str]) -> bool:
        """Whether a trial conforms here that failed some checks earlier. These checks must have had enough time."""
        conforms = trial in self.trials and trial not in self.failed_by_trial
        return conforms and not set(failed_checks) & set(self.too_short.get(trial, ()))


CHECK_TYPES: Mapping[str, str] = {
    **ENTRY_TYPES,
    "backend": "VARCHAR",
    "versions": "VARCHAR",
    "checked": "BIGINT",
    "expected_failures": "BIGINT",
    "unexpected_passes": "BIGINT",
    "unsupported": "BIGINT",
    "failed": "VARCHAR[]",
}
"""Columns of the table `checks` with DuckDB's types. Times are UTC; `failed` has the ids of the trials that failed."""


def check_row(entry: CheckEntry) -> dict[str, object]:
    """The row of a check in the table `checks`."""
    of_check = entry.model_dump(include=set(CHECK_TYPES) - {"failed"})
    return {**of_check, "checked": len(entry.trials), "failed": [failed.trial for failed in entry.failed]}


def is_check(folder: Path) -> bool:
    """Whether a run is one of `rnnbench check`. Those of rnnbench before the field `case_files` do not say it."""
    return bool(read_info(folder)[0].case_files)


def checks_of(run: Run) -> tuple[CheckEntry, ...]:
    """The check of each backend in a run of `rnnbench check`. Raises StoreError where its start is no time."""
    return tuple(_check(run, backend) for backend in sorted({record.backend for record in run.records}))


def _check(run: Run, backend: str) -> CheckEntry:
    records = [record for record in run.records if record.backend == backend]
    outcomes = Counter(record.outcome for record in records)
    return CheckEntry(
        **fields_of(run, run.part_of(records[0]).info.machine),
        backend=backend,
        versions=versions_text(records[0].version),
        cases=run.info.case_files,
        trials=tuple(sorted(r.trial for r in records if r.outcome not in NOT_CHECKED)),
        expected_failures=sum(record.fails_as_expected for record in records),
        unexpected_passes=sum(record.passes_unexpectedly for record in records),
        unsupported=outcomes["unsupported"],
        unavailable=tuple(sorted({f"{r.target}: {r.reason}" for r in records if r.outcome == "unavailable"})),
        failed=tuple(_failed(r) for r in records if r.outcome not in (*NOT_CHECKED, "ok") and not r.fails_as_expected),
        too_short={r.trial: r.too_short_checks for r in records if r.too_short_checks},
    )


def _failed(record: Record) -> FailedTrial:
    return FailedTrial(
        trial=record.trial,
        outcome=record.outcome,
        failed_checks=tuple(sorted(record.failed_checks)),
        reason=record.reason or "no reason given",
    )


@dataclass(frozen=True)
class CheckChange:
    """What a check shows that the one before it, of the same backend, did not."""

    check: CheckEntry
    before: CheckEntry | None
    worse: tuple[FailedTrial, ...]
    """Fail now, and did not then. A trial that was not checked then counts."""
    mended: tuple[FailedTrial, ...]
    """Failed then, and pass now."""


def check_changes(checks: Sequence[CheckEntry]) -> Iterator[CheckChange]:
    """The checks in which something changed. `checks` are oldest first; on which machine they ran does not matter."""
    last: dict[str, CheckEntry] = {}
    failing: dict[str, Mapping[str, FailedTrial]] = {}
    for check in checks:
        before = last.get(check.backend)
        last[check.backend] = check
        then = failing.get(check.backend, {})
        worse = tuple(failed for failed in check.failed if failed.trial not in then)
        mended = tuple(failed for failed in then.values() if check.conforms_again(failed.trial, failed.failed_checks))
        not_answered = [f for f in then.values() if f.trial in check.trials and f not in mended]
        failing[check.backend] = {failed.trial: failed for failed in (*not_answered, *check.failed)}
        if worse or mended:
            yield CheckChange(check, before, worse, mended)
