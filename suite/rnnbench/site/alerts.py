"""The page of alerts: all changes, and the alerts of the file of alerts with their states and commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rnnbench.history import MEASURES, NEAR, SILENCE, Alert, Detection
from rnnbench.reports import Commands, change_with_interval, drift_until
from rnnbench.results import fact_sentence, file_name
from rnnbench.site.changes import INTERVAL, NAMED, ChangeRow, versions_change
from rnnbench.site.content import Content
from rnnbench.site.page import Folder
from rnnbench.spelling import count

MOST = 300
"""Changes of the page. `rnnbench history changes` has all."""
STATES = ("new", "confirmed", "reported", "accepted", "mended", "refuted")
"""The order of states on the page: alerts that somebody has to decide come first."""


@dataclass(frozen=True)
class AlertRow:
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
    machine_name: str
    """For people; empty where the site tells of one machine alone."""
    commands: tuple[str, ...]
    """That show it again; none where it is closed."""

    @property
    def anchor(self) -> str:
        """Its place on the page of alerts."""
        return f"alert-{file_name(self.id)}"


def write_alerts(content: Content, folder: Folder, changes: Sequence[ChangeRow]) -> None:
    """`alerts.html`. `changes` are the newest first."""
    folder.page(
        "alerts.html",
        "alerts.html",
        content=content,
        changes=changes[:MOST],
        all_changes=len(changes),
        alerts=alert_rows(content),
    )


def alert_rows(content: Content) -> list[AlertRow]:
    """The alerts of the file: those that somebody has to decide first, then the newest. Candidates are left out."""
    return _rows(_in_order(content.alerts), content)


def open_alerts(content: Content) -> list[AlertRow]:
    """Alerts about which somebody has to decide, or that wait for the maintainers; those that are certain first."""
    return _rows(sorted(_open(content), key=lambda alert: not alert.is_certain), content)


def beside_alerts(content: Content, changes: Sequence[ChangeRow]) -> list[ChangeRow]:
    """The changes that no open alert tells."""
    told = [alert.found for alert in _open(content)]
    return [change for change in changes if not any(_tells(found, change, content) for found in told)]


def _tells(found: Detection, change: ChangeRow, content: Content) -> bool:
    """Whether an alert is about a change: the same backend and trials became worse at about that night."""
    same = (found.machine, found.backend, found.what) == (change.machine, change.backend, change.what)
    of_trials = found.whole_backend or change.subject in found.members
    return same and change.direction == "worse" and of_trials and _nights_apart(found, change, content) <= NEAR


def _nights_apart(found: Detection, change: ChangeRow, content: Content) -> int:
    """Nights of the machine between an alert and a change; none while the alert's drift lasted."""
    if found.night <= change.night <= (found.until or ""):
        return 0
    first, last = sorted((found.night, change.night))
    return len({start[:10] for start in content.starts_of.get(found.machine, ()) if first < start <= last})


def _open(content: Content) -> list[Alert]:
    return [alert for alert in _in_order(content.alerts) if alert.is_open]


def _in_order(alerts: Sequence[Alert]) -> list[Alert]:
    shown = (alert for alert in alerts if alert.is_finding or alert.has_additions)
    newest_first = sorted(shown, key=lambda alert: alert.found.night, reverse=True)
    return sorted(newest_first, key=lambda alert: STATES.index(alert.state))


def _rows(alerts: Sequence[Alert], content: Content) -> list[AlertRow]:
    commands = Commands([night.entry for night in content.nights], content.checks)
    return [_row(alert, content, commands) for alert in alerts]


def _row(alert: Alert, content: Content, commands: Commands) -> AlertRow:
    detection = alert.found
    if detection.what == SILENCE:
        sentence = "; ".join(filter(None, ("no run since then", detection.detail)))
    elif detection.is_level:
        change = change_with_interval(detection.ratio or 1.0, detection.interval, INTERVAL)
        sentence = f"{MEASURES[detection.what].title} {change}{drift_until(detection.until)}"
    else:
        sentence = fact_sentence(detection.what, detection.before, detection.after, detection.detail)
    members = [(member, content.pages.get((detection.machine, member), "")) for member in detection.members[:NAMED]]
    subject = f"{detection.backend}, all trials" if detection.whole_backend else detection.backend or detection.machine
    more = len(detection.members) - len(members)
    return AlertRow(
        id=alert.id,
        state=alert.state,
        night=detection.night,
        backend=detection.backend,
        subject=f"{subject} and {count(more, 'more trial')}" if more > 0 and not detection.whole_backend else subject,
        pages=() if detection.whole_backend else tuple(members),
        sentence=sentence,
        versions=versions_change(detection.versions),
        decided="; ".join(_decided(alert)),
        issue=alert.reported.issue if alert.reported else "",
        machine_name=content.named_machine(detection.machine) if detection.backend else "",
        commands=tuple(commands.lines(detection)) if alert.is_open else (),
    )


def _decided(alert: Alert) -> Iterator[str]:
    if alert.ab:
        # The interval of a comparison by `ab` holds with more than 95 %.
        change = change_with_interval(alert.ab.ratio, alert.ab.interval, "interval ")
        yield f"measured by ab on {alert.ab.on}: {change}"
    if alert.accepted:
        yield f"accepted until {alert.accepted.until} by {alert.accepted.by}: {alert.accepted.why}"
    if alert.reported:
        yield f"reported on {alert.reported.on}"
    if alert.mended:
        yield f"mended on {alert.mended}" + (f": {alert.returned}" if alert.returned else "")
    if alert.note:
        yield alert.note
