"""Alerts on the site: what waits for a decision comes first, with what was decided."""

from __future__ import annotations

from dataclasses import replace

import fake_records as fake
import pytest

from rnnbench.history import Acceptance, Alert, Detection, UpstreamReport
from rnnbench.results import read_run
from rnnbench.site.alerts import NAMED, alert_rows, still_open
from rnnbench.site.content import Content, read_content


@pytest.fixture(scope="module")
def content(tmp_path_factory) -> Content:
    """Of a run of 31 January."""
    return read_content([read_run(fake.write_run(tmp_path_factory.mktemp("run") / "run", [fake.record()]))], None)


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
