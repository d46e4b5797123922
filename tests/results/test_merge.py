"""Shards are merged into one run: nothing missing, nothing doubled, and no figure of one machine beside another's."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import fake_records as fake
import fake_shards as made
import numpy as np
import pytest
from damaged_shards import DAMAGES, Damage, make_shards
from quick_tests import one_of_each_class

from rnnbench.disk import write_with_copy
from rnnbench.locks import locked_folder
from rnnbench.results import (
    Store,
    StoreError,
    compare_runs,
    merge,
    merge_shards,
    read_run,
    samples_file,
    save_samples,
    shard_folders,
    sound,
    split_by_machine,
    view_runs,
    write_merged,
)
from rnnbench.results.exports import EXPORTS
from rnnbench.results.identity import fingerprint
from rnnbench.results.journal import INFO, TRIALS
from rnnbench.results.merge import left_out_warnings
from rnnbench.results.samples import SAMPLE_COLUMNS
from rnnbench.results.shards import PLAN


def merged(folder, shards):
    return write_merged(merge_shards(shards), folder / "results").run


def test_each_trial_is_there_once_and_comes_from_the_shard_that_it_belongs_to(tmp_path):
    run = merged(tmp_path, made.make_shards(tmp_path))
    plan = made.the_plan()
    assert sorted(record.trial for record in run.records) == sorted(t for shard in plan.shards for t in shard)
    for record in run.records:
        number = run.part_of(record).info.shard.number
        assert record.trial in plan.own(number)
    assert run.warnings == ()
    assert run.info.cases == ("fake_case",)


def test_the_rows_have_the_anchors_of_every_shard_with_shard_run_and_machine(tmp_path):
    shards = [made.make_shard(tmp_path, n, machine=made.OTHER if n == 2 else made.ONE) for n in (1, 2, 3)]
    rows = merged(tmp_path, shards).rows()
    assert len(rows) == 9 + 3 * 2
    anchor = made.records_of(64)[0].trial
    of_anchor = {row["shard"]: (row["machine"], row["run"]) for row in rows if row["trial"] == anchor}
    machines = {"1/4": made.ONE, "2/4": made.OTHER, "3/4": made.ONE}
    assert of_anchor == {
        shard: (fingerprint(machine), f"2026013{shard[0]}T120000Z-fake_case-{shard[0]}-of-4")
        for shard, machine in machines.items()
    }


def test_a_shard_is_kept_byte_for_byte(tmp_path):
    shards = made.make_shards(tmp_path)
    run = merged(tmp_path, shards)
    for before, after in zip(shards, shard_folders(run.path), strict=True):
        for name in ("run.json", "records.jsonl", "shards.json"):
            assert (after / name).read_bytes() == (before / name).read_bytes()


def test_merging_again_changes_nothing_and_a_shard_that_went_on_replaces_its_older_state(tmp_path):
    shards = made.make_shards(tmp_path)
    short = tmp_path / "short"
    shutil.copytree(shards[1], short)
    lines = (short / "records.jsonl").read_text().splitlines(keepends=True)
    (short / "records.jsonl").write_text("".join(lines[:-1]))
    first = write_merged(merge_shards([shards[0], short, shards[2]]), tmp_path / "results")
    assert first.what == "merged"
    assert any("shard 2/4 lacks 1 trial" in warning for warning in first.run.warnings)
    second = write_merged(merge_shards([shards[2], shards[1], shards[0]]), tmp_path / "results")
    assert (second.what, second.run.path, second.run.warnings) == ("merged again", first.run.path, ())
    third = write_merged(merge_shards([first.run.path]), tmp_path / "results")
    assert third.what == "already merged"
    assert [path.name for path in (tmp_path / "results").iterdir()] == [first.run.path.name], "no parts are left"


@pytest.mark.parametrize("damage", ["cut", "empty", "gone"])
def test_a_torn_file_of_a_shard_is_merged_from_its_copy(tmp_path, damage):
    shards = made.make_shards(tmp_path)
    for name in (INFO, TRIALS, PLAN):
        if name == TRIALS:
            write_with_copy(shards[0] / TRIALS, b"[1, 2]")
        file = shards[0] / name
        whole = file.read_bytes()
        if damage == "gone" and name != INFO:  # Without its run.json, a folder is no run.
            file.unlink()
        else:
            file.write_bytes(b"" if damage == "empty" else whole[:-2])
    run = merged(tmp_path, shards)
    part = run.path / "shards" / "1-of-4"
    assert json.loads((part / TRIALS).read_text()) == [1, 2]
    again = merge_shards([run.path])
    assert [shard.warnings for shard in again.shards] == [(), (), ()]
    assert len(again.shards[0].records) == len(run.shards[0].records) > 0


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    """The folder of what `make_shards` makes, with its shards and the others."""
    folder = tmp_path_factory.mktemp("shards")
    return folder, *make_shards(folder)


@pytest.fixture
def shards_and_others(made_once, tmp_path):
    """A copy of them."""
    folder, shards, others = made_once
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    return [copy / path.relative_to(folder) for path in shards], {
        name: copy / path.relative_to(folder) for name, path in others.items()
    }


def kind(damage: Damage) -> tuple[str, str]:
    """What is made of a damaged file, and which file it is. `make test` has one damage of each kind."""
    return damage.outcome, damage.name.split()[0]


@pytest.mark.parametrize("damage", one_of_each_class(DAMAGES, kind), ids=lambda damage: damage.name)
def test_of_a_damaged_shard_nothing_is_merged_that_is_not_its_own(tmp_path, shards_and_others, damage):
    shards, others = shards_and_others
    own = {record.trial: record for record in read_run(shards[0]).records}
    damage.do(shards[0], others)
    if damage.outcome == "refused":
        with pytest.raises(StoreError):
            merge_shards(shards)
        return
    merging = merge_shards(shards)
    assert bool(merging.missing) == (damage.outcome == "missing")
    run = write_merged(merging, tmp_path / "results").run
    found = [record for part in run.shards if part.info.shard.number == 1 for record in part.records]
    assert all(record == own[record.trial] for record in found)
    assert (len(found) == len(own)) == (damage.outcome == "whole")
    again = write_merged(merge_shards([run.path, *shards[1:]]), tmp_path / "results")
    assert again.what == "already merged"


def _samples_of(record):
    """Three of them, around its median."""
    rows = np.zeros((3, len(SAMPLE_COLUMNS)))
    rows[:, SAMPLE_COLUMNS.index("seconds")] = record.latency("bound").median * np.array([1.0, 0.9, 1.2])
    return rows


def _with_samples(number, record):
    return fake.with_latencies(record, bound=fake.of_samples(record.latency("bound"), _samples_of(record)))


@pytest.mark.first(1)
@pytest.mark.parametrize("damage", ["swapped", "cut", "of no samples"])
def test_samples_that_are_not_those_of_their_record_are_left_out_and_named(tmp_path, damage):
    """As those of two trials in each other's place."""
    shards = made.make_shards(tmp_path, _with_samples)
    for shard in shards:
        for record in read_run(shard).records:
            save_samples(shard, record.trial[-8:], "bound", _samples_of(record))
    whole = merge_shards(shards)
    assert whole.foreign == frozenset()
    one, other = [samples_file(shards[0], record.trial[-8:], "bound") for record in read_run(shards[0]).records[1:3]]
    if damage == "swapped":
        content = one.read_bytes(), other.read_bytes()
        one.write_bytes(content[1])
        other.write_bytes(content[0])
    elif damage == "cut":
        for file in (one, other):
            file.write_bytes(file.read_bytes()[:-8])
    else:
        for file in (one, other):
            file.write_bytes(b"no array")
    merging = merge_shards(shards)
    assert merging.foreign == {one, other}
    assert [warning for warning in merging.warnings if "it was left out" in warning and ".npy" in warning]
    run = write_merged(merging, tmp_path / "results").run
    assert len(list(run.path.rglob("*.npy"))) == len(list(shards[0].parent.glob("*/samples/*.npy"))) - 2
    for record in run.records:
        if {samples_file(shards[0], record.trial[-8:], "bound")} & merging.foreign:
            with pytest.raises(StoreError, match="does not exist"):
                run.samples(record.trial)
        else:
            assert np.array_equal(run.samples(record.trial), _samples_of(record))
    assert write_merged(merge_shards([run.path, *shards[1:]]), tmp_path / "results").what == "already merged"


