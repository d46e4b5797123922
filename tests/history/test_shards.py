"""Shards of one night are runs of their own: each is divided by its own anchors, and no trial is missed elsewhere."""

from __future__ import annotations

import random
from pathlib import Path

import fake_records as fake
import made_history as made
import pytest

pytest.importorskip("duckdb")

from rnnbench.cli.history import add
from rnnbench.history import History, find_changes, find_events
from rnnbench.results import Record, merge_shards, write_merged, write_whole_plan
from rnnbench.results.shards import WholePlan

NIGHTS, STEP = 16, 8
HOSTS = (1.0, 1.3, 0.8)
"""How slow each shard's host is. All have one fingerprint, as the nodes of a cluster have."""
SLOWER = "fakemlir"


def shards_of() -> list[list[Record]]:
    """Two of the six trials in each shard, and the four anchors in all."""
    anchors, others = made.trials()[:4], made.trials()[4:]
    return [[*anchors, *others[2 * number : 2 * number + 2]] for number in range(3)]


def night_of_shard(folder: Path, night: int, number: int, records: list[Record], plan: WholePlan) -> Path:
    info = fake.info(
        run=f"night{night:03d}-{number}-of-3",
        started=f"2026-{1 + night // 28:02d}-{1 + night % 28:02d}T02:0{number}:00+00:00",
        seed=3 * night + number,
        machine=made.MACHINE,
        shard=plan.shard(number),
    )
    run = folder / info.run
    run.mkdir(parents=True)
    (run / "run.json").write_text(info.model_dump_json())
    (run / "records.jsonl").write_text("".join(record.model_dump_json() + "\n" for record in records))
    write_whole_plan(run, plan)
    return run


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Every host moves by up to 10 % from night to night; one backend becomes slower by 8 % with a new version."""
    folder, chance = tmp_path_factory.mktemp("shards"), random.Random(0)
    shards = shards_of()
    anchors = tuple(record.trial for record in shards[0][:4])
    plan = WholePlan(
        trials="f" * 64,
        shards=tuple(
            tuple(r.trial for r in of if not r.baseline) + (anchors if of is shards[0] else ()) for of in shards
        ),
        anchors=anchors,
    )
    for night in range(NIGHTS):
        runs = []
        for number, records in enumerate(shards, start=1):
            host = HOSTS[number - 1] * (1 + chance.uniform(-0.1, 0.1))
            measured = []
            for record in records:
                changed = record
                if record.backend == SLOWER and night >= STEP:
                    changed = made.slower(made.of_version(record, "2.0"), 1.08)
                measured.append(made.slower(changed, host * (1 + chance.gauss(0, 0.005))))
            runs.append(night_of_shard(folder, night, number, measured, plan))
        merged = write_merged(merge_shards(runs), folder, folder / f"merged{night:03d}").run
        add.callback((str(merged.path),), compress=False, history_folder=folder / "history", results=folder)
    return History(folder / "history")


def test_every_shard_is_a_run_of_its_own_and_adding_it_alone_adds_nothing(nights: History) -> None:
    assert len(nights.runs) == 3 * NIGHTS
    assert nights.sql("SELECT DISTINCT shard FROM rows ORDER BY shard").rows == (("1/3",), ("2/3",), ("3/3",))
    shard = nights.root.parent / "night005-2-of-3"
    assert nights.add(shard).what == "already there"


def test_a_trial_is_in_one_shard_a_night_and_an_anchor_in_each(nights: History) -> None:
    counted = nights.sql("SELECT trial, any_value(baseline), count(*) FROM rows GROUP BY trial").rows
    assert {(baseline, count) for _, baseline, count in counted} == {(True, 3 * NIGHTS), (False, NIGHTS)}


def test_the_anchors_of_each_shard_are_divided_out_of_its_trials(nights: History) -> None:
    found = [change for change in find_changes(nights) if change.measure == "bound" and change.level != "machine"]
    trials = {change.subject for change in found if change.level == "trial"}
    assert trials == {record.trial for record in made.trials() if record.backend == SLOWER}, "hosts are not blamed"
    for change in found:
        assert change.cause == "program"
        assert change.ratio == pytest.approx(1.08, abs=0.01)
        assert change.run.startswith(f"night{STEP:03d}-"), "in the night of the new version"


def test_a_trial_of_one_shard_is_not_missed_in_the_others(nights: History) -> None:
    assert [event for event in find_events(nights) if event.fact == "measured"] == []


def test_a_trial_that_its_own_shard_no_longer_has_is_missed(tmp_path: Path) -> None:
    plan = WholePlan(trials="", shards=(("a",), ("b",)), anchors=())
    one, other = fake.record("fakelib"), fake.record("fakemlir", "linalg")
    history = tmp_path / "history"
    for night, of_first in enumerate(([one, other], [one])):
        for number, records in ((1, of_first), (2, [fake.record("fakelib", chunk=64)])):
            History(history).add(night_of_shard(tmp_path, night, number, records, plan))
    gone = [event for event in find_events(History(history)) if event.fact == "measured"]
    assert [(event.subject, event.run) for event in gone] == [(other.trial, "night000-1-of-3")]


def test_a_whole_run_after_shards_misses_what_it_has_not(tmp_path: Path) -> None:
    plan = WholePlan(trials="", shards=(("a",), ("b",)), anchors=())
    one, other = fake.record("fakelib"), fake.record("fakemlir", "linalg")
    History(tmp_path / "history").add(night_of_shard(tmp_path, 0, 1, [one, other], plan))
    whole = fake.write_run(tmp_path / "whole", [one], started="2026-03-01T02:00:00+00:00", machine=made.MACHINE)
    History(tmp_path / "history").add(whole)
    gone = [event.subject for event in find_events(History(tmp_path / "history")) if event.fact == "measured"]
    assert gone == [other.trial]


def test_a_history_of_before_there_were_shards_is_read() -> None:
    """The committed history of releases has files without that column."""
    history = History(Path(__file__).parents[2] / "results" / "releases")
    assert history.sql("SELECT DISTINCT shard FROM rows").rows == ((None,),)
