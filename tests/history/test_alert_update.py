"""How alerts follow what a history shows, with a history that says what the test makes it say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from decisions import accept, report

from rnnbench.history import Alert, Alerts, Detection, Measured, update
from rnnbench.history.causes import NEAR

FOUND = Detection(
    machine="m",
    backend="fake",
    what="bound",
    evidence="published",
    night="2026-01-09T02:00:00",
    run="night009",
    ratio=1.05,
    interval=(1.04, 1.06),
    members=("case/a",),
)
AB = Measured(ratio=1.05, interval=(1.04, 1.06), versions=("1", "2"), on="2026-01-10")


class Shown:
    """What a history shows on a day: this bad news, and that some of it has returned."""

    def __init__(self, *found: Detection, day: int = 20, returned: bool = False, why: str = "") -> None:
        self._found, self._returned, self._why = found, returned, why
        self.machines_now = {"an earlier fingerprint": FOUND.machine}
        self.silences = SimpleNamespace(now=datetime(2026, 1, day, 12))

    def worse(self) -> Sequence[Detection]:
        return self._found

    def has_returned(self, found: Detection) -> bool:
        return self._returned or found.members == ("case/gone",)

    def explanation(self, found: Detection) -> str:
        return self._why

    def distance(self, found: Detection, other: Detection) -> float:
        return abs(int(found.run[5:]) - int(other.run[5:]))


def of(**changes: Any) -> Detection:
    return FOUND.model_copy(update=changes)


def alert(state: str = "new", identity: str = "one", **changes: Any) -> Alert:
    return Alert(id=identity, state=state, ab=AB if state in ("confirmed", "refuted") else None, found=of(**changes))


@pytest.fixture
def alerts(tmp_path: Path) -> Callable[..., Alerts]:
    return lambda *content: Alerts.read(tmp_path / "alerts.yaml").put(*content)


def states(alerts: Alerts) -> list[tuple[str, str]]:
    return [(each.id, each.state) for each in alerts.all]


@pytest.mark.parametrize(("day", "state"), [(19, "accepted"), (20, "accepted"), (21, "new")])
def test_an_acceptance_holds_up_to_the_end_of_its_last_day(alerts, day: int, state: str) -> None:
    accepted = accept(alerts(alert()), "one", until="2026-01-20")
    assert states(update(accepted, Shown(FOUND, day=day))) == [("one", state)]


@pytest.mark.parametrize("runs", [0, NEAR])
def test_what_is_dated_a_few_runs_away_is_the_same_alert(alerts, runs: int) -> None:
    assert states(update(alerts(alert()), Shown(of(run=f"night{9 + runs:03d}")))) == [("one", "new")]


def test_what_is_further_away_is_another_alert(alerts) -> None:
    after = update(alerts(alert()), Shown(of(run=f"night{10 + NEAR:03d}")))
    assert [each.found.run for each in after.all] == ["night009", f"night{10 + NEAR:03d}"]


def test_an_alert_follows_its_machine_to_another_fingerprint(alerts) -> None:
    (found,) = update(alerts(alert(machine="an earlier fingerprint")), Shown(FOUND)).all
    assert (found.id, found.found.machine) == ("one", FOUND.machine)


@pytest.mark.parametrize("key", ["machine", "backend", "after"])
def test_what_another_machine_or_backend_shows_is_another_alert(alerts, key: str) -> None:
    assert len(update(alerts(alert()), Shown(of(**{key: "other"}))).all) == 2


def test_of_two_changes_the_nearer_one_is_the_alert_and_the_other_one_is_new(alerts) -> None:
    near, far = of(run="night010", ratio=1.2), of(run="night007", ratio=1.3)
    after = update(alerts(alert()), Shown(far, near))
    assert [(each.id == "one", each.found.ratio) for each in after.all] == [(True, 1.2), (False, 1.3)]


def test_two_alerts_are_not_one_change(alerts) -> None:
    before = alerts(alert(), alert("confirmed", "two", run="night011"))
    after = update(before, Shown(FOUND, of(run="night011")))
    assert after.all == before.all


def test_what_is_still_seen_is_not_mended(alerts) -> None:
    before = alerts(alert())
    assert update(before, Shown(FOUND, returned=True)).all == before.all


def test_what_a_check_found_is_neither_seen_nor_mended_by_a_series(alerts) -> None:
    checked = alert(what="outcome", evidence="checked")
    before = alerts(checked)
    assert update(before, Shown(returned=True)).all == before.all
    after = update(before, Shown(of(what="outcome", evidence="event")))
    assert after.all[0] == checked
    assert len(after.all) == 2


def test_a_series_that_is_back_opens_its_alert_again_with_what_it_shows_now(alerts) -> None:
    mended = alerts(alert()).mend("one", "2026-01-15")
    (again,) = update(mended, Shown(of(run="night010", ratio=1.2))).all
    assert (again.state, again.mended, again.found.run, again.found.ratio) == ("new", None, "night010", 1.2)


@pytest.mark.parametrize(("night", "state"), [("2026-01-15", "mended"), ("2026-01-16", "new")])
def test_what_versions_mended_is_opened_by_a_later_step_alone(alerts, night: str, state: str) -> None:
    mended = alerts(alert("confirmed")).mend("one", "2026-01-15", "3.0 is the newest again")
    assert states(update(mended, Shown(of(night=f"{night}T02:00:00")))) == [("one", state)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"ratio": 1.055}, {}),
        ({}, {"ratio": 1.07}, {"ratio": 1.07}),
        ({}, {"ratio": 1.045, "interval": (1.04, 1.05)}, {}),
        ({}, {"ratio": 1.045, "interval": (1.041, 1.049)}, {"ratio": 1.045, "interval": (1.041, 1.049)}),
        ({}, {"versions": ("1", "3")}, {"versions": ("1", "3")}),
        ({}, {"night": "2026-01-10T02:00:00"}, {"night": "2026-01-10T02:00:00"}),
        ({}, {"members": ("case/b",)}, {"members": ("case/a", "case/b")}),
        ({"members": ("case/a", "case/gone")}, {}, {}),
        ({"members": ("case/a", "case/c")}, {}, {"members": ("case/a", "case/c")}),
        ({"whole_backend": True}, {"members": ("case/b",)}, {"whole_backend": True}),
        ({}, {"whole_backend": True}, {"whole_backend": True}),
        ({"evidence": "candidate"}, {}, {}),
        ({}, {"evidence": "candidate", "ratio": 1.07}, {"ratio": 1.07}),
        ({"evidence": "compared"}, {"evidence": "candidate", "ratio": 1.07}, {"evidence": "compared", "ratio": 1.07}),
    ],
    ids=[
        *("within its interval", "outside of it", "within a new interval", "outside of that", "versions", "date"),
        *("another trial", "a trial that returned", "a trial not seen now"),
        "another trial of a whole backend",
        *("the whole backend", "surer", "less sure", "less sure than a comparison"),
    ],
)
def test_a_new_alert_is_brought_up_to_date_where_something_else_is_seen(alerts, old, new, expected) -> None:
    (after,) = update(alerts(alert(**old)), Shown(of(**new))).all
    assert after.found == of(**expected)


def test_a_measured_alert_keeps_what_was_found_and_becomes_surer(alerts) -> None:
    for now, expected in ((of(ratio=1.2), "candidate"), (of(ratio=1.2, evidence="candidate"), "candidate")):
        (after,) = update(alerts(alert("confirmed", evidence="candidate")), Shown(now)).all
        surer = "published" if now.evidence == "published" else expected
        assert after.found == of(evidence=surer)


def test_an_alert_that_the_machine_explains_later_is_closed_with_the_reason(alerts) -> None:
    explained = Shown(why="the machine moved")
    (closed,) = update(alerts(alert()), explained).all
    assert (closed.state, closed.mended, closed.returned) == ("mended", "2026-01-20", "the machine moved")
    assert update(alerts(alert(evidence="candidate")), explained).all == ()
    assert states(update(alerts(alert("confirmed")), explained)) == [("one", "confirmed")], "a measurement says more"
    accepted = accept(alerts(alert()), "one")
    assert states(update(accepted, explained)) == [("one", "accepted")]
    assert states(update(alerts(alert()), Shown(FOUND, why="the machine moved"))) == [("one", "new")]
    assert states(update(alerts(closed), Shown(FOUND))) == [("one", "new")], "the reason holds no longer"


@pytest.mark.parametrize("state", ["confirmed", "accepted"])
def test_a_drift_that_went_on_after_a_decision_is_told_again_once(alerts, state: str) -> None:
    decided = alert("confirmed", until="2026-01-14T02:00:00")
    decided = accept(alerts(decided), "one").all[0] if state == "accepted" else decided
    little, much = (
        of(until="2026-01-19T02:00:00", ratio=ratio, interval=(ratio - 0.01, ratio + 0.01)) for ratio in (1.07, 1.1)
    )
    assert states(update(alerts(decided), Shown(little))) == [("one", state)]
    told = update(alerts(decided), Shown(much))
    assert [(each.state, each.found.ratio) for each in told.all] == [(state, 1.05), ("new", 1.1)]
    assert update(told, Shown(much)).all == told.all
    assert len(update(alerts(decided), Shown(of(ratio=1.1, interval=(1.09, 1.11)))).all) == 1, "no drift"


def test_of_two_alerts_at_one_distance_the_one_with_the_more_similar_change_is_meant(alerts) -> None:
    decided, grown = alert("confirmed", "decided", ratio=1.05), alert(identity="grown", ratio=1.12)
    (_, after) = update(alerts(decided, grown), Shown(of(ratio=1.2))).all
    assert (after.id, after.found.ratio) == ("grown", 1.2)


@pytest.mark.parametrize("touch", ["note", "ab", "accepted", "reported"])
def test_a_candidate_that_somebody_has_touched_is_mended_and_not_dropped(alerts, touch: str) -> None:
    before = alerts(alert(evidence="candidate"))
    if touch in ("accepted", "reported"):
        before = {"accepted": accept, "reported": report}[touch](before, "one")
    else:
        before = before.put(before.all[0].with_(**{touch: "seen" if touch == "note" else AB}))
    (after,) = update(before, Shown(returned=True)).all
    assert (after.state, after.mended) == ("mended", "2026-01-20")
    assert update(alerts(alert(evidence="candidate")), Shown(returned=True)).all == ()