@pytest.mark.parametrize(("files", "last"), [(5, "why 4"), (6, "1 more file of samples left out in the same way")])
def test_what_is_left_out_is_named_up_to_a_number(files, last):
    told = list(left_out_warnings({Path(f"{number}.npy"): f"why {number}" for number in range(files)}))
    assert told[:5] == [f"why {number}" for number in range(5)]
    assert told[-1] == last


def test_a_shard_to_which_the_plan_gives_no_trial_is_left_out(tmp_path):
    shards, empty = made.make_shards(tmp_path), made.make_shard(tmp_path, 4)
    assert [shard.info.shard.number for shard in merge_shards([empty, *shards]).shards] == [1, 2, 3]
    with pytest.raises(StoreError, match="the shards are all empty"):
        merge_shards([empty])


def test_merging_again_removes_what_no_shard_has(tmp_path):
    shards = made.make_shards(tmp_path)
    run = merged(tmp_path, shards)
    stale = run.path / "stale.json"
    stale.write_text("{}")
    assert write_merged(merge_shards(shards), tmp_path / "results").what == "merged again"
    assert not stale.exists()


def test_what_is_missing_is_named(tmp_path):
    plan = made.the_plan()
    lost = plan.own(1)[0]
    first = made.make_shard(tmp_path, 1, lambda number, record: None if record.trial == lost else record)
    third = made.make_shard(tmp_path, 3)
    merging = merge_shards([first, third])
    assert len(merging.missing) == 2
    assert f"shard 1/4 lacks 1 trial: {lost}; continue it with: rnnbench run --resume {first.name}" in merging.missing
    check = made.make_shard(tmp_path / "check", 1, lambda number, record: None, case_files=("cases",))
    assert merge_shards([check]).missing[0].endswith("; check it again with --shard 1/4"), "no run goes on with a check"
    assert merging.missing[1].startswith(f"shard 2/4 is missing: 3 trials: {plan.own(2)[0]}")
    assert merging.missing[1].endswith("run it with --shard 2/4")
    run = write_merged(merging, tmp_path / "results").run
    assert set(merging.missing) <= set(run.warnings), "whoever reads an incomplete run is told"
    assert len(run.records) == 5


