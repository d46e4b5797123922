"""Which facts are bad news, when a level has returned, and which series of nights a case should have had."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from types import SimpleNamespace

import numpy as np
import pytest

from rnnbench.history.alert import Alert, Detection, Measured, new_id
from rnnbench.history.alert_update import News
from rnnbench.history.causes import NEAR
from rnnbench.history.events import Event
from rnnbench.history.fact_alerts import GONE, LATE, LEAST_NIGHTS_OF_CASE, Facts, Silences, is_worse
from rnnbench.history.level_alerts import LEAST_REST, RETURNED_RUNS, level_has_returned
from rnnbench.history.machine_alarms import false_alarms
from rnnbench.history.release_words import release_change_lines
from rnnbench.history.releases import ReleasePoint, ReleaseSeries


@pytest.mark.parametrize(
    ("fact", "before", "after", "worse"),
    [
        ("outcome", "ok", "crashed", True),
        ("outcome", "crashed", "ok", False),
        ("outcome", "crashed", "nonconforming", False),
        ("failed_checks", "values", "values, reset", True),
        ("failed_checks", "values, reset", "values", False),
        ("failed_checks", "values", "reset", True),
        ("failed_checks", "", "values", True),
        ("failed_checks", "values", "", False),
        ("support", "native", "emulated", True),
        ("support", "emulated", "native", False),
        ("lowered", "looped 1", "unrolled 16", True),
        ("lowered", "unrolled 16", "looped 1", False),
        ("lowered", "fused", "looped 1", True),
        ("lowered", "looped 1", "fused", False),
        ("lowered", "unrolled 16", "unrolled 8", False),
        ("believed", "true", "false", True),
        ("believed", "false", "true", False),
        ("measured", "", "", True),
        ("versions", "1.0", "2.0", False),
    ],
)
def test_a_fact_is_bad_news_where_it_became_worse(fact: str, before: str, after: str, worse: bool) -> None:
    assert is_worse(fact, before, after) == worse


def series(*after: float, before: int = 30) -> np.ndarray:
    """Runs at level 0, and then these."""
    return np.array([0.0] * before + list(after))


RUNS = RETURNED_RUNS + 3


@pytest.mark.parametrize(
    ("change", "left", "returned"),
    [
        (0.20, 0.04, True),
        (0.20, 0.06, False),
        (0.20, -0.04, True),
        (-0.20, -0.04, True),
        (-0.20, -0.06, False),
        (-0.20, 0.04, True),
        (0.03, 0.009, True),
        (0.03, 0.011, False),
        (0.016, 0.009, False),
    ],
    ids=[
        *("a fifth is left", "a third is left", "faster than before"),
        *("a gain with a fifth left", "a gain with a third left", "a gain that is lost and more"),
        *("less than 1 %", "more than 1 %", "less than 1 %, and more than half"),
    ],
)
def test_a_level_has_returned_where_little_of_its_change_is_left(change: float, left: float, returned: bool) -> None:
    assert LEAST_REST == 0.01
    assert level_has_returned(series(*[change] * 9, *[left] * RUNS), 30, float(np.exp(change))) == returned


@pytest.mark.parametrize(("runs", "returned"), [(RUNS - 1, False), (RUNS, True)])
def test_a_level_has_returned_only_after_a_week_and_what_may_be_dated_wrongly(runs: int, returned: bool) -> None:
    assert level_has_returned(series(*[0.0] * runs), 30, 1.2) == returned


def test_the_newest_runs_and_the_last_ones_before_the_change_count() -> None:
    """Years ago it was as slow as now. And the first runs after the change are over."""
    values = np.array([0.2] * 100 + [0.0] * 28 + [0.2] * 40)
    assert not level_has_returned(values, 128, float(np.exp(0.2)))
    assert level_has_returned(np.array([0.0] * 30 + [0.2] * 40 + [0.0] * RETURNED_RUNS), 30, float(np.exp(0.2)))
    assert not level_has_returned(np.array([np.nan] * 30 + [0.0] * 40), 30, 1.2), "nothing is known of before"


def nights(*days: int, case: str = "case") -> list[SimpleNamespace]:
    """Runs at two in the morning of these days of January."""
    return [SimpleNamespace(started=f"2026-01-{day:02d}T02:00:00", run=f"{case}-{day}") for day in days]


def silences(now: str, **cases: list[SimpleNamespace]) -> Silences:
    return Silences({("machine", case): runs for case, runs in cases.items()}, datetime.fromisoformat(now))


@pytest.mark.parametrize(
    ("now", "is_silent"),
    [("2026-01-06T13:00:00", False), ("2026-01-06T15:00:00", True), ("2026-01-14T01:00:00", True)],
    ids=["a night and a half is not over", "it is", "for some days"],
)
def test_a_case_is_silent_after_one_and_a_half_of_its_nights(now: str, is_silent: bool) -> None:
    assert LATE == 1.5
    found = list(silences(now, case=nights(1, 2, 3, 4, 5)).worse(90))
    assert [one.members for one in found] == [("case",)] * is_silent


def test_a_case_that_has_been_silent_for_all_the_nights_that_are_looked_at_is_old_news() -> None:
    assert list(silences("2026-01-14T01:00:00", case=nights(1, 2, 3, 4, 5)).worse(8)) == []


def test_how_often_a_case_runs_is_known_from_its_fifth_night_on() -> None:
    assert LEAST_NIGHTS_OF_CASE == 5
    assert list(silences("2026-01-09T02:00:00", case=nights(1, 2, 3, 4)).worse(90)) == []
    assert len(list(silences("2026-01-09T02:00:00", case=nights(1, 2, 3, 4, 5)).worse(90))) == 1


def test_a_night_that_was_left_out_once_does_not_make_the_next_ones_rarer() -> None:
    found = silences("2026-01-13T02:00:00", case=nights(1, 2, 3, 4, 9, 10, 11)).worse(90)
    assert [one.run for one in found] == ["case-11"]


@pytest.mark.parametrize(
    ("first", "detail"), [(6, "machine new has run case since 2026-01-06"), (4, "")], ids=["since then", "before, too"]
)
def test_a_machine_that_was_exchanged_is_told_with_the_one_that_runs_since(first: int, detail: str) -> None:
    both = {("machine", "case"): nights(1, 2, 3, 4, 5), ("new", "case"): nights(first, 7, 8, 9)}
    (found,) = Silences(both, datetime.fromisoformat("2026-01-09T12:00:00")).worse(90)
    assert (found.machine, found.detail) == ("machine", detail)


def test_some_cases_of_a_machine_are_one_alert_and_not_the_whole_machine() -> None:
    daily, other = nights(1, 2, 3, 4, 5), nights(1, 2, 3, 4, 5, 6, 7, 8, 9, case="other")
    (found,) = silences("2026-01-09T12:00:00", one=daily, two=daily, other=other).worse(90)
    assert (found.members, found.whole_backend) == (("one", "two"), False)
    (whole,) = silences("2026-01-09T12:00:00", one=daily, two=daily).worse(90)
    assert whole.whole_backend
    both = silences("2026-01-09T12:00:00", one=daily)
    elsewhere = replace(both, nights={**both.nights, ("elsewhere", "other"): other})
    assert [found.whole_backend for found in elsewhere.worse(90)] == [True], "another machine is none of its cases"


def test_a_case_that_its_machine_has_run_without_since_is_told_and_so_is_its_new_name() -> None:
    old, new, other = nights(1, 2, 3, 4, 5), nights(6, 7, case="new"), nights(6, 7, case="other")
    trials = {"old": frozenset({"a", "b"}), "new": frozenset({"a", "b"}), "other": frozenset({"a"})}

    def told(**cases: list[SimpleNamespace]) -> list[tuple[tuple[str, ...], str]]:
        shown = silences("2026-01-09T12:00:00", **cases)
        found = replace(shown, trials_of=lambda run, case: trials[case]).worse(90)
        return [(one.members, one.detail) for one in found]

    assert told(old=old) == [(("old",), "")]
    without = "the machine has run other cases since, so old may be in its night no longer"
    assert told(old=old, other=other) == [(("old",), without)]
    assert told(old=old, other=other, new=new) == [(("old",), "old was renamed: new has the same trials since")]
    assert told(old=old, new=nights(1, 2, 6, case="new")) == [(("old",), without)], "it is no new case"


def test_a_silence_is_over_with_the_next_night_and_not_with_the_last_one() -> None:
    (found,) = silences("2026-01-09T12:00:00", case=nights(1, 2, 3, 4, 5)).worse(90)
    assert not silences("2026-01-09T12:00:00", case=nights(1, 2, 3, 4, 5)).has_returned(found)
    assert silences("2026-01-09T12:00:00", case=nights(1, 2, 3, 4, 5, 9)).has_returned(found)


def test_a_night_that_came_some_hours_late_is_not_missing() -> None:
    runs = nights(1, 2, 3, 4, 5)
    late = SimpleNamespace(started="2026-01-06T12:00:00", run="late")
    history = silences("2026-01-09T12:00:00", case=[*runs, late, *nights(9)])
    gap = [date(2026, 1, 7), date(2026, 1, 8)]
    assert [days for _, _, days in history.missing(date(2026, 1, 1))] == [gap]
    assert [days for _, _, days in history.missing(date(2026, 1, 8))] == [gap], "the whole of what has not ended before"
    assert list(history.missing(date(2026, 1, 9))) == []


FOUND = Detection(
    machine="m",
    backend="fake",
    what="outcome",
    evidence="event",
    night="2026-01-09T02:00:00",
    run="night008",
    after="crashed",
    members=("case/a",),
)


def test_an_id_is_another_for_all_that_is_another_alert() -> None:
    others = (
        {"machine": "n"},
        {"backend": "other"},
        {"what": "support"},
        {"after": "timed-out"},
        {"run": "night009"},
        {"members": ("case/b",)},
    )
    ids = [new_id(FOUND), *(new_id(FOUND.model_copy(update=change)) for change in others)]
    assert len(set(ids)) == len(ids)
    wobbled = {"detail": "more", "members": ("case/a", "case/b"), "ratio": 1.1}
    assert new_id(FOUND.model_copy(update=wobbled)) == new_id(FOUND), "estimates wobble, and it stays"


AB = Measured(ratio=1.1, interval=(1.0, 1.2), versions=("1", "2"), on="2026-01-10")


@pytest.mark.parametrize(
    ("state", "what", "evidence", "ab", "is_certain", "is_open", "told"),
    [
        ("new", "bound", "candidate", None, False, True, False),
        ("new", "bound", "published", None, False, True, True),
        ("confirmed", "bound", "candidate", AB, True, True, True),
        ("new", "outcome", "event", None, True, True, True),
        ("new", "outcome", "checked", None, True, True, True),
        ("new", "believed", "event", None, False, True, True),
        ("new", "silence", "event", None, False, True, True),
        ("reported", "bound", "published", None, False, True, True),
        ("accepted", "outcome", "event", None, False, False, True),
        ("mended", "outcome", "event", None, False, False, True),
        ("refuted", "bound", "published", AB, False, False, False),
    ],
)
def test_an_alert_is_told_certain_and_open_by_its_state_and_its_evidence(
    state, what, evidence, ab, is_certain, is_open, told
) -> None:
    found = FOUND.model_copy(update={"what": what, "evidence": evidence})
    alert = Alert(id="one", state=state, ab=ab, found=found)
    assert (alert.is_certain, alert.is_open, alert.is_finding) == (is_certain, is_open, told)


def event(trial: str = "case/a", day: int = 5, fact: str = "outcome", **changes: str) -> Event:
    said = {"before": "ok", "after": "crashed", **changes}
    return Event("m", "fake", trial, fact, f"night{day:03d}", f"2026-01-{day:02d}T02:00:00", versions=("", ""), **said)


def facts(*events: Event, last: int = 5, trials: int = 2) -> Facts:
    """Of ten nights of a machine on which these happened, with trials of one backend."""
    of_days = [SimpleNamespace(machine="m", started=f"2026-01-{day:02d}T02:00:00") for day in range(1, 11)]
    rows = [("m", "fake", f"night{day:03d}", trials) for day in range(1, 11)]
    found = Facts(SimpleNamespace(nights=of_days, sql=lambda _: SimpleNamespace(rows=rows)), last)
    vars(found)["events"] = events
    return found


@pytest.mark.parametrize(("day", "is_news"), [(5, False), (6, True)])
def test_events_before_the_last_runs_are_old(day: int, is_news: bool) -> None:
    assert [found.night[8:10] for found in facts(event(day=day)).worse()] == [f"{day:02d}"] * is_news


def test_what_has_been_mended_since_is_no_bad_news() -> None:
    mended = event(day=8, before="crashed", after="ok")
    assert [found.members for found in facts(event(day=7), event("case/b", 7), mended).worse()] == [("case/b",)]


def test_trials_that_are_measured_no_longer_have_returned_once_each_is_measured() -> None:
    gone = Detection(
        machine="m", what=GONE, evidence="event", night="2026-01-07", run="r", members=("case/a", "case/b")
    )
    assert not facts(event(fact=GONE), event("case/b", fact=GONE)).has_returned(gone)
    assert not facts(event("case/b", fact=GONE)).has_returned(gone)
    assert facts(event("case/c", fact=GONE), event(fact="outcome")).has_returned(gone)


def test_bad_news_has_returned_once_no_trial_has_it() -> None:
    found = Detection(
        machine="m",
        backend="fake",
        what="outcome",
        evidence="event",
        night="2026-01-07",
        run="r",
        before="ok",
        after="crashed",
        members=("case/a", "case/b"),
    )
    good, bad = {"before": "crashed", "after": "ok"}, {"before": "ok", "after": "timed-out"}
    assert facts(event(**good), event("case/b", **good)).has_returned(found)
    assert not facts(event(**good), event("case/b", **bad)).has_returned(found), "it is bad in another way"
    assert not facts().has_returned(found), "nothing is known of it"


def test_a_level_of_a_machine_that_is_not_there_has_not_returned() -> None:
    """A history may lose its machine, as in a branch that was begun again."""
    level = Detection(machine="gone", what="bound", evidence="published", night="2026-01-07", run="r", ratio=1.2)
    assert not News({}, facts(), Silences({}, datetime(2026, 1, 10))).has_returned(level)


def test_a_distance_counts_the_runs_of_the_machine_from_one_night_to_the_other() -> None:
    fifth, eighth = event(day=5).night, event(day=8).night
    assert [facts().distance("m", *pair) for pair in ((fifth, fifth), (fifth, eighth), (eighth, fifth))] == [0, 3, 3]
    assert facts().distance("gone", fifth, eighth) == 0


@pytest.mark.parametrize(("runs", "alerts"), [(0, 1), (NEAR, 1), (NEAR + 1, 2)])
def test_trials_with_the_same_news_at_about_one_time_are_one_alert(runs: int, alerts: int) -> None:
    """It is the backend's news, and nights leave some trials out."""
    found = list(facts(event(day=3), event("case/b", 3 + runs), last=10).worse())
    assert len(found) == alerts
    assert found[0].night == event(day=3).night


