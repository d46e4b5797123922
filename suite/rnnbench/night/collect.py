"""Collecting a night's results: into the history, the alerts, the last good versions, the summary and the site.

One machine collects its own night; a job collects those of several machines. Collecting a night twice has no further
effect.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rnnbench.history import (
    Alert,
    Alerts,
    AlertsError,
    CheckEntry,
    ComparisonEntry,
    History,
    News,
    new_id,
    slow_calls,
    update,
)
from rnnbench.night.builds import is_new
from rnnbench.night.conformance import (
    alerts_that_hold,
    check_before,
    is_of,
    mend_conforming,
    mend_withdrawn,
    note_failed,
    sentence_of,
)
from rnnbench.night.folders import DATA, ISSUES, PAGE, SITE, NightFolders
from rnnbench.night.state import Build, Good, Held, Night, Slowdown, State, read_state, write_state
from rnnbench.night.verdicts import BackendOutcome, is_good, left_open, mend_returned, note_slowdown
from rnnbench.optional import MissingExtraError
from rnnbench.reports import (
    BackendLine,
    Commands,
    NightSummary,
    ReportError,
    alert_issue,
    night_json,
    night_page,
    write_page,
)
from rnnbench.results import Record, Run, Store, StoreError, file_name, fingerprint
from rnnbench.site import write_site
from rnnbench.spelling import count

ANSWER_MEANS = {
    "refuted": "refuted, the second comparison found no change",
    "undecided": "undecided, the next night compares again",
}
"""The text about a slowdown that was not confirmed, by the answer of the second comparison."""


@dataclass(frozen=True)
class MeasuredNight:
    """The night of one machine."""

    night: Night
    store: Store

    @property
    def run(self) -> Run | None:
        return self.store.read(self.night.run) if self.night.run_ended else None

    @property
    def checked(self) -> list[Run]:
        """The checks of new versions."""
        return [self.store.read(one.checked) for one in self.night.backends.values() if one.checked]


def measured_in(state_file: Path, store: Store) -> MeasuredNight:
    """The night of a state file. Raises StoreError if it has none."""
    night = read_state(state_file).night
    if night is None:
        raise StoreError(f"{state_file}: has no night to collect; measure one with: rnnbench night CASE…")
    return MeasuredNight(night, store)


def collect_night(
    nights: Sequence[MeasuredNight],
    folders: NightFolders,
    checked: Sequence[Run] = (),
    lost_checks: Collection[str] = (),
) -> NightSummary:
    """Collect the measurements of machines. Raises StoreError and AlertsError if the results cannot be written.

    `checked` are separate runs of `rnnbench check` with the newest versions. `lost_checks` are the backends whose
    separate check was lost, so that there is no run.
    """
    day = datetime.now(UTC).date().isoformat()
    state = read_state(folders.state)
    comparisons, problems = _add_to_history(nights, folders.history)
    checked = [*checked, *(run for night in nights for run in night.checked)]
    checks = {check.backend: check for run in checked for check in History(folders.history).add_checks(run.path)}
    outcomes = [outcome for night in nights for outcome in _outcomes(night, comparisons, checks)]
    unused = _unused(checks, outcomes)
    problems += [
        f"{check.run}: is of {check.versions}, which is not the newest of this night; it decides no alert"
        for check in unused
    ]
    history = History(folders.history)
    problems += history.warnings
    before = Alerts.read(folders.alerts)
    alerts = _judged(before, history, outcomes, state, day)
    alerts.write()
    incomplete = {record.backend for run in checked if run.warnings for record in run.records}
    unchecked = {*lost_checks, *(check.backend for check in unused), *incomplete}
    after = _next_state(state, outcomes, alerts, unchecked, day)
    summary = _summary(nights, outcomes, alerts, comparisons, (state, after), day)
    summary = _with_checks(summary, checked, lost_checks)
    site = _write_site(nights, history, alerts, folders)
    summary = replace(summary, problems=tuple(dict.fromkeys((*summary.problems, *problems, *site))))
    _publish(summary, history, alerts, folders)
    if read_state(folders.state) != state:
        raise StoreError(f"{folders.state}: was changed while rnnbench worked on it; run the command again")
    write_state(folders.state, after)
    return summary


def _with_checks(summary: NightSummary, checked: Sequence[Run], lost_checks: Collection[str]) -> NightSummary:
    """The summary with what failed in the checks of new versions, and what is wrong with these checks."""
    records = [record for run in checked for record in run.records if record.outcome != "unavailable"]
    return replace(
        summary,
        failed=(*summary.failed, *filter(_has_failed, records)),
        problems=(
            *summary.problems,
            *(f"{backend}: its conformance was not checked: its check was lost" for backend in sorted(lost_checks)),
            *(f"{run.path.name}: {text}" for run in checked for text in run.warnings),
        ),
    )


def _add_to_history(nights: Sequence[MeasuredNight], root: Path) -> tuple[dict[str, ComparisonEntry], list[str]]:
    """Add runs and comparisons to the history. Returns the comparisons by the name of side b's run, and problems."""
    history, comparisons, problems = History(root), dict[str, ComparisonEntry](), list[str]()
    for part in nights:
        if part.night.run_ended:
            problems += history.add(part.store.resolve(part.night.run)).warnings
        names = [one.compared.runs[1] for one in part.night.backends.values() if one.compared]
        for name in (*names, *([part.night.same[1]] if part.night.same else [])):
            try:
                comparisons[name] = history.add_comparison(part.store.resolve(name))
            except StoreError as error:
                problems.append(str(error))
    return comparisons, problems