def test_an_anchor_that_another_shard_measured_does_not_stand_for_a_missing_one(tmp_path):
    run = merged(tmp_path, [made.make_shard(tmp_path, number) for number in (1, 3)])
    anchor_of_two = made.records_of(128)[0].trial
    assert anchor_of_two not in run.by_trial
    assert sum(row["trial"] == anchor_of_two for row in run.rows()) == 2


def test_a_damaged_line_is_named_and_its_trial_is_missing(tmp_path):
    shards = made.make_shards(tmp_path)
    file = shards[1] / "records.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], lines[1][:90] + "\n", *lines[2:]]))
    merging = merge_shards(shards)
    assert any(f"{file}:2" in warning for warning in merging.warnings)
    assert [sentence.split(":")[0] for sentence in merging.missing] == ["shard 2/4 lacks 1 trial"]


def test_shards_with_two_distributions_of_a_package_are_told_once(tmp_path):
    shards = [
        made.make_shard(tmp_path, number, versions={"onnxruntime": {name: "1.31.1"}})
        for number, name in ((1, "onnxruntime"), (2, "onnxruntime-gpu"))
    ]
    (told,) = [warning for warning in merged(tmp_path, shards).warnings if "different versions" in warning]
    assert told.endswith("of onnxruntime (onnxruntime): 1.31.1 in 1/4; 1.31.1 (onnxruntime-gpu) in 2/4")


def test_versions_that_differ_are_told_with_the_shards_that_have_them(tmp_path):
    versions = {"fakelib": {"fakelib-package": "1.3.0"}}
    shards = [
        made.make_shard(tmp_path, 1),
        made.make_shard(tmp_path, 2, versions=versions),
        made.make_shard(tmp_path, 3),
    ]
    run = merged(tmp_path, shards)
    assert (
        "the shards have different versions of fakelib-package (fakelib): 1.2.3 in 1/4, 3/4; 1.3.0 in 2/4"
        in run.warnings
    )
    assert run.info.versions["fakelib"] == {"fakelib-package": "1.2.3 and 1.3.0"}


