"""Alerts follow the history: one for what moved together, the same from night to night, mended where it returns."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path

import fake_records as fake
import made_history as made
import pytest

pytest.importorskip("duckdb")
pytest.importorskip("ruamel.yaml")

from decisions import accept

from rnnbench.content_digest import without_digest
from rnnbench.history import Alert, Alerts, History, Measured, News, update
from rnnbench.history.fact_alerts import Silences
from rnnbench.results import Finding, FindingKind, Record, Timing

NIGHTS, STEP, REVERT = 24, 6, 14
CRASH = 10
EARLY, LATE = STEP + 3, STEP + 8
"""Nights after which the screen sees the step, and after which it is published."""
NOON = timedelta(hours=10)


def crashed(record: Record) -> Record:
    changes = {"outcome": "crashed", "reason": "the fake worker died", "timing": Timing()}
    return record.model_copy(update=changes)


def story(n: int, record: Record) -> Record | None:
    """fakemlir is 5 % slower from STEP to REVERT; one trial of fakelib crashes from CRASH on."""
    if record.backend == "fakemlir":
        slow = STEP <= n < REVERT
        return made.slower(
            made.of_version(record, "1.0" if n < STEP else "2.0" if slow else "3.0"), 1.05 if slow else 1
        )
    if record.backend == "fakelib" and record.params.chunk == 64 and n >= CRASH:
        return crashed(record)
    return record


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> History:
    return made.make(tmp_path_factory.mktemp("story"), NIGHTS, story)


def first_nights(whole: History, folder: Path, nights: int) -> History:
    """The history as it was after so many nights."""
    (folder / "runs").mkdir(parents=True)
    (folder / "rows").symlink_to(whole.root / "rows")
    for run in whole.runs[:nights]:
        shutil.copy(whole.root / "runs" / f"{run.run_id}.json", folder / "runs")
    return History(folder)


Look = Callable[..., News]


@pytest.fixture(scope="module")
def look(whole: History, tmp_path_factory: pytest.TempPathFactory) -> Look:
    """What the story shows after so many nights, some time after the last one."""

    @cache
    def news(nights: int) -> News:
        return after(first_nights(whole, tmp_path_factory.mktemp("early") / "history", nights))

    def at(nights: int, later: timedelta = NOON) -> News:
        now = datetime.fromisoformat(whole.runs[nights - 1].started) + later
        return replace(news(nights), silences=replace(news(nights).silences, now=now))

    return at


@pytest.fixture
def none(tmp_path: Path) -> Alerts:
    return Alerts.read(tmp_path / "alerts.yaml")


def after(history: History, later: timedelta = NOON) -> News:
    return News.of(history, datetime.fromisoformat(history.runs[-1].started) + later)


def level(alerts: Alerts) -> list[Alert]:
    return [alert for alert in alerts.all if alert.found.what == "bound"]


def test_an_alert_is_one_from_night_to_night_and_is_mended_by_itself(look: Look, none: Alerts) -> None:
    alerts, ids, states = none, set(), []
    for nights in (EARLY, EARLY + 2, LATE, NIGHTS):
        alerts = update(alerts, look(nights)).write()
        ids |= {alert.id for alert in level(alerts)}
        states += [(alert.state, alert.found.evidence) for alert in level(alerts)]
    assert len(ids) == 1
    assert states[0] == ("new", "candidate")
    assert states[2:] == [("new", "published"), ("mended", "published")]
    assert Alerts.read(alerts.file).all == alerts.all
    assert update(alerts, look(NIGHTS)).all == alerts.all


def test_a_whole_backend_is_one_alert_with_its_trials(look: Look, none: Alerts) -> None:
    (alert,) = level(update(none, look(LATE)))
    assert alert.found.whole_backend
    assert len(alert.found.members) == 4
    assert alert.found.versions == ("fakemlir-package 1.0", "fakemlir-package 2.0")
    assert alert.found.run == f"night{STEP:03d}"


def test_what_has_returned_before_anybody_looked_is_no_alert(look: Look, none: Alerts) -> None:
    assert level(update(none, look(NIGHTS))) == []


def test_bad_news_is_an_alert_and_is_mended_when_it_is_over(tmp_path: Path, none: Alerts) -> None:
    def night(n: int, record: Record) -> Record | None:
        return crashed(record) if record.backend == "fakelib" and 2 <= n < 4 else record

    history = made.make(tmp_path, 6, night)
    ill = update(none, after(first_nights(history, tmp_path / "early", 4)))
    ((state, what, whole, members),) = [
        (alert.state, alert.found.what, alert.found.whole_backend, len(alert.found.members)) for alert in ill.all
    ]
    assert (state, what, whole, members) == ("new", "outcome", True, 2)
    assert [alert.state for alert in update(ill, after(history)).all] == ["mended"]
    assert update(none, after(history)).all == ()


FINDING = Finding(kind=FindingKind.TIME, detail="a call took no time", disbelieved=True)


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("change", "bad"),
    [
        ({"outcome": "nonconforming"}, True),
        ({"findings": (FINDING,)}, True),
        (None, True),
        ({"version": {"fakelib-package": "9"}}, False),
    ],
)
def test_which_events_are_bad_news(tmp_path: Path, none: Alerts, change: dict[str, object] | None, bad: bool) -> None:
    def night(n: int, record: Record) -> Record | None:
        if n < 2 or record.backend != "fakelib" or record.params.chunk != 64:
            return record
        return None if change is None else record.model_copy(update=change)

    alerts = update(none, after(made.make(tmp_path, 3, night))).all
    assert [alert.found.evidence for alert in alerts] == ["event"] * bad


def test_rows_of_a_machine_that_no_run_is_of_raise_no_alert(tmp_path: Path, none: Alerts) -> None:
    def night(n: int, record: Record) -> Record:
        return crashed(record) if n == 2 and record.backend == "fakelib" else record

    history = made.make(tmp_path, 3, night)
    assert update(none, after(history)).all
    for file in (history.root / "runs").iterdir():
        entry = json.loads(without_digest(file.read_bytes())[0])
        file.write_text(json.dumps({**entry, "machine": "another", "machine_earlier": "another"}))
    assert update(none, after(History(history.root))).all == ()


@pytest.mark.proof
def test_what_the_environment_did_is_no_alert(tmp_path: Path, none: Alerts) -> None:
    history = made.make(tmp_path, 16, lambda n, record: made.slower(record, 1.1 if n >= STEP else 1))
    assert update(none, after(history)).all == ()


def test_a_machine_that_is_silent_is_an_alert_until_it_runs_again(look: Look, none: Alerts) -> None:
    assert silences(update(none, look(EARLY))) == []
    silent = update(none, look(EARLY, timedelta(days=2)))
    ((identity, state, cases),) = silences(silent)
    assert (state, cases) == ("new", ("fake_case",))
    assert silences(update(silent, look(EARLY, timedelta(days=3)))) == [(identity, "new", cases)]
    assert silences(update(silent, look(EARLY + 2))) == [(identity, "mended", cases)]


def test_any_number_of_nights_may_be_looked_at(look: Look) -> None:
    found = list(look(EARLY, timedelta(days=2)).silences.worse(10**30))
    assert [one.what for one in found] == ["silence"]


def silences(alerts: Alerts) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(alert.id, alert.state, alert.found.members) for alert in alerts.all if alert.found.what == "silence"]


def test_missing_nights_between_others_are_named(tmp_path: Path) -> None:
    history = made.make(tmp_path, 9)
    for run in history.runs[5:7]:
        (history.root / "runs" / f"{run.run_id}.json").unlink()
    news = after(History(history.root))
    ((_, _, days),) = news.silences.missing(date(2026, 1, 1))
    assert [str(day) for day in days] == ["2026-01-06", "2026-01-07"]


def test_an_acceptance_that_ran_out_is_new_again(look: Look, none: Alerts) -> None:
    alerts = update(none, look(LATE))
    (alert,) = level(alerts)
    alerts = accept(alerts, alert.id, until="2026-01-15")
    assert level(update(alerts, look(LATE)))[0].state == "accepted"
    assert level(update(alerts, look(LATE, timedelta(days=4))))[0].state == "new"


def test_a_candidate_that_returns_is_dropped_unless_somebody_wrote_beside_it(look: Look, none: Alerts) -> None:
    early = update(none, look(EARLY))
    (alert,) = level(early)
    assert alert.found.evidence == "candidate"
    assert level(update(early, look(NIGHTS))) == []
    for kept in (early.put(alert.with_(note="seen by Ada")), replace(early, commented=frozenset({alert.id}))):
        assert [each.state for each in level(update(kept, look(NIGHTS)))] == ["mended"]


def test_what_versions_mended_is_not_opened_again_by_a_series_that_still_shows_the_step(
    look: Look, none: Alerts
) -> None:
    alerts = update(none, look(EARLY))
    (alert,) = level(alerts)
    day = look(EARLY).silences.now.date().isoformat()
    assert level(update(alerts.mend(alert.id, day), look(EARLY + 1)))[0].state == "new"
    measured = Measured(ratio=1.05, interval=(1.04, 1.06), versions=("1", "2"), on=day)
    mended = alerts.confirm(alert.id, measured).mend(alert.id, day, "3.0 beside 1.0: ratio 1.000 (0.990 to 1.010)")
    assert level(update(mended, look(EARLY + 1))) == level(mended)
    assert mended.reopen(alert.id).find(alert.id).returned is None


@pytest.mark.proof
def test_a_case_that_was_renamed_is_silent_under_its_old_name_and_told_with_the_new_one(tmp_path: Path) -> None:
    def renamed(record: Record) -> Record:
        rest = record.trial.partition("/")[2].rpartition("-")[0]
        return record.model_copy(update={"case": "new_case", "trial": f"new_case/{rest}-00000000"})

    history = History(tmp_path / "history")
    for day in range(1, 9):
        is_new = day > 5
        run = fake.write_run(
            tmp_path / f"night{day}",
            [renamed(fake.record()) if is_new else fake.record()],
            started=f"2026-01-{day:02d}T02:00:00+00:00",
            seed=day,
            cases=("new_case",) if is_new else ("fake_case",),
        )
        history.add(run)
    (silence,) = Silences.of(History(tmp_path / "history"), datetime(2026, 1, 8, 12)).worse(90)
    assert silence.members == ("fake_case",)
    assert silence.detail == "fake_case was renamed: new_case has the same trials since"
