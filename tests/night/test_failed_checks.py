"""What a conformance check means for alerts: failures of one kind are one alert, until their trials conform again."""

from __future__ import annotations

from dataclasses import replace

import fake_records as fake
import pytest
from harness_trials import make_trial

from rnnbench.history import Alerts, CheckEntry, FailedTrial, History, check_changes
from rnnbench.history.checks import checks_of
from rnnbench.night import conformance
from rnnbench.night.conformance import (
    alerts_that_hold,
    check_before,
    check_version,
    is_of,
    mend_conforming,
    mend_withdrawn,
    note_failed,
    sentence_of,
)
from rnnbench.night.state import BackendNight, Build
from rnnbench.pipeline import SideError
from rnnbench.results import ExpectedFailureResult

DAY = "2026-01-10"
TRIALS = tuple(f"case/{name}" for name in "abcd")


def failed(trial, outcome="nonconforming", checks=("values",)):
    return FailedTrial(trial=trial, outcome=outcome, failed_checks=checks, reason="planted")


def check(*failures, version="1.1", trials=TRIALS, started=f"{DAY}T02:00:00", **changes):
    return CheckEntry(
        run_id=f"{started[8:10]}{version}",
        run=f"run-{started[8:10]}-{version}",
        started=started,
        machine="fakemachine",
        machine_cpu=None,
        backend="fakelib",
        versions=f"fakelib-package {version}",
        cases=("cases/conformance",),
        trials=trials,
        expected_failures=0,
        unexpected_passes=0,
        unsupported=0,
        failed=failures,
        **changes,
    )


EARLIER = check(version="1.0", started="2026-01-09T02:00:00")


def test_what_was_not_checked_again_is_not_mended():
    """A version that dropped a trial, or a check of other cases."""
    before = check(failed(TRIALS[0]), failed(TRIALS[1]), version="1.0", started="2026-01-09T02:00:00")
    (_, found) = check_changes([before, check(trials=TRIALS[1:])])
    assert found.mended == (before.failed[1],)


def test_a_check_is_compared_with_the_one_before_it():
    days = [failed(TRIALS[0])], [failed(TRIALS[0]), failed(TRIALS[1])], [], [failed(TRIALS[0])]
    checks = [check(*of, started=f"2026-01-0{day}T02:00:00") for day, of in enumerate(days, 1)]
    found = list(check_changes(checks))
    assert [[one.trial for one in each.worse] for each in found] == [[TRIALS[0]], [TRIALS[1]], [], [TRIALS[0]]]
    assert [len(each.mended) for each in found] == [0, 0, 2, 0]


def test_of_a_run_what_was_checked_and_what_failed_without_being_expected_is_kept():
    expected = ExpectedFailureResult(what="timed", verdict="failed", reason="known", upstream="")
    ok, known, wrong, died, refused, absent = records = [
        fake.record(chunk=1),
        fake.record(chunk=2, outcome="nonconforming", expected_failures=(expected,)),
        fake.record(chunk=4, outcome="nonconforming"),
        fake.record(chunk=8, outcome="crashed"),
        fake.record(chunk=16, outcome="unsupported"),
        fake.record(chunk=32, outcome="unavailable"),
    ]
    (entry,) = checks_of(fake.run(records))
    assert set(entry.trials) == {one.trial for one in (ok, known, wrong, died)}
    assert {one.trial: one.symptom for one in entry.failed} == {wrong.trial: "timed", died.trial: "crashed"}
    assert (entry.expected_failures, entry.unsupported, len(entry.unavailable)) == (1, 1, 1)
    assert {refused.trial, absent.trial}.isdisjoint(entry.trials)


def test_each_reason_why_a_target_was_not_checked_is_kept_once_in_order():
    routes = ("ops", "linalg", "onnx", "tir", "graph", "eager")
    records = [fake.record(route=route, chunk=chunk, outcome="unavailable") for route in routes for chunk in (1, 2)]
    (entry,) = checks_of(fake.run(records))
    assert entry.unavailable == tuple(f"fakelib:{route}: {fake.REASONS['unavailable']}" for route in sorted(routes))


