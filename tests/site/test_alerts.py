"""Alerts on the site: what waits for a decision comes first, with what was decided."""

from __future__ import annotations

from dataclasses import replace

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


def test_a_change_that_an_open_alert_tells_is_told_once(content):
    others = (replace(CHANGE, subject="t2"), replace(CHANGE, measure="public"), replace(CHANGE, machine="other"))
    found = replace(content, changes=(CHANGE, *others))
    alert, old = (
        Alert(id="n", state="new", found=FOUND.model_copy(update={"night": f"2026-01-{day}T02:00:00"}))
        for day in (30, 10)
    )
    rows = change_rows(found)
    assert {row.subject for row in beside_alerts(replace(found, alerts=(alert,)), rows)} == {"t1", "t2"}
    assert len(beside_alerts(replace(found, alerts=(alert,)), rows)) == len(others)
    assert beside_alerts(replace(found, alerts=(old,)), rows) == rows, "an older alert is about another step"