def _outcomes(
    measured: MeasuredNight, comparisons: Mapping[str, ComparisonEntry], checks: Mapping[str, CheckEntry]
) -> Iterator[BackendOutcome]:
    run = measured.run
    records = run.records if run else ()
    for backend, night in measured.night.backends.items():
        if night.package or night.problem:
            of_backend = [record for record in records if record.backend == backend and not record.params.pinned]
            compared = comparisons.get(night.compared.runs[1]) if night.compared else None
            check = checks.get(backend)
            yield BackendOutcome(backend, night, of_backend, compared, check if is_of(check, night) else None)


def _unused(checks: Mapping[str, CheckEntry], outcomes: Sequence[BackendOutcome]) -> list[CheckEntry]:
    """The checks that are not of a newest version."""
    used = {outcome.backend for outcome in outcomes if outcome.check}
    return [check for backend, check in checks.items() if backend not in used]


def _judged(alerts: Alerts, history: History, outcomes: Sequence[BackendOutcome], state: State, day: str) -> Alerts:
    """The alerts after this night: updated from the history's series, then from comparisons and checks."""
    if history.nights:
        updated = update(alerts, News.of(history, datetime.now(UTC).replace(tzinfo=None)))
        alerts = updated.put(*_still_open(alerts, updated, outcomes))
    for outcome in outcomes:
        for slowdown in outcome.night.compared.slower if outcome.night.compared else ():
            alerts = note_slowdown(alerts, slowdown, new_id(slowdown.found))
        alerts = mend_returned(alerts, outcome, day)
        if outcome.check is not None:
            alerts = note_failed(alerts, outcome.check, check_before(history, outcome.check))
            alerts = mend_conforming(alerts, outcome.check, day, history.checks)
        elif (newest := outcome.night.newest) and _is_good_again(newest, state.good.get(outcome.backend)):
            alerts = mend_withdrawn(alerts, outcome.backend, newest, outcome.versions, day)
    return alerts


def _still_open(before: Alerts, after: Alerts, outcomes: Sequence[BackendOutcome]) -> list[Alert]:
    """The alerts that only the last good version mends, measured in the place of the newest.

    It never had what they tell.
    """
    in_place = {outcome.backend for outcome in outcomes if outcome.night.measured != outcome.night.newest}
    mended = {alert.id for alert in after.all if alert.state == "mended"}
    return [alert for alert in before.all if alert.is_open and alert.id in mended and alert.found.backend in in_place]


