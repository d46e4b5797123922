"""Alerts on the site: what waits for a decision comes first, with what was decided."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from made_site import CHANGE

from rnnbench.history import Acceptance, Alert, Detection, Measured, UpstreamReport
from rnnbench.site.alerts import NAMED, alert_rows, beside_alerts, open_alerts
from rnnbench.site.changes import change_rows

FOUND = Detection(
    machine="fake",
    backend="fakelib",
    what="bound",
    evidence="published",
    night="2026-01-30T02:00:00",
    run="night",
    ratio=1.1,
    interval=(1.05, 1.15),
    versions=("1", "2"),
    members=("t1",),
)


def test_alerts_that_wait_for_a_decision_come_first_and_candidates_are_left_out(content):
    issue = "https://github.com/fake/project/issues/7"
    reported = UpstreamReport(issue=issue, on="2026-02-01")
    accepted = Acceptance(why="known", by="Kim", until="2026-03-01")
    alerts = (
        Alert(id="a", state="accepted", accepted=accepted, found=FOUND),
        Alert(id="r", state="reported", reported=reported, found=FOUND),
        Alert(id="c", state="new", found=FOUND.model_copy(update={"evidence": "candidate"})),
        Alert(id="n", state="new", found=FOUND),
    )
    shown = alert_rows(replace(content, alerts=alerts))
    assert [each.id for each in shown] == ["n", "r", "a"]
    assert shown[0].sentence == "bound latency +10.0 % (95 % interval +5.0 % to +15.0 %)"
    assert (shown[1].decided, shown[1].issue) == ("reported on 2026-02-01", issue)
    assert shown[2].decided == "accepted until 2026-03-01 by Kim: known"


@pytest.mark.parametrize(
    ("trials", "whole", "subject", "named"),
    [
        (NAMED, False, "fakelib", NAMED),
        (NAMED + 1, False, "fakelib and 1 more trial", NAMED),
        (NAMED + 2, False, "fakelib and 2 more trials", NAMED),
        (NAMED + 2, True, "fakelib, all trials", 0),
    ],
)
def test_of_an_alert_of_many_trials_some_are_named_and_the_others_are_counted(content, trials, whole, subject, named):
    found = FOUND.model_copy(
        update={"members": tuple(f"t{number}" for number in range(trials)), "whole_backend": whole}
    )
    (shown,) = alert_rows(replace(content, alerts=(Alert(id="m", state="new", found=found),)))
    assert shown.subject == subject
    assert [name for name, _ in shown.pages] == [f"t{number}" for number in range(named)]


def test_a_fact_and_a_silence_are_said_in_words(content):
    fact = FOUND.model_copy(update={"what": "outcome", "before": "ok", "after": "crashed", "ratio": None})
    silence = FOUND.model_copy(update={"what": "silence", "backend": "", "members": ("case",), "evidence": "event"})
    alerts = (Alert(id="f", state="new", found=fact), Alert(id="s", state="new", found=silence))
    sentences = {each.id: each.sentence for each in alert_rows(replace(content, alerts=alerts))}
    assert sentences == {"f": "ends as crashed (it was ok)", "s": "no run since then"}


def test_every_alert_is_open_until_somebody_has_decided_and_what_is_certain_comes_first(content):
    """Also one that a comparison found last night: its level is published a week later, if at all."""
    old = FOUND.model_copy(update={"night": "2026-01-20T02:00:00"})
    compared = FOUND.model_copy(update={"evidence": "compared"})
    measured = Measured(ratio=1.2, interval=(1.19, 1.21), versions=("1", "2"), on="2026-01-30")
    accepted = Acceptance(why="known", by="Kim", until="2026-03-01")
    alerts = (
        Alert(id="now", state="new", found=FOUND),
        Alert(id="old", state="new", found=old),
        Alert(id="sure", state="confirmed", ab=measured, found=compared),
        Alert(id="decided", state="accepted", accepted=accepted, found=old),
    )
    shown = open_alerts(replace(content, alerts=alerts))
    assert [each.id for each in shown] == ["sure", "now", "old"]
    assert shown[0].decided == "measured by ab on 2026-01-30: +20.0 % (interval +19.0 % to +21.0 %)"


def test_an_open_alert_has_the_commands_that_show_it_and_a_closed_one_has_none(content):
    named = FOUND.model_copy(update={"members": ("case/fakelib:ops/looped/h1-35a65643",), "versions": ("p 1", "p 2")})
    alerts = (Alert(id="n", state="new", found=named), Alert(id="m", state="mended", mended="2026-02-01", found=named))
    shown, closed = alert_rows(replace(content, alerts=alerts))
    assert [line.split()[1] for line in shown.commands] == ["ab", "bisect", "history"]
    assert closed.commands == ()


@pytest.mark.parametrize(("nights", "is_told"), [(0, True), (-3, True), (3, True), (-4, False), (4, False)])
def test_a_change_that_an_open_alert_tells_is_told_once(content, nights, is_told):
    """However old both are: a new level is published after a week. An alert of another night is about another step."""
    others = (replace(CHANGE, subject="t2"), replace(CHANGE, measure="public"), replace(CHANGE, machine="other"))
    day = datetime.fromisoformat("2026-01-10T02:00:00")
    change = replace(CHANGE, night=day.isoformat())
    changes = (change, *(replace(other, night=change.night) for other in others))
    found = replace(content, nights=_nights_of_january(content), changes=changes)
    night = (day + timedelta(days=nights)).isoformat()
    alert = Alert(id="n", state="new", found=FOUND.model_copy(update={"night": night}))
    rows = change_rows(found)
    beside = beside_alerts(replace(found, alerts=(alert,)), rows)
    assert len(beside) == len(rows) - is_told
    assert {row.subject for row in beside} == {"t1", "t2"}


def test_what_rose_while_the_drift_of_an_open_alert_lasted_is_told_by_it(content):
    found = replace(content, nights=_nights_of_january(content), changes=(CHANGE,))
    drift = FOUND.model_copy(update={"night": "2026-01-10T02:00:00", "until": "2026-01-31T02:00:00"})
    rows = change_rows(found)
    assert beside_alerts(replace(found, alerts=(Alert(id="d", state="new", found=drift),)), rows) == []
    sudden = drift.model_copy(update={"until": None})
    assert beside_alerts(replace(found, alerts=(Alert(id="d", state="new", found=sudden),)), rows) == rows


def _nights_of_january(content):
    (night,) = content.nights
    starts = (f"2026-01-{day:02d}T02:00:00" for day in range(1, 32))
    return tuple(
        replace(night, entry=night.entry.model_copy(update={"machine": "fake", "started": start})) for start in starts
    )
