"""How changes of one backend become alerts, and when the levels of one are back; the changes are made up."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rnnbench.history import level_alerts
from rnnbench.history.alert import Detection
from rnnbench.history.causes import NEAR
from rnnbench.history.change_points import PUBLISH, SCREEN
from rnnbench.history.changes import Change
from rnnbench.history.level_alerts import Levels
from rnnbench.history.series import Trials

A, B, C = "case/a", "case/b", "case/c"
NIGHTS = 60


def night(day: int) -> dict[str, str]:
    return {"run": f"night{day:03d}", "night": f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}T02:00:00"}


def change(subject: str = A, day: int = 20, **changes: Any) -> Change:
    said = {
        "machine": "m",
        "level": "trial",
        "subject": subject,
        "backend": "fake",
        "measure": "bound",
        "last_run": "before",
        "versions": ("1", "2"),
        "ratio": 1.1,
        "interval": (1.08, 1.12),
        "cause": "program",
        "reason": "",
        **night(day),
    }
    return Change(**{**said, **changes})


def levels(*changes: Change, published: tuple[Change, ...] = (), **series: np.ndarray) -> Levels:
    """Of a machine with three trials of one backend, which were measured each night but for NaN in a series given."""
    values = np.stack([series.get(name[-1], np.full(NIGHTS, np.nan)) for name in (A, B, C)])
    program = np.stack([np.isfinite(series.get(name[-1], np.zeros(NIGHTS))) for name in (A, B, C)])
    trials = SimpleNamespace(
        names=(A, B, C),
        backends=("fake", "fake", "other"),
        runs=[SimpleNamespace(run=night(day)["run"], started=night(day)["night"]) for day in range(NIGHTS)],
        program=program,
        runs_between=partial(Trials.runs_between, SimpleNamespace(program=program)),
        divided=lambda _: values,
        backend_series=lambda _: {"fake": values[0]},
    )
    explained = tuple(one for one in changes if one.reason)
    return Levels("m", trials, tuple(one for one in changes if not one.reason), published, (), explained)


def members(found: Levels) -> list[tuple[str, ...]]:
    return [one.members for one in found.worse()]


@pytest.mark.parametrize(("runs", "alerts"), [(NEAR, [(A, B)]), (NEAR + 1, [(A,), (B,)])])
def test_trials_of_a_backend_that_rise_at_about_one_time_are_one_alert(runs: int, alerts: list[tuple[str]]) -> None:
    assert members(levels(change(A, ratio=1.2), change(B, 20 + runs))) == alerts


def test_runs_without_a_trial_do_not_part_its_change_from_that_of_its_backend() -> None:
    """The trial was missing for a week, and its change is dated on its last night before."""
    missing = np.full(NIGHTS, 0.1)
    missing[13:20], missing[:12] = np.nan, 0.0
    whole = change("fake", 20, level="backend", ratio=1.1, together=(B,))
    assert members(levels(whole, change(A, 12), a=missing)) == [(A, B)]


def test_the_trial_that_moved_most_stands_for_all() -> None:
    (found,) = levels(change(A, 20), change(B, 21, ratio=1.3)).worse()
    assert (found.night, found.ratio) == (night(21)["night"], 1.3)


@pytest.mark.parametrize("other", [{"backend": "other"}, {"measure": "public"}])
def test_other_backends_and_measures_are_alerts_of_their_own(other: dict[str, str]) -> None:
    assert len(members(levels(change(A), change(B, **other)))) == 2


def test_a_trial_that_rises_twice_has_two_alerts() -> None:
    assert members(levels(change(A, 20, ratio=1.2), change(A, 22))) == [(A,), (A,)]


def test_a_trial_joins_the_nearer_one_of_two_alerts() -> None:
    found = levels(change(A, 20, ratio=1.3), change(A, 24, ratio=1.2), change(B, 23))
    assert sorted((one.run, one.members) for one in found.worse()) == [("night020", (A,)), ("night024", (A, B))]


def test_a_backend_stands_for_trials_that_are_too_small_for_changes_of_their_own() -> None:
    (found,) = levels(change("fake", level="backend")).worse()
    assert (found.whole_backend, found.members) == (True, (A, B))
    (found,) = levels(change("fake", level="backend", together=(B,)), change(A, ratio=1.4)).worse()
    assert (found.whole_backend, found.members, found.ratio) == (True, (A, B), 1.1), "the backend's is the first"


def test_what_rises_is_worse_and_what_falls_surely_is_better() -> None:
    rise, fall, unsure = change(A), change(B, ratio=0.9), change(B, 40, ratio=0.8)
    found = levels(rise, fall, unsure, published=(rise, fall))
    assert members(found) == [(A,)]
    assert [(one.members, one.ratio, one.evidence) for one in found.better()] == [((B,), 0.9, "published")]
    assert members(levels(change(A, ratio=1.011))) == [(A,)]


@pytest.mark.parametrize(
    ("published", "evidence"),
    [
        (change(A, 20 + NEAR), "published"),
        (change(A, 21 + NEAR), "candidate"),
        (change(B), "candidate"),
        (change(A, measure="public"), "candidate"),
        (change(A, ratio=0.9), "candidate"),
        (change(A, level="backend"), "candidate"),
    ],
    ids=["dated otherwise", "another time", "another trial", "another measure", "a fall", "the backend's"],
)
def test_a_rise_is_published_where_the_surer_settings_find_it_too(published: Change, evidence: str) -> None:
    assert [one.evidence for one in levels(change(A), published=(published,)).worse()] == [evidence]


def drift(subject: str = A, day: int = 20, until: int = 40, **changes: Any) -> Change:
    return change(subject, day, until=night(until)["night"], **changes)


def test_what_rises_while_its_backend_drifts_is_a_part_of_the_drift() -> None:
    whole = drift("fake", level="backend", together=(A, B))
    (found,) = levels(whole, drift(A, 26, 30), change(B, 33, ratio=1.05)).worse()
    assert (found.night, found.until, found.members) == (night(20)["night"], night(40)["night"], (A, B))


def test_a_larger_step_while_a_backend_drifts_is_an_alert_of_its_own() -> None:
    whole = drift("fake", level="backend", together=(A, B))
    assert members(levels(whole, change(B, 33, ratio=1.2))) == [(A, B), (B,)]


def test_a_trial_that_drifts_with_its_backend_and_has_a_step_has_two_alerts() -> None:
    found = levels(drift("fake", level="backend", together=(A, B)), change(B, 30, ratio=1.09), drift(B, 22, ratio=1.05))
    assert [(one.run, one.members) for one in found.worse()] == [("night020", (A, B)), ("night030", (B,))]


RISES = np.repeat([0.0, 0.03, 0.06], 20)
"""Of a backend that drifts, as a search for steps sees it."""


@pytest.mark.parametrize(("own", "alerts"), [(0.0, [(A, B)]), (0.01, [(A, B)]), (0.02, [(A,), (B,)])])
def test_a_later_step_of_a_trial_is_its_backend_s_where_beside_it_the_trial_did_not_move(own, alerts) -> None:
    whole = change("fake", 20, level="backend", ratio=1.03, together=(A,))
    step = change(B, 40, ratio=1.03)
    assert members(levels(whole, step, a=RISES, b=RISES + own * (np.arange(NIGHTS) >= 40))) == alerts


def test_an_earlier_step_of_a_trial_is_not_its_backend_s() -> None:
    whole = change("fake", 40, level="backend", ratio=1.03, together=(A,))
    assert members(levels(whole, change(B, 20, ratio=1.03), a=RISES, b=RISES)) == [(A,), (B,)]


def test_a_step_of_a_trial_whose_nights_are_too_few_to_tell_is_an_alert_of_its_own() -> None:
    whole = change("fake", 20, level="backend", ratio=1.03, together=(A,))
    few = np.where((np.arange(NIGHTS) < 40) | (np.arange(NIGHTS) > 57), RISES, np.nan)
    assert members(levels(whole, change(B, 40, ratio=1.03), a=RISES, b=few)) == [(A,), (B,)]


def test_a_drift_is_at_most_a_few_runs_from_what_began_while_it_lasted() -> None:
    some, later = levels(), found(A, day=33)
    whole = found(A, day=20, until=night(40)["night"])
    assert some.distance(whole, later) == NEAR
    assert some.distance(later, whole) == 13, "a step on a drift is a change of its own"
    assert some.distance(whole, found(A, day=18, until=night(36)["night"])) == 2
    assert some.distance(found(A, day=30, until=night(50)["night"]), whole) == NEAR, "its first nights were left out"
    assert some.distance(whole, found(A, day=41)) == 21


def test_a_change_is_explained_by_the_environment_or_by_a_drift_of_all_its_trials() -> None:
    moved = {"cause": "environment", "reason": "the machine moved"}
    some = levels(change(A, **moved), drift(B, 10, 30))
    assert some.explanation(found(A, day=20 + NEAR)) == "the machine moved"
    assert some.explanation(found(B, day=25)) == f"part of a drift since {night(10)['night'][:10]}"
    assert some.explanation(found(A, B)) == "the machine moved"
    unexplained = [found(A, day=21 + NEAR), found(B, day=31), found(A, what="public"), found(A, C), found()]
    assert [some.explanation(one) for one in unexplained] == [""] * 5
    whole = levels(change("fake", level="backend", **moved))
    assert whole.explanation(found(A, B, whole_backend=True)) == "the machine moved"


def found(*trials: str, day: int = 20, **changes: Any) -> Detection:
    said = {"machine": "m", "backend": "fake", "what": "bound", "evidence": "published", "ratio": 1.2, **night(day)}
    return Detection(**{**said, "members": trials, **changes})


BACK = np.repeat([0.0, np.log(1.2), 0.0], 20)
UP = np.repeat([0.0, np.log(1.2)], [20, 40])


def test_an_alert_is_over_once_all_its_trials_are_back() -> None:
    assert levels(a=BACK, b=BACK).has_returned(found(A, B))
    assert not levels(a=BACK, b=UP).has_returned(found(A, B))
    assert levels(a=BACK, b=UP).has_returned(found(A))
    assert levels(a=BACK).has_returned(found(A, B)), "one is measured no longer, which is news of its own"
    assert levels(a=BACK, b=np.repeat([np.nan, 0.1], [30, 30])).has_returned(found(A, B)), "as on another device"
    assert not levels().has_returned(found(A, B)), "nothing is known"
    assert levels(a=BACK, b=UP).has_returned(found(A, B, whole_backend=True)), "the backend's series decides"
    assert members(levels(change(A, ratio=1.2), change(B, 30, ratio=1.2), a=BACK, b=UP)) == [(B,)]


def test_a_distance_is_in_runs_in_which_the_trials_were_measured() -> None:
    every_second = np.where(np.arange(NIGHTS) % 2, np.nan, 0.0)
    some = levels(a=every_second, b=np.zeros(NIGHTS))
    assert some.distance(found(A), found(A, day=20)) == 0
    assert some.distance(found(A), found(A, day=26)) == 3
    assert some.distance(found(A, day=26), found(A)) == 3
    assert some.distance(found(A, B), found(A, day=26)) == 6
    assert some.distance(found("case/gone"), found(A, day=26)) == 6
    lost = found(B, run="a run that the history lost")
    assert some.distance(lost, found(B, day=26)) == 6, "it is taken for the first run from that night on"


def test_changes_of_the_environment_are_no_alerts_and_those_of_the_machine_are_its_moves(monkeypatch) -> None:
    program, environment = change(A), change(B, cause="environment")
    machine = change("m", level="machine", cause="environment")
    asked = []

    def changes_of(name: str, trials: Any, settings: Any) -> list[Change]:
        asked.append((name, trials, settings))
        return [machine, program, environment]

    monkeypatch.setattr(level_alerts, "changes_of", changes_of)
    trials = SimpleNamespace(part=lambda runs: runs)
    made = Levels.of("m", trials, 30)
    assert asked == [("m", -30, SCREEN), ("m", -30, PUBLISH)]
    assert (made.changes, made.published, made.moves) == ((program,), (program,), (machine,))
    assert made.explained == (environment,)
    assert made.trials is trials, "a level has returned by all its runs"