def _is_good_again(newest: Build, good: Good | None) -> bool:
    return good is not None and newest.version == good.version


def _next_state(
    state: State, outcomes: Sequence[BackendOutcome], alerts: Alerts, unchecked: Collection[str], day: str
) -> State:
    """The state after this night, with the new last good versions, and without a night in progress.

    `unchecked` are the backends whose check was lost, in whole or in part, or is of another version.
    """
    good, held = dict(state.good), dict(state.held)
    still_open = {alert.id for alert in alerts.all if alert.is_open}
    for outcome in outcomes:
        backend, newest = outcome.backend, outcome.night.newest
        if newest is None:
            continue
        holding = held.get(backend)
        is_released = (
            holding is not None
            and holding.version == newest.version
            and bool(holding.alerts)
            and not still_open & set(holding.alerts)
        )
        old = good.get(backend)
        failing = outcome.check and alerts_that_hold(alerts, outcome.check)
        is_held = bool(backend in unchecked or failing or left_open(alerts, outcome))
        if is_good(outcome, old, is_released=is_released, is_held=is_held):
            held.pop(backend, None)
            if old is None or old.version != newest.version:
                good[backend] = Good(**newest.model_dump(), since=day)
        elif ids := _alerts_of(outcome, alerts):
            held[backend] = Held(version=newest.version, alerts=ids)
    return State(good=good, held=held)


def _alerts_of(outcome: BackendOutcome, alerts: Alerts) -> tuple[str, ...]:
    """The open alerts that the newest version of a backend causes."""
    failing = [alert.id for alert in alerts_that_hold(alerts, outcome.check)] if outcome.check else []
    if outcome.night.compared is None or not outcome.is_slower:
        return tuple(failing)
    before = outcome.night.compared.versions[0]
    slower = (
        alert.id
        for alert in alerts.all
        if alert.is_open and alert.ab and (alert.found.backend, alert.found.versions[0]) == (outcome.backend, before)
    )
    return (*failing, *slower)


def _summary(
    nights: Sequence[MeasuredNight],
    outcomes: Sequence[BackendOutcome],
    alerts: Alerts,
    comparisons: Mapping[str, ComparisonEntry],
    states: tuple[State, State],
    day: str,
) -> NightSummary:
    runs = [run for part in nights if (run := part.run)]
    slowdowns = [one for outcome in outcomes if outcome.night.compared for one in outcome.night.compared.slower]
    measured = [one.measured for one in slowdowns if one.answer == "confirmed"]
    confirmed = tuple(alert for alert in alerts.all if alert.state == "confirmed" and alert.ab in measured)
    # The verdicts may be missing or damaged. `problems` then says so.
    with_themselves = (comparisons.get(part.night.same[1]) for part in nights if part.night.same)
    same: Counter[str] = Counter(verdict.verdict for found in with_themselves if found for verdict in found.verdicts)
    return NightSummary(
        day=day,
        machine=", ".join(sorted({fingerprint(run.info.machine) for run in runs})) or "none",
        runs=tuple(run.info.run for run in runs),
        backends=tuple(_line(outcome, *states) for outcome in outcomes),
        confirmed=confirmed,
        closed=tuple(alert for alert in alerts.all if alert.state == "mended" and alert.mended == day),
        still_open=tuple(alert for alert in alerts.all if alert.is_certain and alert not in confirmed),
        seen=tuple(a for a in alerts.all if a.state == "new" and a.is_finding and not a.is_certain),
        not_confirmed=tuple(_not_confirmed(one) for one in slowdowns if one.answer != "confirmed"),
        failed=tuple(record for run in runs for record in run.records if _has_failed(record)),
        same=same,
        problems=tuple(dict.fromkeys(_problems(nights, outcomes))),
        slow_calls=tuple(sentence for outcome in outcomes for sentence in _slow_calls(outcome)),
    )


