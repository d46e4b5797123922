"""A backfill is read along versions: what changed between which releases; nights and releases are kept apart."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import fake_records as fake
import made_history
import pytest

pytest.importorskip("duckdb")

from rnnbench.history import (
    Alerts,
    History,
    News,
    ReleaseFile,
    ReleaseSeries,
    find_changes,
    find_events,
    release_change_lines,
    release_series,
    update,
    write_release,
)
from rnnbench.history.releases import ReleasePoint, version_order
from rnnbench.reports import release_tables
from rnnbench.results import ERROR_RATE, StoreError, Timing, judge_apart, judge_once

TRIALS = [fake.record("fakelib", "ops"), fake.record("fakelib", "ops", chunk=64)]
LEVELS = {"1.9.0": 1.00, "1.10.0": 1.00, "1.11.0": None, "1.12.0": 1.042, "1.13.0": 1.042}


def add_releases(folder: Path, levels=LEVELS, reference="1.13.0", started="2026-06-01T00:00:00+00:00") -> History:
    """Add releases, the newest first; without a level, one that was not installed. A scatter of 0.3 % in 8 pairs."""
    chance = random.Random(1)
    for version, level in reversed(levels.items()):
        run = folder / f"{reference}-{version}"
        run.mkdir(parents=True)
        (run / "run.json").write_text(
            fake.info(run=run.name, started=started, seed=1, machine=made_history.MACHINE).model_dump_json()
        )
        records = [made_history.of_version(record, version) for record in TRIALS]
        ratios = {}
        if level is None:
            changes = {"outcome": "unavailable", "reason": "no wheel", "timing": Timing()}
            records = [record.model_copy(update=changes) for record in records]
        else:
            drawn = [[level * (1 + chance.gauss(0, 0.003)) for _ in range(8)] for _ in range(2)]
            ratios = {TRIALS[0].trial: {"bound": drawn[0]}, TRIALS[1].trial: {"bound": [r / level for r in drawn[1]]}}
        (run / "records.jsonl").write_text("".join(record.model_dump_json() + "\n" for record in records))
        write_release(run, ReleaseFile(package="fakepackage", version=version, reference=reference, ratios=ratios))
        History(folder / "history").add(run)
    return History(folder / "history")


def test_a_change_is_told_between_its_releases_with_its_size_and_interval(tmp_path):
    history = add_releases(tmp_path)
    heading, change, missing = release_change_lines(release_series(history))
    assert heading.startswith("Releases of fakepackage (each beside 1.13.0) [machine ")
    before, _, interval = change.partition(" (")
    assert before.startswith(f"  between 1.10.0 and 1.12.0 the bound latency of {TRIALS[0].trial} rose by 4.")
    low, high = (float(part.rstrip("%)")) for part in interval.split(" to "))
    assert 3.0 < low < 4.2 < high < 5.5
    assert missing == "  1.11.0 was not measured: unavailable: no wheel"


def test_a_fall_has_its_bounds_in_order(tmp_path):
    lines = list(release_change_lines(release_series(add_releases(tmp_path, {"1.0": 1.1, "1.1": 1.0}, "1.1"))))
    sentence, _, interval = lines[1].partition(" (")
    assert " fell by 9." in sentence
    low, high = (float(part.rstrip("%)")) for part in interval.split(" to "))
    assert 8.0 < low < 9.1 < high < 10.0


def test_steps_below_the_threshold_are_no_changes(tmp_path):
    found = release_series(add_releases(tmp_path))
    assert len(list(release_change_lines(found, 0.2))) == 3
    assert "No latency has a verdict of SLOWER or FASTER" in list(release_change_lines(found, 0.2))[1]


def test_tables_have_every_release_in_the_order_of_versions(tmp_path):
    overview, *details = release_tables(release_series(add_releases(tmp_path)))
    assert [row[0] for row in overview.rows] == list(LEVELS)
    marked = [row for row in overview.rows if any(cell.startswith("▲") for cell in row)]
    assert [row[0] for row in marked] == ["1.12.0"]
    assert overview.rows[2][1:] == ("—", "—")
    assert len(details) == 2
    assert details[0].rows[2][2:] == ("unavailable", "—", "—", "—")
    assert re.fullmatch(r"SLOWER 1\.04\d \(1\.03\d to 1\.04\d\)", details[0].rows[3][2]), "a ratio, as its interval is"


def test_each_reference_has_a_table_with_all_of_its_releases(tmp_path):
    add_releases(tmp_path, {"1.9.0": 0.96, "1.10.0": 0.96}, "1.12.0")
    tables = release_tables(release_series(add_releases(tmp_path, {"1.9.0": 1.0}, "1.13.0")))
    overviews = {table.title: [row[0] for row in table.rows] for table in tables if table.text == 1}
    assert overviews == {
        "bound latency over that of 1.12.0": ["1.9.0", "1.10.0"],
        "bound latency over that of 1.13.0": ["1.9.0"],
    }
    assert len({table.title for table in tables}) == len(tables) == 6


def test_a_release_that_only_one_trial_has_is_in_the_table(tmp_path):
    first, other, *_ = [each for each in release_series(add_releases(tmp_path)) if each.path == "bound"]
    series = replace(first, points=first.points[:-1]), replace(other, points=other.points[1:])
    assert [row[0] for row in release_tables(series)[0].rows] == list(LEVELS)


@pytest.mark.proof
def test_backfills_beside_other_references_are_series_of_their_own(tmp_path):
    add_releases(tmp_path)
    found = release_series(add_releases(tmp_path, {"1.9.0": 0.96}, "1.12.0"))
    points = {(each.reference, each.trial): len(each.points) for each in found if each.path == "bound"}
    assert points == {(r, t.trial): n for r, n in (("1.13.0", 5), ("1.12.0", 1)) for t in TRIALS}


@pytest.mark.proof
def test_a_later_failure_does_not_hide_a_measurement(tmp_path):
    add_releases(tmp_path)
    (tmp_path / "again").mkdir()
    run = tmp_path / "again" / "failed"
    history = tmp_path / "history"
    again = add_releases(tmp_path / "again", {"1.9.0": None})
    assert again.runs
    failed = tmp_path / "again" / "1.13.0-1.9.0"
    info = fake.info(run="failed", started="2026-07-01T00:00:00+00:00", seed=2, machine=made_history.MACHINE)
    (failed / "run.json").write_text(info.model_dump_json())
    failed.rename(run)
    History(history).add(run)
    found = release_series(History(history))
    assert all(each.points[0].ratios for each in found if each.path == "bound")


def test_releases_are_no_nights(tmp_path):
    nights = made_history.make(tmp_path, 3)
    before = find_changes(nights), find_events(nights), len(nights.nights)
    both = add_releases(tmp_path)
    assert (find_changes(both), find_events(both), len(both.nights)) == before
    assert len(both.runs) == 3 + len(LEVELS)
    assert both.sql("SELECT count(*) FROM runs WHERE package = 'fakepackage'").rows == ((len(LEVELS),),)


def test_a_backfill_raises_no_alert_and_hides_none(tmp_path):
    now = datetime(2026, 1, 22)
    before = update(Alerts.read(tmp_path / "alerts.yaml"), News.of(made_history.make(tmp_path, 8), now, 90)).all
    assert [alert.found.what for alert in before] == ["silence"]
    after = update(
        Alerts.read(tmp_path / "alerts.yaml"),
        News.of(add_releases(tmp_path, started="2026-01-20T00:00:00+00:00"), now, 90),
    ).all
    assert after == before


def test_a_damaged_release_file_is_named(tmp_path):
    add_releases(tmp_path)
    run = tmp_path / "1.13.0-1.9.0"
    (run / "release.json").write_text("{}")
    with pytest.raises(StoreError, match=r"release.json: is damaged; delete the run"):
        History(tmp_path / "other").add(run)


def point(version: str, level: float, seed: int) -> ReleasePoint:
    chance = random.Random(seed)
    return ReleasePoint(version, "", "ok", "", tuple(level * (1 + chance.gauss(0, 0.01)) for _ in range(8)))


def test_all_intervals_of_a_series_hold_together_and_that_of_a_release_alone():
    points = [point(f"1.{number}", 1.0, number) for number in range(4)]
    steps = ReleaseSeries("machine", "fakepackage", "1.3", "trial", "bound", tuple(points)).steps(0.03)
    assert [(step.before, step.after) for step in steps] == [("1.0", "1.1"), ("1.1", "1.2"), ("1.2", "1.3")]
    for step, before, after in zip(steps, points, points[1:], strict=False):
        assert step.judged == judge_apart(before.ratios, after.ratios, 0.03, ERROR_RATE / 3)
        assert step.judged.interval != judge_apart(before.ratios, after.ratios, 0.03).interval
    assert points[0].judged == judge_once(points[0].ratios, 0.99)


def test_of_two_measurements_of_a_release_the_newest_counts(tmp_path):
    add_releases(tmp_path, {"1.9.0": 1.2}, started="2026-06-01T00:00:00+00:00")
    (tmp_path / "again").mkdir()
    again = add_releases(tmp_path / "again", {"1.9.0": 1.1}, started="2026-06-02T00:00:00+00:00")
    for run in (tmp_path / "1.13.0-1.9.0", tmp_path / "again" / "1.13.0-1.9.0"):
        again.add(run)
    (series,) = [
        each for each in release_series(History(again.root)) if each.trial == TRIALS[0].trial and each.path == "bound"
    ]
    assert [round(one.judged.ratio, 1) for one in series.points] == [1.1]


def test_what_is_no_version_comes_before_all_that_are():
    assert sorted(["1.10", "1.9", "nightly", "1.9rc1"], key=version_order) == ["nightly", "1.9rc1", "1.9", "1.10"]
