"""What a night leaves behind: which alerts hold a version back, what becomes the last good one, and what is told."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from decisions import accept, report
from fake_releases import NOT_INSTALLABLE
from quick_tests import for_proof

from rnnbench.history import Alert, Alerts, Detection, Measured
from rnnbench.night import ConformanceCases, MeasuredNight, builds, collect, collect_night, measure
from rnnbench.night.folders import DATA, PAGE
from rnnbench.night.state import Build, Good, Held, State, write_state
from rnnbench.pipeline import SideError

BOTH = {"1.0": "", "1.1": ""}
LATER = {**BOTH, "1.2": ""}
SLOW = {"1.0": 1.0, "1.1": 1.2, "1.2": 1.5}
AB = Measured(ratio=1.2, interval=(1.1, 1.3), versions=("rnnbench-fake 1.0", "rnnbench-fake 1.1"), on="2026-01-01")


def begin_slower(nights):
    """A night of 1.0, and one of 1.1, which is slower. Returns its alert."""
    nights.index({"1.0": ""})
    nights.night()
    nights.index(BOTH, SLOW)
    (alert,) = nights.night().confirmed
    return alert


def change_state(nights, **changes):
    write_state(nights.folders.state, nights.state.model_copy(update=changes))


def found(**changes):
    content = {
        "machine": "fakemachine",
        "backend": "fake",
        "what": "bound",
        "evidence": "published",
        "night": "2026-01-01T02:00:00",
        "run": "night",
        "versions": AB.versions,
        "ratio": 1.2,
        **changes,
    }
    return Detection(**content)


def put(nights, *alerts):
    Alerts.read(nights.folders.alerts).put(*alerts).write()


def test_a_version_that_nothing_holds_back_is_compared_and_judged_by_that(nights):
    nights.index({"1.0": ""})
    nights.night()
    change_state(nights, held={"fake": Held(version="1.1", alerts=())})
    nights.index(BOTH, SLOW)
    nights.night()
    assert nights.state.good["fake"].version == "1.0"


@pytest.mark.proof
def test_what_releases_one_version_releases_no_later_one(nights):
    alert = begin_slower(nights)
    put(nights, nights.alerts[alert.id].with_(state="mended", mended="2026-01-01", returned="by hand"))
    nights.index(LATER, SLOW)
    (later,) = nights.night().confirmed
    assert later.id != alert.id
    assert nights.state.good["fake"].version == "1.0"
    assert nights.state.held["fake"] == Held(version="1.2", alerts=(later.id,)), "the one that is over holds nothing"


@pytest.mark.proof
def test_a_later_version_that_is_slower_too_is_held_back_by_the_same_alert(nights):
    alert = begin_slower(nights)
    nights.index(LATER, SLOW)
    assert nights.night().still_open == (alert,)
    assert nights.state.held["fake"] == Held(version="1.2", alerts=(alert.id,))


@pytest.mark.proof
@pytest.mark.parametrize("latency", [*for_proof(1.0), 1.2], ids=["the slowdown has gone", "it is still there"])
def test_a_later_version_is_not_good_while_nobody_knows_whether_it_has_the_slowdown_of_the_one_before(nights, latency):
    alert = begin_slower(nights)
    latencies = {**SLOW, "1.2": latency}
    nights.index(LATER, latencies, scatter=0.3)
    for _ in range(2):
        summary = nights.night()
        assert nights.compared == ["1.2"], "each night compares it again"
        (line,) = summary.backends
        assert (line.verdicts, line.said) == (
            {"UNDECIDED": 2},
            "it is not good yet, and the next night compares it again",
        )
        assert (summary.still_open, nights.state.good["fake"].version) == ((alert,), "1.0")
    nights.index(LATER, latencies)
    summary = nights.night()
    has_gone = latency == 1.0
    assert [one.id for one in summary.closed] == [alert.id] * has_gone
    assert nights.state.good["fake"].version == ("1.2" if has_gone else "1.0")


@pytest.mark.proof
def test_an_open_alert_of_trials_that_are_compared_no_longer_holds_no_later_version_back(nights):
    alert = begin_slower(nights)
    put(nights, alert.with_(found=alert.found.model_copy(update={"members": ("a trial that the case had",)})))
    nights.index(LATER, {**SLOW, "1.2": 1.0})
    assert nights.night().closed == ()
    assert nights.state.good["fake"].version == "1.2"


def test_no_alert_that_a_comparison_did_not_confirm_holds_a_version_back(nights):
    others = (
        Alert(id="not-measured", state="new", found=found(what="public")),
        Alert(id="of-another-version", state="confirmed", ab=AB, found=found(versions=("rnnbench-fake 0.9", "x"))),
        Alert(id="of-another-backend", state="confirmed", ab=AB, found=found(backend="numpy")),
    )
    put(nights, *others)
    alert = begin_slower(nights)
    assert nights.state.held["fake"].alerts == (alert.id,)


@pytest.mark.first(1)
@pytest.mark.parametrize(("release", "state"), [("", "mended"), (NOT_INSTALLABLE, "new")])
def test_the_last_good_version_in_the_place_of_the_newest_mends_nothing(nights, monkeypatch, release, state):
    nights.index({"1.0": ""})
    nights.night()
    alert = Alert(id="fails", state="new", found=found(what="outcome", before="ok", after="crashed", evidence="event"))
    put(nights, alert)
    monkeypatch.setattr(collect, "update", lambda alerts, news: alerts.mend("fails", "2026-01-02"))
    nights.index({"1.0": "", "1.1": release})
    nights.night()
    assert nights.alerts["fails"].state == state


@pytest.mark.first(1)
@pytest.mark.parametrize("outcome", ["crashed", "nonconforming"])
def test_a_version_that_is_not_good_since_a_trial_failed_is_told_so(nights, monkeypatch, outcome):
    nights.index({"1.0": ""})
    nights.night()
    nights.index(BOTH)
    measured = MeasuredNight(nights.measure(), nights.store)
    of_night = MeasuredNight.run.fget(measured)
    failed = [one.model_copy(update={"outcome": outcome}) if one.backend == "fake" else one for one in of_night.records]
    monkeypatch.setattr(MeasuredNight, "run", property(lambda _: replace(of_night, records=tuple(failed))))
    (line,) = collect_night([measured], nights.folders).backends
    assert line.said == "2 trials failed or did not conform: it is not good yet, and the next night compares it again"


@pytest.mark.proof
def test_a_slowdown_that_stays_open_makes_no_alert_and_is_compared_again(nights, monkeypatch):
    nights.index({"1.0": ""})
    nights.night()
    nights.index(BOTH, SLOW)

    def refuse(*arguments):
        raise SideError("no room")

    monkeypatch.setattr(measure, "confirm_slowdowns", refuse)
    for _ in range(2):
        summary = nights.night()
        said = "fake, bound latency, 2 trials: undecided, the next night compares again"
        assert summary.not_confirmed == (said,)
        assert summary.problems == ("fake: not confirmed: no room",)
        assert nights.compared == ["1.1"]
        assert nights.alerts == {}
        assert nights.state.good["fake"].version == "1.0"


def test_the_day_since_which_a_version_is_the_last_good_one_stays(nights):
    nights.index({"1.0": ""})
    nights.night()
    good = Good(version="1.0", requirements="rnnbench-fake==1.0", since="2026-01-01")
    change_state(nights, good={"fake": good})
    nights.night()
    assert nights.state.good["fake"] == good


def test_a_backend_whose_package_nobody_knows_is_told(nights, monkeypatch):
    def refuse(backend):
        raise SideError("nobody knows its package")

    monkeypatch.setattr(builds, "released_package", refuse)
    nights.index({"1.0": ""})
    summary = nights.night()
    assert summary.problems == ("fake: not measured in its newest version: nobody knows its package",)
    assert [line.backend for line in summary.backends] == ["fake"]


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("state", "issue"),
    [
        ("new", "waits"),
        ("confirmed", "open"),
        ("reported", "open"),
        ("accepted", "closed"),
        ("mended", "closed"),
        ("refuted", "closed"),
    ],
)
def test_an_issue_is_open_while_an_alert_is_certain_waits_while_it_is_not_and_is_closed_when_it_is_over(
    nights, state, issue
):
    nights.index({"1.0": ""})
    one = Alert(id="one", state=state, found=found(), ab=None if state == "new" else AB, mended="2026-01-01")
    one = one if state == "mended" else one.with_(mended=None)
    alerts = Alerts.read(nights.folders.alerts).put(one)
    decide = {"reported": report, "accepted": accept}.get(state)
    (decide(alerts, "one") if decide else alerts).write()
    candidate = Alert(id="candidate", state="new", found=found(what="public", evidence="candidate"))
    put(nights, candidate)
    nights.night()
    content = json.loads((nights.folders.reports / DATA).read_text())
    assert [(each["id"], each["state"]) for each in content["issues"]] == [("one", issue)], "a candidate is not told"


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("alert", "told"),
    [
        (Alert(id="a step", state="new", found=found()), True),
        (Alert(id="a fact", state="new", found=found(what="believed", evidence="event", ratio=None)), True),
        (Alert(id="noise", state="new", found=found(evidence="candidate")), False),
        (Alert(id="known", state="confirmed", ab=AB, found=found()), False),
    ],
    ids=lambda value: value.id if isinstance(value, Alert) else "",
)
def test_what_only_the_history_shows_is_told_until_somebody_decides_and_is_not_among_the_open_ones(nights, alert, told):
    nights.index({"1.0": ""})
    put(nights, alert)
    summary = nights.night()
    assert [one.id for one in summary.seen] == [alert.id] * told
    page = (nights.folders.reports / PAGE).read_text()
    assert ("Nothing to tell" not in page and "## Seen in the history, and not confirmed" in page) == told
    assert json.loads((nights.folders.reports / DATA).read_text())["seen"] == [alert.id] * told
    assert [one.id for one in summary.still_open] == [alert.id] * (alert.state == "confirmed")


def measured_apart(nights):
    """A night of 1.1 whose check was made apart, and the run of the check of that name."""
    nights.conforming({})
    nights.index({"1.0": ""})
    nights.night()
    nights.index(BOTH)
    night = nights.measure()
    run = nights.store.read(night.backends["fake"].checked)
    without = night.model_copy(update={"backends": {"fake": night.backends["fake"].model_copy(update={"checked": ""})}})
    return MeasuredNight(without, nights.store), run


@pytest.mark.proof
def test_a_version_whose_check_was_lost_is_not_good_and_is_told(nights):
    measured, run = measured_apart(nights)
    state = nights.folders.state.read_bytes()
    summary = collect_night([measured], nights.folders, (), ["fake"])
    assert summary.problems == ("fake: its conformance was not checked: its check was lost",)
    assert nights.state.good["fake"].version == "1.0"
    nights.folders.state.write_bytes(state)
    assert collect_night([measured], nights.folders, [run]).problems == ()
    assert nights.state.good["fake"].version == "1.1"


@pytest.mark.proof
def test_a_version_that_came_after_the_check_was_planned_is_not_good(nights):
    """The check is of the version before it."""
    nights.conforming({})
    nights.index({"1.0": ""})
    check = nights.measure().backends["fake"].checked
    nights.night()
    nights.index(BOTH)
    nights.conformance = ConformanceCases()
    measured = MeasuredNight(nights.measure(), nights.store)
    found = collect_night([measured], nights.folders, [nights.store.read(check)])
    assert any("is of rnnbench-fake 1.0, which is not the newest" in text for text in found.problems)
    assert nights.state.good["fake"].version == "1.0"


@pytest.mark.parametrize(
    ("outcome", "as_expected", "passes_unexpectedly", "failed"),
    [
        ("ok", False, False, False),
        ("ok", False, True, True),
        ("unsupported", False, False, False),
        ("crashed", False, False, True),
        ("crashed", True, False, False),
    ],
)
def test_a_trial_has_failed_where_it_is_not_as_expected(outcome, as_expected, passes_unexpectedly, failed):
    record = {"outcome": outcome, "fails_as_expected": as_expected, "passes_unexpectedly": passes_unexpectedly}
    assert collect._has_failed(SimpleNamespace(**record)) == failed


@pytest.mark.parametrize(("good", "again"), [(None, False), ("1.0", False), ("1.1", True)])
def test_only_the_last_good_version_itself_is_good_again(good, again):
    known = Good(version=good, requirements="", since="2026-01-01") if good else None
    assert collect._is_good_again(Build(version="1.1", requirements=""), known) == again


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("1.1", "1.1", "no new version"),
        ("1.0", "1.1", "it is the last good version now"),
        (None, "1.1", "it is the last good version now"),
        ("1.0", "1.0", "it is not good, and later versions are compared with the one before"),
        (None, None, "it is not good, and there is no last good version yet"),
    ],
)
def test_what_became_of_a_version_is_told_by_the_last_good_ones_before_and_after(before, after, said):
    newest = Build(version="1.1", requirements="")
    night = SimpleNamespace(newest=newest, measured=newest)
    outcome = SimpleNamespace(night=night, check=None, backend="fake", counts={}, conforms=True, records=())
    good = {version: Good(version=version, requirements="", since="2026-01-01") for version in ("1.0", "1.1")}
    held = {"fake": Held(version="1.1", alerts=("one",))}
    states = [State(good={"fake": good[version]} if version else {}, held=held) for version in (before, after)]
    assert collect._line(outcome, *states).said == said
