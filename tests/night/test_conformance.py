"""New versions are checked once; what no longer conforms is an alert, holds the version back, and is on the site."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from decisions import accept
from harness_trials import make_trial

from rnnbench import site
from rnnbench.history import Alerts, CheckEntry, FailedTrial
from rnnbench.night import ConformanceCases, MeasuredNight, collect, collect_night
from rnnbench.night.conformance import check_version, is_of, note_failed
from rnnbench.night.folders import PAGE

VERSIONS = {"1.0": "", "1.1": ""}


def begun(nights, outcomes):
    """Two nights: of a good version, and of a newer one."""
    begin(nights, outcomes)
    return go_on(nights)


def begin(nights, outcomes):
    nights.conforming(outcomes)
    nights.index({"1.0": ""})
    nights.night()


def go_on(nights):
    nights.index(VERSIONS)
    return nights.night()


def test_each_new_version_is_checked_once_and_becomes_no_night(nights):
    found = begun(nights, {})
    assert nights.checked == ["1.0", "1.1"]
    assert found.is_quiet
    assert nights.state.good["fake"].version == "1.1"
    page = (nights.folders.reports / PAGE).read_text()
    nights.night()
    assert nights.checked == ["1.0", "1.1"], "nothing is new"
    assert [(one.versions, len(one.trials), one.failed) for one in nights.history.checks] == [
        ("rnnbench-fake 1.0", 2, ()),
        ("rnnbench-fake 1.1", 2, ()),
    ]
    assert len(nights.history.nights) == 3
    assert "conformance: 2 trials checked, none failed" in page


def test_a_version_that_no_longer_conforms_is_an_alert_and_is_not_good(nights):
    assert begun(nights, {"1.1": "nonconforming"}).is_wrong
    (alert,) = nights.alerts.values()
    assert alert.is_certain, "a fact needs no second measurement"
    assert (alert.found.before, alert.found.after, len(alert.found.members)) == ("ok", "nonconforming", 2)
    assert alert.found.versions == ("rnnbench-fake 1.0", "rnnbench-fake 1.1")
    assert nights.state.good["fake"].version == "1.0"
    assert nights.state.held["fake"].alerts == (alert.id,)
    page = (nights.folders.reports / PAGE).read_text()
    assert "conformance: 2 of 2 trials failed" in page
    issue = (nights.folders.reports / "issues" / f"{alert.id}.md").read_text()
    assert "rnnbench check 'cases/of models' --backend fake:honest" in issue
    assert "--in rnnbench-fake==1.1" in issue

    nights.night()
    assert nights.checked == ["1.0", "1.1"], "what is held back by an open alert is checked once"
    assert nights.alerts == {alert.id: alert}


@pytest.mark.proof
def test_the_site_shows_what_no_longer_conforms(nights, monkeypatch):
    begin(nights, {"1.1": "nonconforming"})
    monkeypatch.setattr(collect, "write_site", site.write_site)
    go_on(nights)
    shown = nights.folders.reports / "site"
    assert "the conformance check finds 2 of 2 trials checked failing: planted" in (shown / "index.html").read_text()
    assert "✗ 2 trials failed" in (shown / "conformance.html").read_text()
    assert next(iter(nights.alerts)) in (shown / "alerts.html").read_text()


def checked(*outcomes):
    """The check of trials that end with these outcomes."""
    failed = [
        FailedTrial(trial=f"case/{number}", outcome=outcome, failed_checks=(), reason="planted")
        for number, outcome in enumerate(outcomes)
        if outcome != "ok"
    ]
    return CheckEntry(
        run_id="0" * 16,
        run="checked",
        started="2026-01-10T02:00:00",
        machine="m",
        machine_cpu=None,
        backend="fake",
        versions="rnnbench-fake 1.1",
        cases=(),
        trials=tuple(f"case/{number}" for number in range(len(outcomes))),
        expected_failures=0,
        unexpected_passes=0,
        unsupported=0,
        failed=tuple(failed),
    )


def test_trials_that_fail_in_different_ways_are_different_alerts_also_if_their_ids_are_alike(tmp_path, monkeypatch):
    monkeypatch.setattr("rnnbench.history.alert.ID_DIGITS", 0)
    alerts = note_failed(Alerts.read(tmp_path / "alerts.yaml"), checked("crashed", "timed-out", "crashed"), None)
    assert [alert.found.members for alert in alerts.all] == [("case/0", "case/2"), ("case/1",)]


def test_trials_that_did_not_fail_alike_in_the_check_before_are_different_alerts(tmp_path):
    before, now = checked("ok", "nonconforming"), checked("crashed", "crashed", "crashed")
    alerts = note_failed(Alerts.read(tmp_path / "alerts.yaml"), now, before)
    assert [(alert.found.members, alert.found.before) for alert in alerts.all] == [
        (("case/0",), "ok"),
        (("case/1",), "nonconforming"),
        (("case/2",), "not checked"),
    ]


def test_a_version_that_conforms_again_mends_the_alert(nights):
    begun(nights, {"1.1": "nonconforming"})
    nights.index({**VERSIONS, "1.2": ""})
    (closed,) = nights.night().closed
    assert closed.returned == "rnnbench-fake 1.2: 2 of 2 trials were checked again, and conform"
    assert nights.state.good["fake"].version == "1.2"
    assert nights.state.held == {}


@pytest.mark.proof
def test_a_version_that_fails_in_the_same_way_is_the_same_alert(nights):
    begun(nights, {"1.1": "crashed", "1.2": "crashed"})
    (alert,) = nights.alerts.values()
    nights.index({**VERSIONS, "1.2": ""})
    nights.night()
    assert nights.alerts == {alert.id: alert}
    assert nights.state.held["fake"].version == "1.2"


@pytest.mark.proof
def test_a_version_that_is_withdrawn_closes_its_alert(nights):
    begun(nights, {"1.1": "nonconforming"})
    nights.index({"1.0": ""})
    (closed,) = nights.night().closed
    assert closed.returned == "1.0 is the newest again"


@pytest.mark.proof
def test_the_only_trial_of_a_check_is_not_the_whole_backend(nights):
    nights.conforming({"1.1": "nonconforming"})
    nights.conformance = ConformanceCases(nights.conformance.trials[:1], nights.conformance.expected)
    for versions in ({"1.0": ""}, VERSIONS):
        nights.index(versions)
        nights.night()
    (alert,) = nights.alerts.values()
    assert (len(alert.found.members), alert.found.whole_backend) == (1, False)


@pytest.mark.proof
def test_what_a_person_accepted_stays_accepted_where_its_version_is_withdrawn(nights):
    begun(nights, {"1.1": "nonconforming"})
    (alert,) = nights.alerts.values()
    accept(Alerts.read(nights.folders.alerts), alert.id).write()
    nights.index({"1.0": ""})
    assert nights.night().closed == ()
    assert nights.alerts[alert.id].state == "accepted"


@pytest.mark.proof
def test_a_failure_that_a_person_accepts_holds_no_version_back(nights):
    begun(nights, {"1.1": "nonconforming", "1.2": "nonconforming"})
    (alert,) = nights.alerts.values()
    accept(Alerts.read(nights.folders.alerts), alert.id).write()
    nights.night()
    assert nights.state.good["fake"].version == "1.1"
    nights.index({**VERSIONS, "1.2": ""})
    nights.night()
    assert nights.state.good["fake"].version == "1.2"
    assert list(nights.alerts) == [alert.id]


def test_a_check_that_cannot_be_made_is_told_and_the_version_is_not_good(nights):
    nights.conforming({})
    nights.index({"1.0": ""})
    nights.conformance = ConformanceCases((make_trial(time="fused"),), {})
    found = nights.night()
    assert "its conformance was not checked: none of its trials can be checked" in found.problems[0]
    assert nights.checked == []
    assert nights.state.good == {}


def test_a_check_that_was_made_apart_is_collected_with_the_night(nights):
    nights.conforming({"1.0": "nonconforming"})
    nights.index({"1.0": ""})
    night = nights.measure()
    run = nights.store.read(night.backends["fake"].checked)
    unchecked = night.model_copy(
        update={"backends": {"fake": night.backends["fake"].model_copy(update={"checked": ""})}}
    )
    found = collect_night([MeasuredNight(unchecked, nights.store)], nights.folders, [run])
    assert found.is_wrong
    assert len(nights.alerts) == 1


@pytest.mark.proof
def test_a_version_whose_check_lost_a_shard_is_not_good_and_is_checked_again(nights):
    nights.conforming({})
    nights.index({"1.0": ""})
    night = nights.measure()
    run = replace(nights.store.read(night.backends["fake"].checked), warnings=("shard 2/2 is missing",))
    apart = night.model_copy(update={"backends": {"fake": night.backends["fake"].model_copy(update={"checked": ""})}})
    found = collect_night([MeasuredNight(apart, nights.store)], nights.folders, [run])
    assert any("shard 2/2 is missing" in problem for problem in found.problems)
    assert nights.state.good == {}
    nights.night()
    assert nights.checked == ["1.0", "1.0"]
    assert nights.state.good["fake"].version == "1.0"


def test_a_trial_that_is_not_installed_where_a_version_is_checked_has_not_failed(nights):
    nights.conforming({})
    nights.index({"1.0": ""})
    night = nights.measure()
    run = nights.store.read(night.backends["fake"].checked)
    run = replace(run, records=tuple(one.model_copy(update={"outcome": "unavailable"}) for one in run.records))
    apart = night.model_copy(update={"backends": {"fake": night.backends["fake"].model_copy(update={"checked": ""})}})
    found = collect_night([MeasuredNight(apart, nights.store)], nights.folders, [run])
    assert (len(run.records) > 0, found.failed) == (True, ())


def test_a_check_of_another_version_decides_nothing_and_is_told(nights):
    nights.conforming({"1.0": "nonconforming"})
    nights.index({"1.0": ""})
    run = nights.store.read(nights.measure().backends["fake"].checked)
    nights.index(VERSIONS)
    nights.trials = nights.trials[:1]  # Another night.
    nights.conformance = ConformanceCases()
    found = collect_night([MeasuredNight(nights.measure(), nights.store)], nights.folders, [run])
    assert any("is of rnnbench-fake 1.0, which is not the newest of this night" in text for text in found.problems)
    assert nights.alerts == {}


@pytest.mark.proof
def test_what_fails_in_the_version_that_is_the_newest_again_too_stays_an_alert(nights):
    begun(nights, {"1.1": "nonconforming"})
    (alert,) = nights.alerts.values()
    nights.conforming({"1.0": "nonconforming"})
    nights.index({"1.0": ""})
    environment = (None, nights.folder / "environments")
    name = check_version(nights.conformance.trials, nights.conformance, environment, nights.store, None)
    measured = MeasuredNight(nights.measure(), nights.store)
    collect_night([measured], nights.folders, [nights.store.read(name)])
    assert nights.alerts == {alert.id: alert}


def test_a_check_is_of_the_newest_version_in_any_distribution_of_the_package():
    night = SimpleNamespace(package="onnxruntime", newest=SimpleNamespace(version="1.31.1"))
    checks = {
        text: is_of(SimpleNamespace(versions=text), night)
        for text in ("onnx 1.31.1, onnxruntime 1.30.0", "onnx 1.23.1, onnxruntime 1.31.1", "onnxruntime-gpu 1.31.1")
    }
    assert list(checks.values()) == [False, True, True]