@pytest.mark.parametrize("other", ["trials", "of", "settings"])
def test_shards_of_different_plans_are_refused_with_what_differs(tmp_path, other):
    plan = made.the_plan()
    unlike = {
        "trials": plan.model_copy(update={"shards": (*plan.shards[:2], (*plan.shards[2], "fake_case/more"), ())}),
        "of": plan.model_copy(update={"shards": plan.shards[:3]}),
        "settings": made.the_plan("0" * 64),
    }[other]
    told = {"trials": "fake_case/more", "of": "one of 4 shards, and one of 3", "settings": "with other limits"}[other]
    with pytest.raises(StoreError, match="are shards of different plans") as error:
        merge_shards([made.make_shard(tmp_path, 1), made.make_shard(tmp_path, 2, plan=unlike)])
    assert told in str(error.value)


def test_a_shard_that_was_measured_twice_is_refused(tmp_path):
    first, started = made.make_shard(tmp_path, 1), "2026-02-01T00:00:00+00:00"
    for name, changes in {"seed": {"seed": 99}, "start": {"started": started}}.items():
        again = made.make_shard(tmp_path / name, 1, **changes)
        with pytest.raises(StoreError, match="shard 1/4 is there twice, measured at two times"):
            merge_shards([first, again])


def test_a_run_of_a_whole_plan_is_no_shard(tmp_path):
    whole = fake.write_run(tmp_path / "whole", made.records_of(64))
    with pytest.raises(StoreError, match="is the run of a whole plan, not of a shard"):
        merge_shards([whole])


def test_records_of_another_shard_are_refused(tmp_path):
    shard = made.make_shard(tmp_path, 1)
    stranger = made.records_of(128)[1]
    with (shard / "records.jsonl").open("a") as file:
        file.write(stranger.model_dump_json() + "\n")
    with pytest.raises(StoreError, match="has 1 record of trials that shard 1/4 does not run"):
        merge_shards([shard])


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"trials": "x", "shards": [["a"]], "anchors": []}', '{"trials": 3, "shards": 4, "anchors": 5}'],
)
def test_a_plan_that_is_damaged_or_of_another_run_is_refused(tmp_path, content):
    shard = made.make_shard(tmp_path, 1)
    (shard / "shards.json").write_text(content)
    (shard / "shards.json.copy").unlink()
    with pytest.raises(StoreError, match=r"shards\.json.*restore"):
        merge_shards([shard])


def test_of_an_edited_plan_the_copy_is_read_and_merged(tmp_path):
    shards = made.make_shards(tmp_path)
    plan = (shards[0] / "shards.json").read_bytes()
    edited = plan.replace(b'"trials":"f', b'"trials":"e')
    assert edited != plan
    (shards[0] / "shards.json").write_bytes(edited)
    merging = merge_shards(shards)
    assert merging.warnings[0].endswith("shards.json: torn or edited; shards.json.copy was read instead")
    run = write_merged(merging, tmp_path / "results").run
    assert [(folder / "shards.json").read_bytes() for folder in shard_folders(run.path)] == [plan] * 3
    assert merge_shards([run.path]).plan.digest == run.info.merged.plan


@pytest.mark.parametrize("number", [0, -1, 5, 10**9])
def test_a_shard_number_that_the_plan_does_not_have_is_refused(tmp_path, number):
    shard = made.make_shard(tmp_path, 1)
    info = json.loads((shard / "run.json").read_text())
    info["shard"]["number"] = number
    (shard / "run.json").write_text(json.dumps(info))
    with pytest.raises(StoreError, match="restore both files"):
        merge_shards([shard])


@pytest.mark.parametrize("numbers", [[], [1, 1], [0], [5]])
def test_a_merged_run_that_names_no_shard_or_one_twice_is_refused(tmp_path, numbers):
    run = merged(tmp_path, made.make_shards(tmp_path))
    info = json.loads((run.path / "run.json").read_text())
    info["merged"]["numbers"] = numbers
    (run.path / "run.json").write_text(json.dumps(info))
    with pytest.raises(StoreError, match="restore both files"):
        read_run(run.path)


