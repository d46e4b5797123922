"""Alerts brought up to date with a history: new ones, mended ones, those that came back, acceptances that ran out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rnnbench.history.alert import SILENCE, Alert, Detection
from rnnbench.history.alerts import Alerts
from rnnbench.history.causes import NEAR
from rnnbench.history.fact_alerts import Facts, Silences
from rnnbench.history.level_alerts import LAST, Levels
from rnnbench.history.series import trials_of_machines
from rnnbench.history.settings import read_settings
from rnnbench.history.store import History
from rnnbench.results import SMALLEST


@dataclass(frozen=True)
class News:
    """What a history shows at a time, before anybody has decided."""

    levels: Mapping[str, Levels]
    """By machine."""
    facts: Facts
    silences: Silences
    machines_now: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints of alerts whose machine has another one by now, with that one."""

    @classmethod
    def of(cls, history: History, now: datetime, last: int = LAST) -> News:
        """`now` is UTC, without a zone. Changes and events are looked for in the last runs of each machine."""
        anchors = read_settings(history.root).anchors
        levels = {machine: Levels.of(machine, trials, last) for machine, trials in trials_of_machines(history, anchors)}
        return cls(levels, Facts(history, last), Silences.of(history, now), history.machines_now)

    def worse(self) -> list[Detection]:
        """All that is bad news and holds now."""
        changes = [detection for levels in self.levels.values() for detection in levels.worse()]
        return [*changes, *self.facts.worse(), *self.silences.worse(self.facts.last)]

    def has_returned(self, detection: Detection) -> bool:
        """Whether it holds no more: the level is the old one again, the fact is over, or the machine runs again."""
        if detection.what == SILENCE:
            return self.silences.has_returned(detection)
        if detection.is_level:
            return detection.machine in self.levels and self.levels[detection.machine].has_returned(detection)
        return self.facts.has_returned(detection)

    def explanation(self, detection: Detection) -> str:
        """Why a change of a level is no alert of its own any more; empty where nothing says so."""
        levels = self.levels.get(detection.machine) if detection.is_level else None
        return levels.explanation(detection) if levels else ""

    def distance(self, detection: Detection, other: Detection) -> float:
        """Runs between two of the same kind."""
        if detection.is_level and detection.machine in self.levels:
            return self.levels[detection.machine].distance(detection, other)
        return self.facts.distance(detection.machine, detection.night, other.night)


def update(alerts: Alerts, news: News) -> Alerts:
    """The alerts after a look at the history. Nothing is written."""
    today = news.silences.now.date().isoformat()
    for before in alerts.all:
        if machine := news.machines_now.get(before.found.machine):
            alerts = alerts.put(before.with_(found=before.found.model_copy(update={"machine": machine})))
    worse = news.worse()
    matches = _matches(worse, alerts.all, news.distance)
    for number, detection in enumerate(worse):
        alert = matches.get(number)
        if alert is None:
            alerts = alerts.add(detection)
        elif alert.state == "mended" and _is_known(alert, detection):
            continue
        elif alert.state == "mended":
            alerts = alerts.put(alert.with_(found=detection)).reopen(alert.id)
        elif alert.state != "new" and _has_grown(alert.found, detection):
            alerts = alerts.add(detection)
        else:
            alerts = alerts.put(_refreshed(alert, detection, news))
    back = {alert.id for alert in matches.values()}
    for alert in alerts.all:
        if alert.state == "mended" or alert.id in back or alert.found.evidence == "checked":
            continue
        if news.has_returned(alert.found):
            alerts = _closed(alerts, alert, today)
        elif alert.state == "new" and not alert.has_additions and (why := news.explanation(alert.found)):
            alerts = _closed(alerts, alert, today, why)
    for alert in alerts.all:
        if alert.state == "accepted" and alert.accepted and alert.accepted.until < today:
            alerts = alerts.reopen(alert.id)
    return alerts


def _is_known(alert: Alert, detection: Detection) -> bool:
    """Whether it is the step of an alert that versions have mended since: the series needs more nights to show it."""
    return alert.ab is not None and alert.returned is not None and detection.night[:10] <= (alert.mended or "")


def _has_grown(old: Detection, detection: Detection) -> bool:
    """Whether a drift went on after somebody decided about it, by more than the smallest change that matters."""
    if detection.until is None or detection.interval is None:
        return False
    return detection.interval[0] > (old.ratio or 1.0) * (1 + SMALLEST)


def _closed(alerts: Alerts, alert: Alert, today: str, why: str | None = None) -> Alerts:
    """A candidate that nobody was told of is dropped: most are noise. One with a person's words stays."""
    if alert.found.evidence == "candidate" and not alert.has_additions and alert.id not in alerts.commented:
        return alerts.without([alert.id])
    return alerts.mend(alert.id, today, why)


def _matches(
    worse: list[Detection], alerts: tuple[Alert, ...], distance: Callable[[Detection, Detection], float]
) -> dict[int, Alert]:
    """The alert that each one is already, by number: the nearest, within NEAR runs. Each alert is taken once.

    Of two at one distance it is that with the more similar change.
    """
    pairs = sorted(
        (distance(detection, alert.found), _dissimilarity(detection, alert.found), number, k)
        for number, detection in enumerate(worse)
        for k, alert in enumerate(alerts)
        if _is_same_kind(detection, alert.found)
    )
    matches: dict[int, Alert] = {}
    taken: set[int] = set()
    for runs, _, number, k in pairs:
        if runs <= NEAR and number not in matches and k not in taken:
            matches[number] = alerts[k]
            taken.add(k)
    return matches


def _dissimilarity(detection: Detection, other: Detection) -> float:
    return abs(math.log((detection.ratio or 1.0) / (other.ratio or 1.0)))


def _is_same_kind(detection: Detection, other: Detection) -> bool:
    if other.evidence == "checked":  # It is of other trials than those of the series.
        return False
    return (detection.machine, detection.backend, detection.what, detection.after, detection.is_level) == (
        other.machine,
        other.backend,
        other.what,
        other.after,
        other.is_level,
    )


def _refreshed(alert: Alert, detection: Detection, news: News) -> Alert:
    """With what is found now, where that says something else: estimates wobble, and the file should rest."""
    old = alert.found
    surer = (old.evidence, detection.evidence) == ("candidate", "published")
    if alert.state != "new":
        return alert.with_(found=old.model_copy(update={"evidence": "published"})) if surer else alert
    members = tuple(sorted({*_not_returned(old, detection, news), *detection.members}))
    other_members = members != old.members and not old.whole_backend
    moved = (old.night, old.versions) != (detection.night, detection.versions)
    moved |= not (_has(old.interval, detection.ratio) and _has(detection.interval, old.ratio))
    if not (surer or other_members or moved or detection.whole_backend > old.whole_backend):
        return alert
    evidence = next(
        (kind for kind in ("published", "compared") if kind in (old.evidence, detection.evidence)), detection.evidence
    )
    return alert.with_(found=detection.model_copy(update={"members": members, "evidence": evidence}))


def _has(interval: tuple[float, float] | None, ratio: float | None) -> bool:
    low, high = interval or (0.0, math.inf)
    return low <= (ratio or 1.0) <= high


def _not_returned(old: Detection, detection: Detection, news: News) -> set[str]:
    """Members of an alert that are not found now, and that have not returned either: its estimate wobbled."""
    if old.whole_backend:
        return {*old.members}
    absent = {*old.members}.difference(detection.members)
    return {name for name in absent if not news.has_returned(old.model_copy(update={"members": (name,)}))}
