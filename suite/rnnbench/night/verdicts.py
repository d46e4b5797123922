"""The consequences of a night's verdicts for alerts and for the last good versions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rnnbench.history import REST, Alert, Alerts, CheckEntry, ComparisonEntry, Detection, LatencyVerdict
from rnnbench.night.state import BackendNight, Build, Slowdown
from rnnbench.results import Record, versions_text

HALF = 0.5
"""A change has gone if an interval excludes this share of it."""


@dataclass(frozen=True)
class BackendOutcome:
    """One backend after its measurements."""

    backend: str
    night: BackendNight
    records: Sequence[Record]
    """The backend's records in the run of the night."""
    comparison: ComparisonEntry | None
    """The comparison of the last good version with the newest."""
    check: CheckEntry | None = None
    """The conformance check of the newest version, if that is new."""

    @property
    def versions(self) -> str:
        """The measured versions, as a text of rows."""
        return versions_text(self.records[0].version) if self.records else ""

    @property
    def conforms(self) -> bool:
        """Whether the night measured it, and no trial failed that was not expected to."""
        return bool(self.records) and all(
            record.outcome in ("ok", "unsupported") or record.fails_as_expected for record in self.records
        )

    @property
    def is_slower(self) -> bool:
        """Whether there is a slowdown that no second comparison has refuted."""
        compared = self.night.compared
        return compared is not None and any(one.answer != "refuted" for one in compared.slower)

    @property
    def counts(self) -> dict[str, int]:
        """How often each verdict was reached."""
        return Counter(verdict.verdict for verdict in self.comparison.verdicts) if self.comparison else {}


def note_slowdown(alerts: Alerts, slowdown: Slowdown, identity: str) -> Alerts:
    """With what a night found slower. What was refuted or undecided makes no new alert.

    One that is there already, of the same backend, measure and version before, is the same alert.
    """
    open_alert = next((alert for alert in alerts.all if alert.is_open and _is_same(alert, slowdown)), None)
    if slowdown.measured is None or slowdown.answer == "undecided":
        return alerts
    if open_alert is not None and open_alert.state == "new":
        transition = alerts.confirm if slowdown.answer == "confirmed" else alerts.refute
        return transition(open_alert.id, slowdown.measured)
    if open_alert is not None or slowdown.answer == "refuted":
        return alerts
    ids = {alert.id for alert in alerts.all}
    if identity in ids:  # This night is collected a second time.
        return alerts
    return alerts.put(Alert(id=identity, state="new", found=slowdown.found)).confirm(identity, slowdown.measured)


def mend_returned(alerts: Alerts, outcome: BackendOutcome, day: str) -> Alerts:
    """Mend the alerts that the newest version of a backend no longer shows."""
    for alert in alerts.all:
        if _is_found_by_comparison(alert, outcome) and (why := _returned(alert, outcome)):
            alerts = alerts.mend(alert.id, day, why)
    return alerts


def _is_same(alert: Alert, slowdown: Slowdown) -> bool:
    old, new = alert.found, slowdown.found
    return (old.backend, old.what, old.versions[0]) == (new.backend, new.what, new.versions[0])


def left_open(alerts: Alerts, outcome: BackendOutcome) -> list[Alert]:
    """The open alerts whose trials were compared with the version before them once more, which mended none of them."""
    return [
        alert for alert in alerts.all if _is_found_by_comparison(alert, outcome) and _compared_again(alert, outcome)
    ]


def _is_found_by_comparison(alert: Alert, outcome: BackendOutcome) -> bool:
    found = alert.found
    return alert.is_open and alert.ab is not None and (found.evidence, found.backend) == ("compared", outcome.backend)


def _compared_again(alert: Alert, outcome: BackendOutcome) -> list[LatencyVerdict]:
    """The verdicts of this night on an alert's trials, beside the version before the alert."""
    compared = outcome.night.compared
    if outcome.comparison is None or compared is None or compared.versions[0] != alert.found.versions[0]:
        return []
    members = set(alert.found.members)
    return [v for v in outcome.comparison.verdicts if v.trial in members and v.path == alert.found.what]


def _returned(alert: Alert, outcome: BackendOutcome) -> str:
    """Why an alert is mended; empty if it is not.

    It is mended if the earlier version is the newest again. It is also mended if, compared with the earlier version, no
    trial of the alert is SLOWER, and most trials are as fast as before.
    """
    before = alert.found.versions[0]
    night = outcome.night
    if night.newest is None or night.measured != night.newest:
        return ""
    if outcome.versions == before:
        return f"{before} is the newest again"
    of_alert = _compared_again(alert, outcome)
    back = [verdict for verdict in of_alert if _is_back(verdict, alert.found)]
    if any(verdict.verdict == "SLOWER" for verdict in of_alert) or 2 * len(back) <= len(of_alert):
        return ""
    middle = sorted(back, key=lambda verdict: verdict.ratio)[(len(back) - 1) // 2]
    return f"{outcome.versions} beside {before}: ratio {middle.ratio:.3f} ({middle.low:.3f} to {middle.high:.3f})"


def _is_back(now: LatencyVerdict, found: Detection) -> bool:
    """Whether a trial is as fast as before a change: it is not SLOWER, and little of the change is left.

    A busy machine may be UNDECIDED about 3 %, and still show that a change of 50 % has gone. It has gone if less than
    REST of it is left, and the interval excludes HALF of it.
    """
    if now.low is None or now.high is None:
        return False
    size = math.log(found.ratio or 1.0)  # A person may have edited the ratio.
    if now.verdict == "UNDECIDED" and size:
        return math.log(now.ratio) / size < REST and math.log(now.high) / size < HALF
    return now.verdict in ("SAME", "FASTER")


def is_good(outcome: BackendOutcome, good: Build | None, *, is_released: bool, is_held: bool) -> bool:
    """Whether the newest version becomes the last good one: it conforms, and has no open slowdown.

    `is_released`: alerts held it back, and none of them is open now. `is_held`: failures of this night's check hold it
    back, which nobody has accepted; or the check was lost, or is of another version; or a slowdown of an earlier
    version may still be there.
    """
    newest, compared = outcome.night.newest, outcome.night.compared
    if newest is None or outcome.night.measured != newest or not outcome.conforms:
        return False
    if is_held or outcome.night.not_checked:
        return False
    if good is None or newest.version == good.version or is_released:
        return True
    return compared is not None and not compared.worse and not outcome.is_slower