def test_a_merged_run_with_another_shard_in_the_place_of_one_is_refused(tmp_path):
    run = merged(tmp_path, made.make_shards(tmp_path))
    second = run.path / "shards" / "2-of-4"
    shutil.rmtree(second)
    shutil.copytree(run.path / "shards" / "1-of-4", second)
    with pytest.raises(StoreError, match="is not shard 2/4 of the plan; merge the shards again"):
        read_run(run.path)


def test_a_merged_run_that_lost_a_shard_says_where_it_was(tmp_path):
    run = merged(tmp_path, made.make_shards(tmp_path))
    shutil.rmtree(run.path / "shards" / "2-of-4")
    with pytest.raises(StoreError, match="2-of-4 is not a run: it does not exist"):
        read_run(run.path)


@pytest.mark.parametrize("started", ["yesterday", "0001-01-01T00:00:00+23:00"])
def test_a_start_that_is_no_time_is_refused(tmp_path, started):
    with pytest.raises(StoreError, match="is no time in ISO 8601"):
        merged(tmp_path, [made.make_shard(tmp_path, 1, started=started)])


def test_a_full_disk_leaves_what_was_there_and_no_parts(tmp_path, monkeypatch):
    shards = made.make_shards(tmp_path)
    first = write_merged(merge_shards(shards[:2]), tmp_path / "results").run
    before = {path: path.read_bytes() for path in first.path.rglob("*") if path.is_file()}

    def full(source, target):
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    with monkeypatch.context() as patch:
        patch.setattr("rnnbench.results.merge.copy", full)
        with pytest.raises(StoreError, match=f"cannot write to {first.path}: No space left on device"):
            write_merged(merge_shards(shards), tmp_path / "results", first.path)
    assert {path: path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()} == before


def test_a_file_of_a_shard_that_the_disk_does_not_give_is_told_as_such(tmp_path, monkeypatch):
    shards = made.make_shards(tmp_path)
    merging = merge_shards(shards)

    def broken(source, target):
        raise OSError(errno.EIO, "Input/output error", str(source))

    monkeypatch.setattr(
        "rnnbench.results.merge.copy", lambda *files: broken(*files) if PLAN not in str(files) else None
    )
    with pytest.raises(StoreError, match=rf"{shards[0]}/records\S* cannot be read: Input/output error; its disk is"):
        write_merged(merging, tmp_path / "results")


def test_a_plan_that_the_disk_does_not_give_is_told_and_the_copy_merged(tmp_path, monkeypatch):
    shards = made.make_shards(tmp_path)

    def broken(path):
        if path == shards[1] / PLAN:
            raise OSError(errno.EIO, "Input/output error")
        return path.read_bytes()

    monkeypatch.setattr("rnnbench.disk.read_plain", broken)
    told = f"{shards[1] / PLAN}: cannot be read: Input/output error; shards.json.copy was read instead"
    assert told in merge_shards(shards).warnings


@pytest.mark.parametrize("at_once", [True, False])
def test_a_merge_that_is_killed_at_any_rename_leaves_a_run_or_says_where_it_is(tmp_path, monkeypatch, at_once):
    shards = made.make_shards(tmp_path)
    place = write_merged(merge_shards(shards[:2]), tmp_path / "results").run.path
    replaced = Path.rename, merge.exchange

    class KilledError(BaseException):
        pass

    def killed_after(rename):
        def killed(*paths):
            if rename(*paths):
                raise KilledError
            return False

        return killed

    monkeypatch.setattr(Path, "rename", killed_after(replaced[0]))
    monkeypatch.setattr(merge, "exchange", killed_after(replaced[1] if at_once else lambda *_: False))
    monkeypatch.setattr(merge, "remove_folder", lambda _: None)
    with pytest.raises(KilledError):
        write_merged(merge_shards(shards), tmp_path / "results", place)
    store = Store(tmp_path / "results")
    if at_once:
        assert len(store.read(place.name).shards) == 3
    else:
        for read in (lambda: store.read(place.name), lambda: read_run(place)):
            with pytest.raises(StoreError, match=r"\.before: a run that .* was replacing .* its name again"):
                read()
        with pytest.raises(StoreError, match=r"no run is the latest: .*\.before: a run that .* was replacing"):
            store.read("latest")
        fake.write_run(tmp_path / "results" / "20200101T000000Z-other", [])
        assert "was replacing" in store.left_out("latest")[0]


