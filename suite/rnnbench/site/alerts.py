"""What changed, for people: sentences of the overview, rows of the alerts page, and alerts with their states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from rnnbench.history import MEASURES, SILENCE, Alert, Change, CheckChange, Event, FailedTrial, check_changes
from rnnbench.reports import relative_change
from rnnbench.results import fact_sentence
from rnnbench.site.content import Content
from rnnbench.spelling import count

WEEK = timedelta(days=7)
MOST = 300
"""Alerts of the alerts page. `rnnbench history changes` has all."""
NAMED = 5
"""Trials that are named of those that moved together."""
STATES = ("new", "confirmed", "reported", "accepted", "mended", "refuted")
"""Those that somebody has to decide come first."""
Direction = Literal["worse", "better", "other", "environment"]
SIGN = {"worse": "▲", "better": "▼", "other": "●", "environment": "○"}
"""Of each direction. A legend stands beside."""


@dataclass(frozen=True)
class AlertRow:
    """One thing that changed, as a row of the alerts page."""

    night: str
    run: str
    direction: Direction
    subject: str
    page: str
    """Of the trial; empty for a backend or a machine, or where no record of it is shown."""
    backend: str
    sentence: str
    """Without its subject."""
    detail: str
    machine: str
    is_fact: bool
    """Whether it is about an outcome, a check or belief, and not about a level."""
    together: tuple[tuple[str, str], ...] = ()
    """Other trials that moved with it, with their pages."""
    more: int = 0
    """How many of these are not named."""

    @property
    def sign(self) -> str:
        return SIGN[self.direction]


@dataclass(frozen=True)
class Decision:
    """An alert of the file of alerts, with its state."""

    id: str
    state: str
    night: str
    backend: str
    subject: str
    pages: tuple[tuple[str, str], ...]
    """The first trials with their pages."""
    sentence: str
    versions: str
    decided: str
    """What a person or a measurement added."""
    issue: str
    """Address of the report to the maintainers."""


def decisions(content: Content) -> list[Decision]:
    """The alerts of the file: those that somebody has to decide first, then the newest. Candidates are left out."""
    return [_decision(alert, content) for alert in _in_order(content.alerts)]


def still_open(content: Content) -> list[Decision]:
    """Alerts from before the last week about which somebody has to decide, or that wait for the maintainers."""
    since = _week_before(content)
    return [
        _decision(alert, content)
        for alert in _in_order(content.alerts)
        if alert.is_open and since is not None and alert.found.night < since
    ]


def alerts_of(content: Content) -> list[AlertRow]:
    """All alerts, the newest first. What a backend's change says of its trials is not said again for each of them, and
    what the machine did to single trials is not said at all."""
    backends = [c for c in content.changes if c.level == "backend" and c.cause == "program"]
    told = {(trial, c.measure) for c in backends for trial in c.together}
    changes = [
        c
        for c in content.changes
        if c.level != "trial" or (c.cause == "program" and (c.subject, c.measure) not in told)
    ]
    alerts = [
        *(_of_change(c, content) for c in changes),
        *(_of_event(e, content) for e in content.events),
        *(news for change in check_changes(content.checks) for news in _of_check(change)),
    ]
    return sorted(alerts, key=lambda a: (a.night, a.direction != "environment", a.subject), reverse=True)


def last_week(content: Content, alerts: list[AlertRow]) -> list[AlertRow]:
    """Those of the seven days up to the newest night that are no doing of the machine: what became worse first."""
    since = _week_before(content)
    recent = [a for a in alerts if since is not None and a.night >= since and a.direction != "environment"]
    return sorted(recent, key=lambda a: list(SIGN).index(a.direction))


def _in_order(alerts: Sequence[Alert]) -> list[Alert]:
    told = sorted((a for a in alerts if a.told or a.touched), key=lambda alert: alert.found.night, reverse=True)
    return sorted(told, key=lambda alert: STATES.index(alert.state))


def _week_before(content: Content) -> str | None:
    """Seven days before the newest night; None where there is no night."""
    if not content.nights:
        return None
    return (datetime.fromisoformat(content.nights[-1].entry.started) - WEEK).isoformat()


def sentence_of(change: Change) -> str:
    """`bound latency +3.1 % (95 % interval +2.5 % to +3.8 %)`."""
    return f"{MEASURES[change.measure].title} {size(change.ratio, change.interval)}"


def _of_change(change: Change, content: Content) -> AlertRow:
    direction: Direction = "environment" if change.cause == "environment" else "worse" if change.ratio > 1 else "better"
    named = [(trial, content.pages.get((change.machine, trial), "")) for trial in change.together[:NAMED]]
    subject = "the machine" if change.level == "machine" else change.subject
    return AlertRow(
        night=change.night,
        run=change.run,
        direction=direction,
        subject=subject,
        page=content.pages.get((change.machine, change.subject), ""),
        backend=change.backend,
        sentence=sentence_of(change),
        detail="; ".join(filter(None, (_versions(change.versions), change.reason and f"environment: {change.reason}"))),
        machine=change.machine,
        is_fact=False,
        together=tuple(named),
        more=max(0, len(change.together) - NAMED),
    )


def _of_event(event: Event, content: Content) -> AlertRow:
    return AlertRow(
        night=event.night,
        run=event.run,
        direction=_direction(event),
        subject=event.subject,
        page=content.pages.get((event.machine, event.subject), ""),
        backend=event.backend,
        sentence=event.sentence,
        detail="" if event.fact == "versions" else _versions(event.versions),
        machine=event.machine,
        is_fact=event.fact in ("outcome", "failed_checks", "believed"),
    )


def _of_check(change: CheckChange) -> Iterator[AlertRow]:
    """What the check of a new version found, and what of the check before is mended."""
    of = f"of {count(len(change.check.trials), 'trial')} checked"
    if change.worse:
        sentence = f"the conformance check finds {len(change.worse)} {of} failing: {change.worse[0].reason}"
        yield _check_row(change, "worse", sentence, change.worse)
    if change.mended:
        sentence = f"{len(change.mended)} {of} conform again"
        yield _check_row(change, "better", sentence, change.mended)


def _check_row(change: CheckChange, direction: Direction, sentence: str, trials: Sequence[FailedTrial]) -> AlertRow:
    check = change.check
    return AlertRow(
        night=check.started,
        run=check.run,
        direction=direction,
        subject=check.backend,
        page="",
        backend=check.backend,
        sentence=sentence,
        detail=_versions((change.before.versions, check.versions)) if change.before else check.versions,
        machine=check.machine,
        is_fact=True,
        together=tuple((one.trial, "") for one in trials[:NAMED]),
        more=max(0, len(trials) - NAMED),
    )


def _direction(event: Event) -> Direction:
    if event.fact == "outcome":
        return "better" if event.after == "ok" else "worse"
    if event.fact == "failed_checks":
        return "worse" if event.after else "better"
    if event.fact == "believed":
        return "better" if event.after == "true" else "worse"
    return "other"


def _versions(versions: tuple[str, str]) -> str:
    before, after = versions
    return "" if before == after else f"{before or 'none'} → {after or 'none'}"


def mended(alerts: list[AlertRow]) -> Iterator[AlertRow]:
    """What was wrong and is right again."""
    yield from (alert for alert in alerts if alert.direction == "better" and alert.is_fact)


def _decision(alert: Alert, content: Content) -> Decision:
    found = alert.found
    if found.what == SILENCE:
        sentence = "no run since then"
    elif found.is_level:
        sentence = f"{MEASURES[found.what].title} {size(found.ratio or 1.0, found.interval)}"
    else:
        sentence = fact_sentence(found.what, found.before, found.after, found.detail)
    members = [(member, content.pages.get((found.machine, member), "")) for member in found.members[:NAMED]]
    subject = f"{found.backend}, all trials" if found.whole_backend else found.backend or found.machine
    more = len(found.members) - len(members)
    return Decision(
        id=alert.id,
        state=alert.state,
        night=found.night,
        backend=found.backend,
        subject=f"{subject} and {more} more trials" if more > 0 and not found.whole_backend else subject,
        pages=() if found.whole_backend else tuple(members),
        sentence=sentence,
        versions=_versions(found.versions),
        decided="; ".join(_decided(alert)),
        issue=alert.reported.issue if alert.reported else "",
    )


def _decided(alert: Alert) -> Iterator[str]:
    if alert.ab:
        yield f"measured by ab on {alert.ab.on}: {size(alert.ab.ratio, alert.ab.interval, 'interval ')}"
    if alert.accepted:
        yield f"accepted until {alert.accepted.until} by {alert.accepted.by}: {alert.accepted.why}"
    if alert.reported:
        yield f"reported on {alert.reported.on}"
    if alert.mended:
        yield f"mended on {alert.mended}" + (f": {alert.returned}" if alert.returned else "")
    if alert.note:
        yield alert.note


def size(ratio: float, interval: tuple[float, float] | None, confidence: str = "95 % interval ") -> str:
    """`+3.1 % (95 % interval +2.5 % to +3.8 %)`. That of a comparison by `ab` holds with more than 95 %.

    `confidence` stands before the interval.
    """
    if interval is None:
        return relative_change(ratio)
    low, high = map(relative_change, interval)
    return f"{relative_change(ratio)} ({confidence}{low} to {high})"
