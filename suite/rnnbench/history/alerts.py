"""The alerts of a history and their states: read, changed by one transition each, and written.

People accept and report alerts by an edit of the file, so there is no transition for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path

from rnnbench.history.alert import Alert, Detection, Measured, new_id
from rnnbench.history.alerts_file import AlertsError, read_file, write_file
from rnnbench.spelling import did_you_mean
from rnnbench.yaml_files import Place


@dataclass(frozen=True)
class Alerts:
    """The content of `alerts.yaml`. Every transition returns other Alerts; `write` puts them into the file."""

    file: Path
    all: tuple[Alert, ...]
    """In the order of the file."""
    as_read: tuple[Alert, ...]
    text: str
    """The text of the file as it was read; empty where there was none."""
    commented: frozenset[str]
    """Ids beside which people wrote comments."""

    @classmethod
    def read(cls, file: Path) -> Alerts:
        """Raises AlertsError, with line and column of every mistake. A file that is absent has no alerts."""
        text, alerts, commented = read_file(file)
        return cls(file, alerts, alerts, text, commented)

    def write(self) -> Alerts:
        """Write the file as a whole. What people wrote in it stays. Raises AlertsError and StoreError."""
        text = write_file(self.file, self.text, self.as_read, self.all)
        return replace(self, as_read=self.all, text=text)

    def find(self, identity: str) -> Alert:
        """The alert with this id. Raises AlertsError, with the nearest id."""
        for alert in self.all:
            if alert.id == identity:
                return alert
        advice = did_you_mean(identity, (alert.id for alert in self.all)) or "`rnnbench triage` names them"
        raise AlertsError.at(Place(str(self.file)), f"has no alert '{identity}'; {advice}")

    def confirm(self, identity: str, measured: Measured) -> Alerts:
        """A measurement found the change. Where a person has decided already, the decision stays."""
        alert = self._open(identity)
        decided = alert.state in ("accepted", "reported")
        return self.put(alert.with_(ab=measured, state=alert.state if decided else "confirmed"))

    def refute(self, identity: str, measured: Measured) -> Alerts:
        """A measurement found no change. Where a person has decided already, the decision stays."""
        alert = self._open(identity)
        decided = alert.state in ("accepted", "reported")
        return self.put(alert.with_(ab=measured, state=alert.state if decided else "refuted"))

    def mend(self, identity: str, day: str, why: str | None = None) -> Alerts:
        """The series has returned; or versions do not show it any more, and `why` says which."""
        return self.put(self.find(identity).with_(state="mended", mended=day, returned=why))

    def reopen(self, identity: str) -> Alerts:
        """New again: the acceptance has run out, or what was mended is back."""
        return self.put(self.find(identity).with_(state="new", mended=None, returned=None))

    def add(self, detection: Detection) -> Alerts:
        """With a new alert. Its id is that of `new_id`, or the first one after it that no alert has."""
        identity, taken = new_id(detection), {alert.id for alert in self.all}
        ids = chain([identity], (f"{identity}-{number}" for number in count(2)))
        free = next(name for name in ids if name not in taken)
        return self.put(Alert(id=free, state="new", found=detection))

    def put(self, *changed: Alert) -> Alerts:
        """With these alerts in the place of those with the same ids, or at the end."""
        by_id = {alert.id: alert for alert in (*self.all, *changed)}
        return replace(self, all=tuple(by_id.values()))

    def without(self, identities: Iterable[str]) -> Alerts:
        left_out = set(identities)
        return replace(self, all=tuple(alert for alert in self.all if alert.id not in left_out))

    def _open(self, identity: str) -> Alert:
        alert = self.find(identity)
        if alert.state == "mended":
            raise AlertsError.at(Place(str(self.file)), f"the alert '{identity}' is mended; there is nothing to decide")
        return alert