@pytest.fixture
def alerts(tmp_path):
    return Alerts.read(tmp_path / "alerts.yaml")


def groups(alerts):
    return sorted((alert.found.before, alert.found.after, alert.found.members) for alert in alerts.all)


def test_trials_that_fail_in_one_way_are_one_alert(alerts):
    after = note_failed(alerts, check(*map(failed, TRIALS[:2])), EARLIER)
    assert groups(after) == [("ok", "nonconforming", TRIALS[:2])]
    (alert,) = after.all
    assert alert.found.versions == ("fakelib-package 1.0", "fakelib-package 1.1")
    assert not alert.found.whole_backend, "two of its four trials"
    (whole,) = note_failed(alerts, check(*map(failed, TRIALS)), EARLIER).all
    assert whole.found.whole_backend


def test_other_checks_and_other_outcomes_are_other_alerts(alerts):
    failures = failed(TRIALS[0]), failed(TRIALS[1], checks=("reset",)), failed(TRIALS[2], "crashed", ())
    assert groups(note_failed(alerts, check(*failures), EARLIER)) == [
        ("ok", "crashed", (TRIALS[2],)),
        ("ok", "nonconforming", (TRIALS[0],)),
        ("ok", "nonconforming", (TRIALS[1],)),
    ]


def test_what_failed_or_was_not_checked_before_is_another_alert_than_what_was_ok(alerts):
    before = check(failed(TRIALS[1], "crashed", ()), version="1.0", trials=TRIALS[:3])
    failures = [failed(trial) for trial in TRIALS[:2]] + [failed(TRIALS[3])]
    assert groups(note_failed(alerts, check(*failures), before)) == [
        ("crashed", "nonconforming", (TRIALS[1],)),
        ("not checked", "nonconforming", (TRIALS[3],)),
        ("ok", "nonconforming", (TRIALS[0],)),
    ]


def test_an_alert_is_mended_once_every_trial_of_it_that_is_checked_conforms(alerts):
    known = note_failed(alerts, check(*map(failed, TRIALS[:2])), EARLIER)
    still = check(failed(TRIALS[1]), version="1.2")
    elsewhere = check(version="1.2", trials=TRIALS[2:])
    for other in (still, elsewhere):
        assert mend_conforming(known, other, DAY).all == known.all
    (mended,) = mend_conforming(known, check(version="1.2", trials=TRIALS[1:]), DAY).all
    assert mended.state == "mended"
    assert mended.returned == "fakelib-package 1.2: 1 of 2 trials were checked again, and conform"


def test_a_check_that_had_no_time_mends_nothing(alerts):
    """The trial is ok: but the check that found the fault did not come to an answer."""
    first = check(failed(TRIALS[0], checks=("memory",)))
    known = note_failed(alerts, first, EARLIER)
    late = check(version="1.2", started="2026-01-11T02:00:00", too_short={TRIALS[0]: ("drift", "memory")})
    other = check(version="1.2", started="2026-01-11T02:00:00", too_short={TRIALS[0]: ("drift",)})
    assert mend_conforming(known, late, DAY, (first, late)).all == known.all
    (mended,) = mend_conforming(known, other, DAY, (first, other)).all
    assert mended.state == "mended"
    assert [each.check for each in check_changes([first, late])] == [first]
    last = check(version="1.3", started="2026-01-12T02:00:00")
    (_, found) = check_changes([first, late, last])
    assert (found.check, found.mended) == (last, first.failed)
    failing = check(first.failed[0], version="1.3", started="2026-01-12T02:00:00")
    assert [each.check for each in check_changes([first, late, failing])] == [first]


def test_what_was_mended_and_fails_again_is_a_new_alert(alerts):
    known = note_failed(alerts, check(failed(TRIALS[0])), EARLIER)
    mended = mend_conforming(known, check(version="1.2"), DAY)
    again = note_failed(mended, check(failed(TRIALS[0]), version="1.3", started="2026-01-12T02:00:00"), EARLIER)
    assert [alert.state for alert in again.all] == ["mended", "new"]


