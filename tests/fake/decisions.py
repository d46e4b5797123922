"""What a person decides about an alert, as an edit of `alerts.yaml` makes it."""

from __future__ import annotations

from rnnbench.history import Acceptance, Alerts, UpstreamReport


def accept(alerts: Alerts, identity: str, why: str = "known", until: str = "2999-12-31") -> Alerts:
    """With the alert accepted by Ada, up to a day."""
    accepted = Acceptance(why=why, by="Ada", until=until)
    return alerts.put(alerts.find(identity).with_(state="accepted", accepted=accepted))


def report(alerts: Alerts, identity: str) -> Alerts:
    """With the alert reported to the makers of the backend."""
    reported = UpstreamReport(issue="https://fake.example/1", on="2026-01-11")
    return alerts.put(alerts.find(identity).with_(state="reported", reported=reported))
