"""What verdicts mean for alerts and for the last good version, of one backend at a time and without a measurement."""

from __future__ import annotations

from types import SimpleNamespace

import fake_records as fake
import pytest

from rnnbench.history import Alert, Alerts, ComparisonEntry, Detection, LatencyVerdict, Measured
from rnnbench.night.slowdowns import slowdowns_of
from rnnbench.night.state import BackendNight, Build, Compared, Slowdown
from rnnbench.night.verdicts import BackendOutcome, is_good, mend_returned, note_slowdown
from rnnbench.results import ExpectedFailureResult

DAY = "2026-01-10"
BEFORE, AFTER, NEWEST = "fakelib-package 1.0", "fakelib-package 1.1", "fakelib-package 1.2"
TRIALS = ("case/a", "case/b")


def build(version="1.2"):
    return Build(version=version, requirements=f"fakelib-package=={version}")


def found(**changes):
    content = {
        "machine": "fakemachine",
        "backend": "fakelib",
        "what": "bound",
        "evidence": "compared",
        "night": "2026-01-09T02:00:00",
        "run": "night008",
        "versions": (BEFORE, AFTER),
        "ratio": 1.5,
        "members": TRIALS,
        **changes,
    }
    return Detection(**content)


def measured(ratio=1.5):
    return Measured(ratio=ratio, interval=(0.99 * ratio, 1.01 * ratio), versions=(BEFORE, AFTER), on=DAY)


def alert(state="confirmed", identity="one", **changes):
    return Alert(id=identity, state=state, ab=None if state == "new" else measured(), found=found(**changes))


@pytest.fixture
def alerts(tmp_path):
    """The alerts of a file that has these."""

    def of(*content):
        return Alerts.read(tmp_path / "alerts.yaml").put(*content)

    return of


def verdict(name, ratio=1.0, width=0.01, trial=TRIALS[0], path="bound"):
    return LatencyVerdict(
        trial=trial, path=path, ratio=ratio, low=ratio - width, high=ratio + width, verdict=name, pairs=9
    )


def outcome(*verdicts, before=BEFORE, newest="1.2", measured_version="1.2", records=None, **changes):
    """A backend whose newest version was compared with `before`."""
    compared = Compared(good=build("1.0"), runs=("a", "b"), versions=(before, NEWEST), worse=False)
    night = BackendNight(
        package="fakelib-package",
        newest=build(newest),
        measured=build(measured_version),
        compared=compared.model_copy(update=changes),
    )
    comparison = ComparisonEntry(
        run_id="0" * 16,
        run="b",
        started="2026-01-10T02:00:00",
        machine="fakemachine",
        machine_cpu=None,
        a="x",
        b="y",
        same=False,
        verdicts=verdicts,
    )
    kept = [fake.record(version={"fakelib-package": measured_version})] if records is None else records
    return BackendOutcome("fakelib", night, kept, comparison)


SAME = [verdict("SAME", trial=trial) for trial in TRIALS]


def is_mended(alerts, one, of):
    return mend_returned(alerts(one), of, DAY).find(one.id).state == "mended"


def test_an_alert_is_mended_where_most_of_its_trials_are_as_fast_as_before(alerts):
    assert is_mended(alerts, alert(), outcome(*SAME))
    assert is_mended(alerts, alert(), outcome(verdict("FASTER", 0.9), SAME[1]))


@pytest.mark.parametrize(
    "verdicts",
    [
        (SAME[0], verdict("SLOWER", 1.5, trial=TRIALS[1])),
        (SAME[0], verdict("UNDECIDED", 1.4, 0.3, TRIALS[1])),
        (*SAME, verdict("SLOWER", 1.05, trial=TRIALS[0])),
        [one.model_copy(update={"path": "public"}) for one in SAME],
        [one.model_copy(update={"trial": "case/other"}) for one in SAME],
        (),
    ],
    ids=["one is slower", "one of two is open", "slower and as before", "another latency", "other trials", "none"],
)
def test_an_alert_stays_where_less_has_returned(alerts, verdicts):
    assert not is_mended(alerts, alert(), outcome(*verdicts))


