"""Alerts in words: what became worse comes first, the machine is no alert, a backend speaks for its trials."""

from __future__ import annotations

from dataclasses import replace

import fake_records as fake
import pytest

from rnnbench.history import Acceptance, Alert, Change, Event, Found, UpstreamReport
from rnnbench.results import read_run
from rnnbench.site.alerts import alerts_of, decisions, last_week, mended, still_open
from rnnbench.site.content import Content, read_content

CHANGE = Change(
    machine="fake",
    level="trial",
    subject="t1",
    backend="fakelib",
    measure="bound",
    run="night",
    night="2026-01-30T02:00:00",
    last_run="before",
    versions=("1", "2"),
    ratio=1.1,
    interval=(1.05, 1.15),
    cause="program",
    reason="",
)
EVENT = Event("fake", "fakelib", "t2", "outcome", "night", "2026-01-29T02:00:00", "nonconforming", "ok", ("1", "2"))


@pytest.fixture(scope="module")
def content(tmp_path_factory) -> Content:
    """Of a run of 31 January."""
    return read_content([read_run(fake.write_run(tmp_path_factory.mktemp("run") / "run", [fake.record()]))], None)


def test_a_change_is_a_sentence_with_its_interval_and_versions(content):
    (alert,) = alerts_of(replace(content, changes=(CHANGE,)))
    assert alert.sentence == "bound latency +10.0 % (95 % interval +5.0 % to +15.0 %)"
    assert alert.detail == "1 → 2"
    assert alert.sign == "▲"


def test_what_became_worse_comes_first(content):
    better = replace(CHANGE, subject="t3", ratio=0.9, night="2026-01-31T02:00:00")
    found = replace(content, changes=(better, CHANGE), events=(EVENT,))
    assert [alert.subject for alert in last_week(found, alerts_of(found))] == ["t1", "t3", "t2"]


def test_only_the_last_week_moved(content):
    found = replace(content, changes=(CHANGE, replace(CHANGE, night="2026-01-23T02:00:00")))
    assert len(alerts_of(found)) == 2
    assert [alert.night for alert in last_week(found, alerts_of(found))] == [CHANGE.night]


def test_the_machine_is_listed_and_is_no_alert(content):
    machine = replace(CHANGE, level="machine", subject="fake", backend="", cause="environment", reason="anchors moved")
    trial = replace(CHANGE, cause="environment", reason="the machine moved")
    found = replace(content, changes=(machine, trial))
    (alert,) = alerts_of(found)
    assert (alert.subject, alert.sign) == ("the machine", "○")
    assert "environment: anchors moved" in alert.detail
    assert last_week(found, [alert]) == []


def test_a_backend_speaks_for_its_trials(content):
    backend = replace(CHANGE, level="backend", subject="fakelib", together=("t1", "t4"))
    found = replace(content, changes=(backend, CHANGE, replace(CHANGE, measure="bytes")))
    assert [(a.subject, a.sentence[:5]) for a in alerts_of(found)] == [("t1", "artif"), ("fakelib", "bound")]


def test_many_trials_are_counted(content):
    backend = replace(CHANGE, level="backend", subject="fakelib", together=tuple(map(str, range(9))))
    (alert,) = alerts_of(replace(content, changes=(backend,)))
    assert (len(alert.together), alert.more) == (5, 4)


def test_what_is_right_again_is_mended(content):
    worse = replace(EVENT, before="ok", after="nonconforming")
    found = replace(content, changes=(replace(CHANGE, ratio=0.9),), events=(EVENT, worse))
    assert [alert.sentence for alert in mended(alerts_of(found))] == ["conforms again"]


FOUND = Found(
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
    shown = decisions(replace(content, alerts=alerts))
    assert [each.id for each in shown] == ["n", "r", "a"]
    assert shown[0].sentence == "bound latency +10.0 % (95 % interval +5.0 % to +15.0 %)"
    assert (shown[1].decided, shown[1].issue) == ("reported on 2026-02-01", issue)
    assert shown[2].decided == "accepted until 2026-03-01 by Kim: known"


def test_a_fact_and_a_silence_are_said_in_words(content):
    fact = FOUND.model_copy(update={"what": "outcome", "before": "ok", "after": "crashed", "ratio": None})
    silence = FOUND.model_copy(update={"what": "silence", "backend": "", "members": ("case",), "evidence": "event"})
    alerts = (Alert(id="f", state="new", found=fact), Alert(id="s", state="new", found=silence))
    sentences = {each.id: each.sentence for each in decisions(replace(content, alerts=alerts))}
    assert sentences == {"f": "ends as crashed (it was ok)", "s": "no run since then"}


def test_an_older_alert_is_shown_until_somebody_has_decided(content):
    old = FOUND.model_copy(update={"night": "2026-01-20T02:00:00"})
    accepted = Acceptance(why="known", by="Kim", until="2026-03-01")
    alerts = (
        Alert(id="now", state="new", found=FOUND),
        Alert(id="old", state="confirmed", found=old),
        Alert(id="decided", state="accepted", accepted=accepted, found=old),
    )
    assert [each.id for each in still_open(replace(content, alerts=alerts))] == ["old"]
    assert still_open(replace(content, alerts=alerts, nights=())) == []
