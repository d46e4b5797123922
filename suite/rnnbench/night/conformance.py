"""The conformance check of a new version, and the consequences of failures for alerts and the last good version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rnnbench.cases import Trial
from rnnbench.history import Alert, Alerts, CheckEntry, Detection, FailedTrial, History
from rnnbench.night.state import BackendNight, Build
from rnnbench.pipeline import Observer, SideError, check_trials, note_versions, open_environment
from rnnbench.plan import ExpectedFailures, begin_run, covering_of
from rnnbench.results import Store, parse_versions, version_of
from rnnbench.spelling import count

SUFFIX = "-check"


@dataclass(frozen=True)
class ConformanceCases:
    """The trials for the checks of new versions."""

    trials: tuple[Trial, ...] = ()
    """The trials on every route of every backend of the night; none if nothing is checked."""
    expected: ExpectedFailures | None = None
    files: tuple[Path, ...] = ()
    """Files and folders of the cases, as they were given."""

    def of(self, backend: str) -> list[Trial]:
        return [trial for trial in self.trials if trial.target.backend == backend]


def check_version(
    trials: Sequence[Trial],
    cases: ConformanceCases,
    environment: tuple[str | None, Path],
    store: Store,
    observer: Observer,
) -> str:
    """Check one version of a backend on a covering set of its trials. Returns the name of the run.

    `environment` has the arguments of `open_environment`. Raises SideError if there is no such environment, or if no
    trial can be checked in it.
    """
    text, folder = environment
    examined = {one.trial.id: one for one in open_environment(text, trials, folder).examined()}
    chosen = covering_of(list(examined.values())).trials
    kept = [examined[trial.id] for trial in chosen]
    if all(one.failure is not None for one in kept):
        reasons = dict.fromkeys(one.failure.reason for one in kept if one.failure is not None)
        raise SideError(f"none of its trials can be checked: {next(iter(reasons), 'the cases have none')}")
    plan = begin_run(chosen, store, cases.expected, suffix=SUFFIX, case_files=cases.files)
    note_versions(plan, kept)
    check_trials(plan, observer, shrinks=False, examined=kept)
    return plan.folder.name


def note_failed(alerts: Alerts, check: CheckEntry, before: CheckEntry | None) -> Alerts:
    """Add an alert for each group of trials that fail in the same way and are in no alert yet.

    `before` is the last check of another version.
    """
    alerted = {trial for alert in alerts_of_checks(alerts, check.backend) for trial in alert.found.members}
    groups: dict[tuple[str, str, str], list[FailedTrial]] = {}
    for one in check.failed:
        if one.trial not in alerted:
            groups.setdefault((one.outcome, one.symptom, _before(one, before)), []).append(one)
    for failed in groups.values():
        alerts = alerts.add(_detection(failed, check, before))
    return alerts


def mend_conforming(alerts: Alerts, check: CheckEntry, day: str, earlier: Sequence[CheckEntry] = ()) -> Alerts:
    """Mend the alerts of which some trials were checked again and each of these conforms.

    `earlier` has the checks that raised the alerts, from which it is known what failed there.
    """
    failed_checks = {
        (one.run, failed.trial): failed.failed_checks
        for one in earlier
        if one.backend == check.backend
        for failed in one.failed
    }
    for alert in alerts_of_checks(alerts, check.backend):
        again = set(check.trials).intersection(alert.found.members)
        if again and all(check.conforms_again(t, failed_checks.get((alert.found.run, t), ())) for t in again):
            why = f"{check.versions}: {len(again)} of {len(alert.found.members)} trials were checked again, and conform"
            alerts = alerts.mend(alert.id, day, why)
    return alerts


def mend_withdrawn(alerts: Alerts, backend: str, newest: Build, versions: str, day: str) -> Alerts:
    """Mend the alerts of withdrawn versions: the last good version is the newest again."""
    for alert in alerts_of_checks(alerts, backend):
        if alert.is_open and alert.found.versions[1] != versions:
            alerts = alerts.mend(alert.id, day, f"{newest.version} is the newest again")
    return alerts


def alerts_of_checks(alerts: Alerts, backend: str) -> list[Alert]:
    """The alerts about a backend that checks have raised, except the mended ones."""
    return [a for a in alerts.all if a.found.evidence == "checked" and a.found.backend == backend and not a.mended]


def alerts_that_hold(alerts: Alerts, check: CheckEntry) -> list[Alert]:
    """The alerts of trials that fail in a check, except those that a person has accepted."""
    failed = check.failed_by_trial
    return [
        alert
        for alert in alerts_of_checks(alerts, check.backend)
        if alert.state != "accepted" and any(trial in failed for trial in alert.found.members)
    ]


def check_before(history: History, check: CheckEntry) -> CheckEntry | None:
    """The newest check of another version of the same backend, on any machine."""
    earlier = [entry for entry in history.checks if entry.backend == check.backend and entry.started < check.started]
    return next((entry for entry in reversed(earlier) if entry.versions != check.versions), None)


def is_of(check: CheckEntry | None, night: BackendNight) -> bool:
    """Whether a check is of the newest version of a backend."""
    return (
        check is not None
        and night.newest is not None
        and version_of(night.package, parse_versions(check.versions)) == night.newest.version
    )


def sentence_of(check: CheckEntry) -> str:
    """The result of a check in words."""
    trials = count(len(check.trials), "trial")
    counts = f"{len(check.failed)} of {trials} failed" if check.failed else f"{trials} checked, none failed"
    expected = f", {count(check.expected_failures, 'expected failure')}" if check.expected_failures else ""
    expected += f", {len(check.too_short)} not fully checked" if check.too_short else ""
    missing = f"; not installed there: {'; '.join(check.unavailable)}" if check.unavailable else ""
    return f"{counts}{expected}{missing}"


def _before(failed: FailedTrial, before: CheckEntry | None) -> str:
    """The outcome of the trial in the previous check."""
    if before is None or failed.trial not in before.trials:
        return "not checked"
    then = before.failed_by_trial.get(failed.trial)
    return then.outcome if then else "ok"


def _detection(failed: Sequence[FailedTrial], check: CheckEntry, before: CheckEntry | None) -> Detection:
    first = failed[0]
    return Detection(
        machine=check.machine,
        backend=check.backend,
        what="outcome",
        evidence="checked",
        whole_backend=1 < len(failed) == len(check.trials),
        night=check.started,
        run=check.run,
        versions=(before.versions if before else "", check.versions),
        before=_before(first, before),
        after=first.outcome,
        detail=first.reason,
        members=tuple(sorted(one.trial for one in failed)),
    )