@pytest.mark.parametrize(
    ("ratio", "width", "returned"),
    [(1.05, 0.10, True), (1.15, 0.02, False), (1.05, 0.20, False), (1.15, 0.20, False)],
    ids=["a tenth is left", "a third is left", "up to half may be left", "both"],
)
def test_an_open_verdict_shows_that_a_large_change_has_gone(alerts, ratio, width, returned):
    """A change of 50 %: less than a quarter of it may be left, and the interval excludes half of it."""
    verdicts = [verdict("UNDECIDED", ratio, width, trial) for trial in TRIALS]
    assert is_mended(alerts, alert(), outcome(*verdicts)) == returned


@pytest.mark.parametrize("ratio", [None, 1.0])
def test_of_an_alert_whose_ratio_a_person_has_taken_out_a_clear_verdict_decides(alerts, ratio):
    assert is_mended(alerts, alert(ratio=ratio), outcome(*SAME))
    undecided = [verdict("UNDECIDED", 1.0, 0.01, trial) for trial in TRIALS]
    assert not is_mended(alerts, alert(ratio=ratio), outcome(*undecided))


def test_a_trial_without_an_interval_has_not_returned(alerts):
    verdicts = [one.model_copy(update={"low": None, "high": None}) for one in SAME]
    assert not is_mended(alerts, alert(), outcome(*verdicts))


@pytest.mark.parametrize(
    "one",
    [
        alert(evidence="published"),
        alert(backend="fakemlir"),
        alert(versions=("fakelib-package 0.9", AFTER)),
        alert(state="new"),
        alert(state="refuted"),
    ],
    ids=["of a series", "of another backend", "of another version", "not measured", "refuted"],
)
def test_other_alerts_are_not_mended_by_a_comparison(alerts, one):
    assert not is_mended(alerts, one, outcome(*SAME))


def test_what_was_measured_in_the_place_of_the_newest_version_mends_nothing(alerts):
    assert not is_mended(alerts, alert(), outcome(*SAME, measured_version="1.0"))
    assert is_mended(alerts, alert(), outcome(newest="1.0", measured_version="1.0")), "1.0 is the newest again"


def slower(answer, ratio=1.5, **changes):
    return Slowdown(found=found(ratio=ratio, **changes), answer=answer, measured=measured(ratio))


@pytest.mark.parametrize(("answer", "state"), [("confirmed", "confirmed"), ("refuted", "refuted")])
def test_a_new_alert_of_the_same_change_takes_its_answer(alerts, answer, state):
    after = note_slowdown(alerts(alert("new", evidence="published")), slower(answer), "two")
    assert [(one.id, one.state) for one in after.all] == [("one", state)]


@pytest.mark.parametrize("answer", ["undecided", "refuted"])
def test_what_was_not_confirmed_makes_no_alert(alerts, answer):
    assert note_slowdown(alerts(), slower(answer), "two").all == ()


def test_a_change_without_a_second_measurement_makes_no_alert(alerts):
    assert note_slowdown(alerts(), Slowdown(found=found(), answer="confirmed"), "two").all == ()


@pytest.mark.parametrize("answer", ["confirmed", "refuted", "undecided"])
def test_a_later_version_leaves_an_alert_that_was_confirmed_before_it_as_it_is(alerts, answer):
    before = alerts(alert())
    assert note_slowdown(before, slower(answer, 1.2, versions=(BEFORE, NEWEST)), "two").all == before.all


@pytest.mark.parametrize(
    "other",
    [
        alert(what="public"),
        alert(backend="fakemlir"),
        alert(versions=("fakelib-package 0.9", AFTER)),
        alert("refuted"),
    ],
    ids=["another latency", "another backend", "another version before", "no longer open"],
)
def test_another_change_is_another_alert(alerts, other):
    after = note_slowdown(alerts(other), slower("confirmed"), "two")
    assert [(one.id, one.state) for one in after.all] == [("one", other.state), ("two", "confirmed")]


def test_a_night_that_is_collected_again_makes_its_alert_once(alerts):
    once = note_slowdown(alerts(), slower("confirmed"), "two")
    mended = once.mend("two", DAY, "gone")
    assert note_slowdown(mended, slower("confirmed"), "two").all == mended.all