def test_a_run_that_cannot_be_put_in_its_place_leaves_what_was_there(tmp_path, monkeypatch):
    shards = made.make_shards(tmp_path)
    first = write_merged(merge_shards(shards[:2]), tmp_path / "results").run
    before = {path: path.read_bytes() for path in first.path.rglob("*") if path.is_file()}
    rename = Path.rename
    monkeypatch.setattr(merge, "exchange", lambda *_: False)

    def broken(path, target):
        if path.suffix == ".part":
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", broken)
        with pytest.raises(StoreError, match="Input/output error"):
            write_merged(merge_shards(shards), tmp_path / "results", first.path)
    assert {path: path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()} == before


def test_a_merged_run_that_names_itself_as_a_shard_is_refused_and_not_read_for_ever(tmp_path):
    run = merged(tmp_path, made.make_shards(tmp_path))
    inner = run.path / "shards" / "1-of-4"
    shutil.rmtree(inner)
    inner.symlink_to(run.path)
    with pytest.raises(StoreError, match="merge the shards again"):
        read_run(run.path)


def test_a_link_in_a_shard_is_not_followed(tmp_path):
    secret = tmp_path / "secret.npy"
    secret.write_text("secret")
    shards = made.make_shards(tmp_path)
    (shards[0] / "samples").mkdir()
    (shards[0] / "samples" / "a.npy").symlink_to(secret)
    run = merged(tmp_path, shards)
    assert "secret" not in "".join(p.read_text() for p in run.path.rglob("*") if p.is_file())


def test_another_run_in_the_place_is_kept(tmp_path):
    shards = made.make_shards(tmp_path)
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "notes").write_text("mine")
    with pytest.raises(StoreError, match="is there already"):
        write_merged(merge_shards(shards), tmp_path, taken)
    with pytest.raises(StoreError, match="is there already"):
        write_merged(merge_shards(shards), tmp_path, shards[0])
    assert (taken / "notes").read_text() == "mine"
    assert read_run(shards[0]).info.shard is not None


def test_what_another_process_puts_in_the_place_meanwhile_is_kept(tmp_path, monkeypatch):
    other = fake.write_run(tmp_path / "other", [])
    place, fill = tmp_path / "whole", merge._fill

    def filled(*arguments):
        fill(*arguments)
        shutil.copytree(other, place)

    monkeypatch.setattr(merge, "_fill", filled)
    with pytest.raises(StoreError, match="is there already"):
        write_merged(merge_shards(made.make_shards(tmp_path / "shards")), tmp_path, place)
    assert read_run(place).info == read_run(other).info
    assert not list(tmp_path.glob(".*"))


def test_a_link_to_a_merged_run_stays_a_link(tmp_path):
    shards = made.make_shards(tmp_path / "shards")
    (tmp_path / "whole").symlink_to(tmp_path / "elsewhere" / "run")
    for some, what in ((shards[:2], "merged"), (shards, "merged again"), (shards, "already merged")):
        assert write_merged(merge_shards(some), tmp_path, tmp_path / "whole").what == what
    assert (tmp_path / "whole").is_symlink()
    assert len(read_run(tmp_path / "elsewhere" / "run").shards) == 3
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["run"]


def test_what_a_killed_merge_left_is_removed_by_the_next_one_and_nothing_of_a_living_one(tmp_path):
    results = tmp_path / "results"
    names = {name: results / f".run.{name}.part" for name in ("0" * 16, "1" * 16, "2" * 16, "notes")}
    killed, living, young, foreign = names.values()
    for part in (killed, living, young, foreign):
        (part / "shards").mkdir(parents=True)
    for part in (killed, living, foreign):
        os.utime(part, (0, 0))
    with locked_folder(living):
        run = merged(tmp_path, made.make_shards(tmp_path / "shards"))
    assert {*results.iterdir()} == {living, young, foreign, run.path}


def test_a_merged_run_comes_after_its_shards_in_a_folder_of_runs(tmp_path):
    store = Store(tmp_path)
    shards = [made.make_shard(tmp_path, number, started="2026-01-31T12:00:00+00:00") for number in (1, 2, 3)]
    for number, shard in enumerate(shards, start=1):
        shard.rename(tmp_path / f"20260131T120000Z-fake_case-{number}-of-4")
    run = write_merged(merge_shards(sorted(tmp_path.iterdir())), tmp_path).run
    assert store.resolve("latest").name == run.path.name == "20260131T120000Z-fake_case-merged"