def test_only_alerts_of_versions_that_are_gone_are_mended_by_a_withdrawal(alerts):
    known = note_failed(alerts, check(failed(TRIALS[0])), EARLIER)
    good = Build(version="1.0", requirements="fakelib-package==1.0")
    assert mend_withdrawn(known, "fakelib", good, "fakelib-package 1.1", DAY).all == known.all
    assert mend_withdrawn(known, "fakemlir", good, "fakelib-package 1.0", DAY).all == known.all
    (mended,) = mend_withdrawn(known, "fakelib", good, "fakelib-package 1.0", DAY).all
    assert mended.returned == "1.0 is the newest again"


def test_a_failure_holds_its_version_back_and_one_that_is_over_does_not(alerts):
    known = note_failed(alerts, check(failed(TRIALS[0])), EARLIER)
    assert alerts_that_hold(known, check(failed(TRIALS[0]), version="1.2")) == list(known.all)
    assert alerts_that_hold(known, check(failed(TRIALS[1]), version="1.2")) == []


def test_the_check_before_is_the_newest_earlier_one_of_another_version(tmp_path):
    now = check(version="1.2", started="2026-01-12T02:00:00")
    again = check(version="1.2", started="2026-01-11T02:00:00")
    later = check(version="1.3", started="2026-01-13T02:00:00")
    older = check(version="0.9", started="2026-01-01T02:00:00")
    of_another = EARLIER.model_copy(update={"backend": "fakemlir", "started": "2026-01-11T03:00:00"})
    history = History(tmp_path / "history")
    for entry in (older, EARLIER, again, now, later, of_another):
        history._write("checks", entry)
    assert check_before(History(tmp_path / "history"), now) == EARLIER
    assert check_before(History(tmp_path / "history"), older) is None


@pytest.mark.parametrize(("version", "is_its"), [("1.1", True), ("1.10", False), ("1.1.1", False), ("1", False)])
def test_a_check_is_of_a_version_and_not_of_one_that_begins_alike(version, is_its):
    night = BackendNight(package="fakelib-package", newest=Build(version="1.1", requirements=""))
    one = check().model_copy(update={"versions": f"fakelib-package {version}, numpy 2.0"})
    assert is_of(one, night) == is_its
    assert not is_of(None, night)
    assert not is_of(one, BackendNight(package="fakelib-package"))


def test_a_check_is_told_with_its_counts():
    one = check(failed(TRIALS[0])).model_copy(update={"expected_failures": 1, "unavailable": ("a: no a", "b: no b")})
    assert sentence_of(one) == "1 of 4 trials failed, 1 expected failure; not installed there: a: no a; b: no b"
    assert sentence_of(check()) == "4 trials checked, none failed"
    assert sentence_of(check(too_short={TRIALS[0]: ("drift",)})) == "4 trials checked, none failed, 1 not fully checked"


def test_a_version_is_checked_where_a_part_of_its_trials_can_be(nights):
    nights.conforming({})
    nights.index({"1.0": ""})
    folder = nights.folder / "environments"
    of_both = [make_trial(), replace(make_trial(time="fused"), case="fused")]
    for trials, runs in ((of_both, True), (of_both[1:], False)):
        arguments = trials, conformance.ConformanceCases(expected={}), (None, folder), nights.store, None
        if runs:
            assert check_version(*arguments)
        else:
            with pytest.raises(SideError, match="none of its trials can be checked"):
                check_version(*arguments)
    assert nights.checked == ["1.0"]


def test_a_backend_is_checked_on_its_own_trials():
    cases = conformance.ConformanceCases((make_trial(), make_trial("numpy:eager")))
    assert [trial.target.backend for trial in cases.of("numpy")] == ["numpy"]
    assert cases.of("fakelib") == []