EXPECTED = ExpectedFailureResult(what="crashed", verdict="failed", reason="known", upstream="https://fake.example/1")


@pytest.mark.parametrize(
    ("records", "conforms"),
    [
        ([fake.record()], True),
        ([fake.record(), fake.record(outcome="unsupported")], True),
        ([fake.record(), fake.record(outcome="crashed")], False),
        ([fake.record(), fake.record(outcome="unavailable")], False),
        ([fake.record(outcome="crashed", expected_failures=(EXPECTED,))], True),
        ([], False),
    ],
    ids=["ok", "unsupported", "crashed", "unavailable", "expected", "nothing was measured"],
)
def test_a_version_conforms_where_nothing_fails_that_was_not_expected_to(records, conforms):
    assert outcome(records=records).conforms == conforms
    assert is_good(outcome(records=records), None, is_released=False, is_held=False) == conforms


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({}, True),
        ({"worse": True}, False),
        ({"slower": (slower("confirmed"),)}, False),
        ({"slower": (slower("undecided"),)}, False),
        ({"slower": (slower("refuted"),)}, True),
        ({"slower": (slower("refuted"), slower("undecided"))}, False),
    ],
    ids=["nothing", "worse", "confirmed", "undecided", "refuted", "refuted and undecided"],
)
def test_a_version_is_good_where_no_slowdown_is_open_and_nothing_became_worse(changes, good):
    of = outcome(*SAME, **changes)
    assert is_good(of, build("1.0"), is_released=False, is_held=False) == good
    assert is_good(of, build("1.0"), is_released=True, is_held=False), "alerts held it back, and none is open any more"
    assert not is_good(of, build("1.0"), is_released=True, is_held=True), "failures hold it back"
    assert is_good(of, build("1.2"), is_released=False, is_held=False), "it is the last good version already"


def test_a_version_that_was_not_measured_checked_or_compared_is_not_good():
    def good(**changes):
        of = outcome(*SAME)
        night = of.night.model_copy(update=changes)
        return is_good(
            BackendOutcome("fakelib", night, of.records, of.comparison), build("1.0"), is_released=False, is_held=False
        )

    assert good()
    assert not good(newest=None)
    assert not good(measured=build("1.0"))
    assert not good(not_checked="no environment")
    assert not good(compared=None)


@pytest.mark.parametrize(
    ("verdicts", "whole_backend"),
    [
        ({"a": "SLOWER", "b": "SLOWER"}, True),
        ({"a": "SLOWER", "b": "SLOWER", "c": "SAME"}, False),
        ({"a": "SLOWER"}, False),
    ],
)
def test_a_backend_is_slower_as_a_whole_where_each_of_several_trials_is(monkeypatch, verdicts, whole_backend):
    monkeypatch.setattr("rnnbench.night.slowdowns.versions_of", lambda both: (BEFORE, AFTER))
    latencies = [SimpleNamespace(path="bound", verdict=v, ratio=1.1, trial=f"case/{t}") for t, v in verdicts.items()]
    trial = SimpleNamespace(trial=SimpleNamespace(target=SimpleNamespace(backend="fakelib")))
    both = SimpleNamespace(sides=(None, SimpleNamespace(facts=SimpleNamespace(trials=[trial]))))
    night = fake.run()
    (one,) = slowdowns_of(SimpleNamespace(latencies=latencies), both, night)
    assert one.found.whole_backend == whole_backend
    assert (one.found.run, one.found.night) == (night.info.run, "2026-01-31T12:00:00")
    assert one.found.members == tuple(f"case/{t}" for t, verdict in verdicts.items() if verdict == "SLOWER")
    for latency, ratio in zip(latencies, (1.9, 1.1, 1.2), strict=False):
        latency.ratio = ratio
    slower = sorted(latency.ratio for latency in latencies if latency.verdict == "SLOWER")
    (one,) = slowdowns_of(SimpleNamespace(latencies=latencies), both, night)
    assert one.found.ratio == slower[(len(slower) - 1) // 2], "the median, and of two the smaller one"