def _not_confirmed(slowdown: Slowdown) -> str:
    detection = slowdown.found
    trials = count(len(detection.members), "trial")
    return f"{detection.backend}, {detection.what} latency, {trials}: {ANSWER_MEANS[slowdown.answer]}"


def _slow_calls(outcome: BackendOutcome) -> Iterator[str]:
    verdicts = outcome.comparison.verdicts if outcome.comparison else ()
    for sentence in slow_calls(verdicts, ("the last good version", "the newest version")):
        yield f"{outcome.backend}: {sentence}"


def _line(outcome: BackendOutcome, before: State, after: State) -> BackendLine:
    night, good = outcome.night, before.good.get(outcome.backend)
    newest = night.newest.version if night.newest else ""
    conformance = sentence_of(outcome.check) if outcome.check else ""
    failures = count(sum(map(_has_failed, outcome.records)), "trial")
    failed = "" if outcome.conforms else f"{failures} failed or did not conform: "
    if night.measured is None:
        result = "not measured"
    elif night.measured != night.newest:
        result = f"{night.measured.version} was measured"
    elif after.good.get(outcome.backend, Good(version="", requirements="", since="")).version == newest:
        result = "it is the last good version now" if good is None or good.version != newest else "no new version"
    elif good is None:
        result = f"{failed}it is not good, and there is no last good version yet"
    elif is_new(outcome.backend, night.newest, after):
        result = f"{failed}it is not good yet, and the next night compares it again"
    else:
        result = f"{failed}it is not good, and later versions are compared with the one before"
    return BackendLine(outcome.backend, good.version if good else "", newest, outcome.counts, result, conformance)


def _has_failed(record: Record) -> bool:
    if record.passes_unexpectedly:
        return True
    return record.outcome not in ("ok", "unsupported") and not record.fails_as_expected


def _problems(nights: Sequence[MeasuredNight], outcomes: Sequence[BackendOutcome]) -> Iterator[str]:
    for outcome in outcomes:
        if outcome.night.problem:
            yield f"{outcome.backend}: not measured in its newest version: {outcome.night.problem}"
        if outcome.night.not_checked:
            yield f"{outcome.backend}: its conformance was not checked: {outcome.night.not_checked}"
        if outcome.night.not_compared:
            yield f"{outcome.backend}: not compared with the last good version: {outcome.night.not_compared}"
    for part in nights:
        yield from part.night.problems


def _write_site(nights: Sequence[MeasuredNight], history: History, alerts: Alerts, folders: NightFolders) -> list[str]:
    """Write the site. Returns problems."""
    try:
        write_site([run for part in nights if (run := part.run)], history, folders.reports / SITE, alerts)
    except (AlertsError, MissingExtraError, ReportError, StoreError) as error:
        return [f"the site was not made: {error}"]
    except OSError as error:
        return [f"the site was not made: {error.filename or folders.reports / SITE}: {error.strerror or error}"]
    return []


def _publish(summary: NightSummary, history: History, alerts: Alerts, folders: NightFolders) -> None:
    """Write the page, its data and the texts of the issues."""
    issues = []
    commands = Commands(history.runs, history.checks)
    for alert in alerts.all:
        if not alert.is_finding and alert.state != "refuted":  # A refuted one may have an issue to close.
            continue
        title, text = alert_issue(alert, commands)
        file = Path(ISSUES) / f"{file_name(alert.id)}.md"
        write_page(text, folders.reports / file)
        state = "open" if alert.is_certain or alert.state == "reported" else "waits" if alert.is_open else "closed"
        issues.append({"id": alert.id, "state": state, "title": title, "text": str(file)})
    write_page(night_page(summary, commands), folders.reports / PAGE)
    write_page(
        json.dumps({**night_json(summary), "page": PAGE, "issues": issues}, indent=2) + "\n", folders.reports / DATA
    )