def two_machines(folder):
    shards = [made.make_shard(folder, n, machine=made.OTHER if n == 2 else made.ONE) for n in (1, 2, 3)]
    return merged(folder, shards)


def test_records_of_two_machines_are_in_no_view_together(tmp_path):
    run = two_machines(tmp_path)
    with pytest.raises(StoreError, match="come from different machines"):
        view_runs([run])
    parts = split_by_machine(run)
    assert [[part.info.shard.number for part in each.parts] for each in parts] == [[1, 3], [2]]
    views = [view_runs([each]) for each in parts]
    assert [{entry.record.params.model["hidden"] for entry in view.entries} for view in views] == [{64, 256}, {128}]
    assert any("come from different machines" in warning for warning in run.warnings)


def test_one_machine_is_one_view_in_which_an_anchor_is_that_of_its_own_shard(tmp_path):
    def slower_elsewhere(number, record):
        """An anchor is three times as slow in shards that it does not belong to."""
        if record.trial in made.the_plan().own(number):
            return record
        return fake.with_latencies(record, bound=fake.latency(9.0))

    run = merged(tmp_path, made.make_shards(tmp_path, slower_elsewhere))
    view = view_runs([run])
    assert len(view.entries) == 9
    assert all(entry.bound.median < 1 for entry in view.entries)
    assert split_by_machine(run) == (run,)


def test_a_trial_that_moved_to_another_machine_has_no_verdict(tmp_path):
    base = merged(tmp_path, made.make_shards(tmp_path / "base"))
    new = two_machines(tmp_path / "new")
    comparison = compare_runs(base, new)
    hidden = {change.trial.split("/h")[1].split("-")[0] for change in comparison.latencies}
    assert hidden == {"64", "256"}, "those of 128 ran on the other machine"
    assert "3 trials ran on two machines" in comparison.warnings[0]
    assert {cost.trial for cost in comparison.costs} <= {change.trial for change in comparison.latencies}
    across = compare_runs(base, new, across_machines=True)
    assert len(across.latencies) == 18
    assert across.two_machines


def test_runs_without_a_machine_in_common_are_not_compared(tmp_path):
    base = merged(tmp_path, made.make_shards(tmp_path / "base"))
    new = merged(tmp_path / "new", made.make_shards(tmp_path / "new", machine=made.OTHER))
    with pytest.raises(StoreError, match="different machines"):
        compare_runs(base, new)


@pytest.mark.parametrize("name", ["pyperf", "pytest-benchmark", "bencher", "github-action-benchmark"])
def test_a_format_of_one_machine_refuses_the_figures_of_two(tmp_path, name):
    run = two_machines(tmp_path)
    with pytest.raises(StoreError, match=f"has figures of 2 machines, and a file in the format {name} is of one"):
        EXPORTS[name].write(run, None)


def test_openmetrics_and_asv_keep_the_machines_apart(tmp_path):
    run = two_machines(tmp_path)
    with (tmp_path / "metrics").open("w") as file:
        EXPORTS["openmetrics"].write(run, file)
    lines = [line for line in (tmp_path / "metrics").read_text().splitlines() if line.startswith("rnnbench_trial_info")]
    by_machine = {
        fingerprint(machine): [line for line in lines if fingerprint(machine) in line]
        for machine in (made.ONE, made.OTHER)
    }
    assert [len(of) for of in by_machine.values()] == [6, 3]
    assert all("/h128-" in line for line in by_machine[fingerprint(made.OTHER)])
    EXPORTS["asv"].write(run, tmp_path / "asv")
    results = {
        path.parent.name: json.loads(path.read_text())["results"]
        for path in (tmp_path / "asv/results").glob("*/*-rnnbench.json")
    }
    assert {machine: all("h128-" in name for name in of) for machine, of in results.items()} == {
        fingerprint(made.ONE): False,
        fingerprint(made.OTHER): True,
    }