@pytest.mark.parametrize(("bad", "trials", "whole"), [(2, 2, True), (2, 3, False), (1, 1, False)])
def test_news_of_several_trials_that_are_all_of_a_backend_are_the_backends(bad: int, trials: int, whole: bool) -> None:
    (found,) = facts(*[event(f"case/{number}", 7) for number in range(bad)], trials=trials).worse()
    assert (len(found.members), found.whole_backend) == (bad, whole)


def test_a_case_that_ran_twice_on_a_date_has_one_night_the_first() -> None:
    hours = ["02T02", "02T14", "03T02"]
    runs = [SimpleNamespace(machine="m", cases=("case",), started=f"2026-01-{hour}:00:00") for hour in hours]
    of = Silences.of(SimpleNamespace(nights=runs), datetime(2026, 1, 4)).nights
    assert of == {("m", "case"): (runs[0], runs[2])}


def test_a_comparison_with_itself_that_judged_nothing_has_no_share_of_wrong_verdicts() -> None:
    """All its trials failed, say."""
    nothing = SimpleNamespace(same=True, verdicts=(), machine="m")
    assert false_alarms(SimpleNamespace(comparisons=[nothing])) == ()


def test_what_a_release_does_not_support_was_no_failure_to_measure_it() -> None:
    outcomes = {"1.0": "ok", "1.1": "unsupported", "1.2": "crashed"}
    points = tuple(ReleasePoint(version, "", outcome, "Why.", ()) for version, outcome in outcomes.items())
    series = ReleaseSeries("m", "fakelib", "1.0", "case/a", "bound", points)
    assert list(release_change_lines([series]))[2:] == ["  1.2 was not measured: crashed: Why."]