def test_impossible_figures_of_a_shard_are_left_out(tmp_path):
    def impossible(number, record):
        if number == 2 and record.backend == "fakelib":
            return fake.with_latencies(record, bound=record.latency("bound").model_copy(update={"median": -1.0}))
        return record

    (run,), warnings = sound([merged(tmp_path, made.make_shards(tmp_path, impossible))])
    assert len(warnings) == 1
    broken = next(
        record for record in run.records if record.backend == "fakelib" and record.params.model["hidden"] == 128
    )
    assert broken.latency("bound") is None
    assert run.part_of(broken).info.shard.number == 2


def test_what_shards_have_in_common_is_that_of_all(tmp_path):
    def content(number):
        at = f"2026-01-31T12:00:0{number}+00:00"
        of_case = {f"case_{number}": {"latency": number / 100}}
        return {
            "started": at,
            "finished": at.replace("12:00", f"13:0{4 - number}"),
            "cases": (f"case_{number}",),
            "seconds": {"total": number, "build": 1.0},
            "thresholds": of_case,
        }

    run = merged(tmp_path, [made.make_shard(tmp_path, number, **content(number)) for number in (1, 2, 3)])
    assert (run.info.started, run.info.finished) == ("2026-01-31T12:00:01+00:00", "2026-01-31T13:03:01+00:00")
    assert run.info.cases == ("case_1", "case_2", "case_3")
    assert run.info.seconds == {"total": 6.0, "build": 3.0}
    assert run.info.thresholds == {f"case_{number}": {"latency": number / 100} for number in (1, 2, 3)}
    assert run.path.name.startswith("20260131T120003Z-"), "as the shard that began last"
    assert run.info.merged.numbers == (1, 2, 3)


def test_shards_that_are_not_numbered_from_one_keep_their_numbers(tmp_path):
    run = merged(tmp_path, [made.make_shard(tmp_path, number) for number in (2, 3)])
    assert run.info.merged.numbers == (2, 3)


def test_what_was_merged_of_another_plan_is_kept(tmp_path):
    place = tmp_path / "merged"
    write_merged(merge_shards(made.make_shards(tmp_path / "one")), tmp_path, place)
    other = [made.make_shard(tmp_path / "other", number, plan=made.the_plan("0" * 64)) for number in (1, 2, 3)]
    with pytest.raises(StoreError, match="is there already, and is not what was merged of these shards"):
        write_merged(merge_shards(other), tmp_path, place)


def test_of_two_states_with_as_many_trials_the_one_that_ended_counts(tmp_path):
    shards = made.make_shards(tmp_path)
    before = tmp_path / "before"
    shutil.copytree(shards[0], before)
    for file in before.glob("run.json*"):
        file.write_text(json.dumps({**json.loads(file.read_text()), "finished": None}))
    for order in ([before, *shards], [*shards, before]):
        assert merge_shards(order).shards[0].info.finished is not None


def test_two_interpreters_are_in_no_view_together(tmp_path):
    machines = [{**made.ONE, "python": f"3.{11 + n // 3}"} for n in (1, 2, 3)]
    run = merged(tmp_path, [made.make_shard(tmp_path, n, machine=machines[n - 1]) for n in (1, 2, 3)])
    assert [[part.info.shard.number for part in each.parts] for each in split_by_machine(run)] == [[1, 2], [3]]
    assert "the shards have different versions of Python: 3.11 in 1/4, 2/4; 3.12 in 3/4" in run.warnings


def test_a_missing_anchor_of_another_shard_is_named(tmp_path):
    anchor = made.records_of(128)[0].trial
    first = made.make_shard(tmp_path, 1, lambda number, record: None if record.trial == anchor else record)
    (missing,) = merge_shards([first, *(made.make_shard(tmp_path, number) for number in (2, 3))]).missing
    assert missing.startswith(f"shard 1/4 lacks 1 trial: {anchor}")


def test_trials_that_changed_their_machines_are_of_two_machines_though_both_runs_have_the_same_two(tmp_path):
    runs = [
        merged(folder, [made.make_shard(folder, n, machine=made.OTHER if n == other else made.ONE) for n in (1, 2, 3)])
        for folder, other in ((tmp_path / "base", 2), (tmp_path / "new", 1))
    ]
    across = compare_runs(*runs, across_machines=True)
    assert across.two_machines
    assert "slower" not in across.fail_on
