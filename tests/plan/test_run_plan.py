"""A run's plan is in its folder. The trials that are left are those without a record."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import signal
from pathlib import Path

import pytest
from harness_trials import expected_failure, make_trial

from rnnbench.content_digest import DIGEST
from rnnbench.disk import copy_of, write_with_copy
from rnnbench.pipeline import not_checked, not_sampled, record_of
from rnnbench.plan import begin_run, end_run, examine, plan_files, resume_run
from rnnbench.plan.plan_files import EXPECTED_FAILURES, TRIALS
from rnnbench.plan.run_lock import LOCK, hold_run
from rnnbench.results import Store, StoreError, read_run
from rnnbench.results.compressed import COMPRESSED, compress_records
from rnnbench.results.journal import INFO, RECORDS, append_record, write_info

KNOWN = expected_failure(route=("honest",))


def test_a_new_run_has_all_of_its_trials_left(tmp_path):
    trials = (make_trial(chunk=1), make_trial(chunk=4))
    plan = begin_run(trials, Store(tmp_path))
    assert plan.trials == trials
    assert resume_run(plan.folder) == plan
    info = read_run(plan.folder).info
    assert info.cases == ("harness",)
    assert info.seed == plan.seed
    assert info.versions == {"fake": {"rnnbench-fake": "1.0"}}
    assert info.finished is None


def test_arguments_that_are_no_utf_8_are_kept_as_far_as_a_file_can_hold_them(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["rnnbench", "run", os.fsdecode(b"b\xffse.yaml")])
    plan = begin_run([make_trial()], Store(tmp_path))
    assert read_run(plan.folder).info.command == ("rnnbench", "run", "b\N{REPLACEMENT CHARACTER}se.yaml")


def test_a_resumed_run_leaves_out_trials_that_have_a_record(tmp_path):
    done, left = make_trial(chunk=1), make_trial(chunk=4)
    plan = begin_run([done, left], Store(tmp_path))
    append_record(plan.folder, record_of(not_sampled(not_checked(examine(done)))))
    assert resume_run(plan.folder).trials == (left,)


def test_a_trial_whose_record_is_damaged_is_run_again(tmp_path):
    trials = [make_trial(chunk=chunk) for chunk in (1, 2, 4)]
    folder = begin_run(trials, Store(tmp_path)).folder
    for trial in trials:
        append_record(folder, record_of(not_sampled(not_checked(examine(trial)))))
    lines = (folder / RECORDS).read_bytes().split(b"\n")
    (folder / RECORDS).write_bytes(b"\n".join([lines[0], lines[1].replace(b'"params"', b'"p\0rams"'), *lines[2:]]))
    assert resume_run(folder).trials == (trials[1],)


@pytest.mark.parametrize("is_compressed", [False, True], ids=["no records", "cut"])
def test_a_run_whose_records_are_not_read_to_their_end_is_not_resumed(tmp_path, monkeypatch, is_compressed):
    """A record that is added would not be found, so its trial would be run in vain."""
    monkeypatch.setattr("rnnbench.results.records_file.MOST_DAMAGED", 2)
    trials = [make_trial(chunk=chunk) for chunk in (1, 2)]
    folder = begin_run(trials, Store(tmp_path)).folder
    append_record(folder, record_of(not_sampled(not_checked(examine(trials[0])))))
    if is_compressed:
        pytest.importorskip("zstandard")
        compress_records(folder)
        (folder / COMPRESSED).write_bytes((folder / COMPRESSED).read_bytes()[:-20])
    else:
        (folder / RECORDS).write_bytes((folder / RECORDS).read_bytes() + b"\n\n\n")
    with pytest.raises(StoreError, match="restore the file, or move it away to run all trials again"):
        resume_run(folder)


def test_expected_failures_are_part_of_the_plan(tmp_path):
    trial = make_trial()
    plan = begin_run([trial], Store(tmp_path), {"harness": [KNOWN]})
    assert list(plan.expected_of(trial)) == [KNOWN]
    assert list(resume_run(plan.folder).expected_of(trial)) == [KNOWN]


def test_seconds_add_up_over_the_sittings_of_a_run(tmp_path):
    folder = begin_run([make_trial()], Store(tmp_path)).folder
    end_run(folder, {"total": 3.0, "build": 1.0})
    end_run(folder, {"total": 4.0, "check": 2.0})
    info = read_run(folder).info
    assert info.seconds == {"total": 7.0, "build": 1.0, "check": 2.0}
    assert info.finished is not None


def test_an_ended_run_knows_how_many_trials_had_a_record(tmp_path):
    trials = [make_trial(chunk=chunk) for chunk in (1, 2)]
    folder = begin_run(trials, Store(tmp_path)).folder
    assert read_run(folder).info.records is None
    for count, trial in enumerate(trials, 1):
        append_record(folder, record_of(not_sampled(not_checked(examine(trial)))))
        end_run(folder, {})
        assert read_run(folder).info.records == count


@pytest.mark.parametrize("name", [TRIALS, EXPECTED_FAILURES])
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_text(json.dumps([{"case": 1}])),
        lambda path: path.write_text("[" * 100_000),
    ],
    ids=["gone", "bad", "deep"],
)
def test_a_run_whose_plan_cannot_be_read_is_not_resumed_and_the_message_names_the_file(tmp_path, damage, name):
    folder = begin_run([make_trial()], Store(tmp_path)).folder
    damage(folder / name)
    damage(copy_of(folder / name))
    with pytest.raises(StoreError, match=name):
        resume_run(folder)


@pytest.mark.parametrize("name", [INFO, TRIALS, EXPECTED_FAILURES])
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-3]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(bytes(path.stat().st_size)),
    ],
    ids=["torn", "empty", "zeros"],
)
def test_a_torn_file_of_a_plan_is_written_again_from_its_copy_and_the_run_goes_on(tmp_path, damage, name):
    trial = make_trial()
    folder = begin_run([trial], Store(tmp_path), {trial.case: ()}).folder
    before = (folder / name).read_bytes()
    damage(folder / name)
    resumed = resume_run(folder)
    assert resumed.trials == (trial,)
    assert resumed.changes == (f"{name} was damaged, edited or gone, and was written again from {name}.copy",)
    assert (folder / name).read_bytes() == before


def test_a_torn_file_of_a_plan_that_cannot_be_written_again_raises_a_sentence(tmp_path, monkeypatch):
    folder = begin_run([make_trial()], Store(tmp_path)).folder
    (folder / TRIALS).write_bytes(b"")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(plan_files, "write_bytes", full)
    with pytest.raises(StoreError, match="No space left on device"):
        resume_run(folder)


def test_an_edited_file_of_a_plan_is_written_again_from_its_copy_or_named(tmp_path):
    """A flipped bit makes another trial, or another failure that is expected."""
    trial = make_trial()
    folder = begin_run([trial], Store(tmp_path), {trial.case: (KNOWN,)}).folder
    for name, old, new in ((TRIALS, b'"batch":1', b'"batch":3'), (EXPECTED_FAILURES, b"Known.", b"Knowm.")):
        before = (folder / name).read_bytes()
        edited = before.replace(old, new)
        assert edited != before
        (folder / name).write_bytes(edited)
        assert resume_run(folder).changes == (
            f"{name} was damaged, edited or gone, and was written again from {name}.copy",
        )
        assert (folder / name).read_bytes() == before
        write_with_copy(folder / name, edited)
        with pytest.raises(StoreError, match=f"{name}: (has other trials|not as it was written: damaged, or edited)"):
            resume_run(folder)
        write_with_copy(folder / name, before)
    assert list(resume_run(folder).expected_of(trial)) == [KNOWN]


def test_expected_failures_of_an_earlier_rnnbench_are_read(tmp_path):
    """It wrote no digest."""
    trial = make_trial()
    folder = begin_run([trial], Store(tmp_path), {trial.case: (KNOWN,)}).folder
    content = json.loads((folder / EXPECTED_FAILURES).read_text())
    del content[DIGEST]
    write_with_copy(folder / EXPECTED_FAILURES, json.dumps(content).encode())
    assert list(resume_run(folder).expected_of(trial)) == [KNOWN]


def test_what_cannot_be_read_at_all_is_named_as_that_and_not_as_unwritable(tmp_path):
    folder = begin_run([make_trial()], Store(tmp_path)).folder
    for path in (folder / TRIALS, copy_of(folder / TRIALS)):
        path.unlink()
        path.mkdir()
    with pytest.raises(StoreError, match=r"trials\.json: cannot be read"):
        resume_run(folder)


def test_a_run_whose_run_json_is_torn_is_read_from_its_copy_with_a_warning(tmp_path):
    folder = begin_run([make_trial()], Store(tmp_path)).folder
    info = read_run(folder).info
    (folder / INFO).write_bytes((folder / INFO).read_bytes()[:-20])
    torn = (folder / INFO).read_bytes()
    read = read_run(folder)
    assert read.info == info
    assert "run.json: torn or edited; run.json.copy was read instead" in read.warnings[0]
    assert (folder / INFO).read_bytes() == torn


def test_a_torn_plan_without_a_copy_is_a_sentence_and_no_other_file_of_the_run_changes(tmp_path):
    folder = begin_run([make_trial()], Store(tmp_path)).folder
    (folder / TRIALS).write_bytes((folder / TRIALS).read_bytes()[:-20])
    copy_of(folder / TRIALS).unlink()
    before = {path.name for path in folder.iterdir()}
    with pytest.raises(StoreError, match="cannot be read, so the run cannot be resumed; start a new one"):
        resume_run(folder)
    assert {path.name for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("old", "settings"),
    [
        ({"cold": True, "period": None}, {"cold": 1.0}),
        ({"cold": False, "period": 0.01}, {"period": 0.01}),
        ({"cold": True, "period": 0.01}, {"cold": 1.0, "period": 0.01}),
        ({"cold": False, "period": None}, {}),
    ],
)
def test_the_plan_of_an_older_version_keeps_its_settings(tmp_path, old, settings):
    folder = begin_run([make_trial()], Store(tmp_path)).folder
    (content,) = json.loads((folder / TRIALS).read_text())
    del content["measure"]["settings"]
    content["measure"].update(old)
    (folder / TRIALS).write_text(json.dumps([content]))
    write_info(folder, read_run(folder).info.model_copy(update={"trials": None}))
    (trial,) = resume_run(folder).trials
    assert trial.measure.settings == settings


@pytest.mark.parametrize("where", ["measure", "limits", "strategy", ""])
def test_a_setting_that_this_version_does_not_know_is_refused_and_named(tmp_path, where):
    folder = begin_run([make_trial()], Store(tmp_path)).folder
    (content,) = json.loads((folder / TRIALS).read_text())
    (content[where] if where else content)["swing"] = 3
    write_with_copy(folder / TRIALS, json.dumps([content]).encode())
    name = f"{where}.swing".removeprefix(".")
    with pytest.raises(StoreError, match=rf"trials.json: this rnnbench does not know '{name}', so the run cannot be"):
        resume_run(folder)


def test_a_network_whose_package_is_gone_is_named(tmp_path):
    folder = begin_run([make_trial()], Store(tmp_path)).folder
    (content,) = json.loads((folder / TRIALS).read_text())
    content["model"] = {"network": "gone", "hidden": 8}
    write_with_copy(folder / TRIALS, json.dumps([content]).encode())
    with pytest.raises(StoreError, match=r"trials.json: cannot be read: .*no installed package has the network 'gone'"):
        resume_run(folder)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_a_plan_with_a_number_that_is_none_is_not_resumed(tmp_path, number):
    """The plan of an earlier version has no digest, and may have been edited."""
    folder = begin_run([make_trial()], Store(tmp_path)).folder
    write_info(folder, read_run(folder).info.model_copy(update={"trials": None}))
    content = json.loads((folder / TRIALS).read_bytes())
    content[0]["limits"]["build"] = "the limit"
    write_with_copy(folder / TRIALS, json.dumps(content).replace('"the limit"', number).encode())
    with pytest.raises(StoreError, match=r"trials\.json: cannot be read, so the run cannot be resumed"):
        resume_run(folder)


def test_the_trials_of_another_run_are_not_run_in_this_one(tmp_path):
    """Or its trials in that one, where its `run.json` lies in the place of the run's own."""
    folders = [begin_run([make_trial(chunk=chunk)], Store(tmp_path)).folder for chunk in (1, 2)]
    own, other = folders
    before = {name: (own / name).read_bytes() for name in (INFO, TRIALS)}
    for name in (INFO, TRIALS):
        write_with_copy(own / name, (other / name).read_bytes())
        with pytest.raises(StoreError, match=r"trials.json: has other trials than the run was begun with; restore it"):
            resume_run(own)
        write_with_copy(own / name, before[name])
    assert len(resume_run(own).trials) == 1


def test_a_check_is_not_gone_on_with_as_a_run(tmp_path):
    """A run times its trials. Those that were checked have no times."""
    folder = begin_run([make_trial()], Store(tmp_path), case_files=[Path("cases")]).folder
    with pytest.raises(StoreError, match="is a run of `rnnbench check`"):
        resume_run(folder)


def test_a_side_of_a_comparison_says_so_from_its_beginning(tmp_path):
    folder = begin_run([make_trial()], Store(tmp_path), side="a").folder
    assert (read_run(folder).info.side, folder.name[-2:]) == ("a", "-a")
    with pytest.raises(StoreError, match="is side A of a comparison"):
        resume_run(folder)


def test_what_is_not_as_it_was_when_the_run_began_is_said(tmp_path):
    folder = begin_run([make_trial()], Store(tmp_path)).folder
    assert resume_run(folder).changes == ()
    info = read_run(folder).info
    machine = {**info.machine, "cpu": "Z80", "load": 1e3}
    other = {"rnnbench": "0.0.1", "versions": {"fake": {"rnnbench-fake": "0.9"}}, "machine": machine}
    write_info(folder, info.model_copy(update=other))
    changes = " / ".join(resume_run(folder).changes)
    assert "fake.rnnbench-fake is 1.0, and was 0.9 when the run began" in changes
    assert "rnnbench is " in changes
    assert "the machine's cpu is " in changes
    assert "was Z80" in changes
    assert "load" not in changes, "it is never the same"
    on_a_cluster = " / ".join(resume_run(folder, elsewhere=True).changes)
    assert "fake.rnnbench-fake is 1.0" in on_a_cluster
    assert "the machine's" not in on_a_cluster, "this one measures nothing"


def test_two_runs_of_one_second_have_a_folder_each(tmp_path):
    folders = {begin_run([make_trial()], Store(tmp_path)).folder for _ in range(4)}
    assert len(folders) == 4
    assert all(read_run(folder).info.run == folder.name for folder in folders)


@pytest.mark.parametrize("writes", range(6))
def test_a_plan_that_cannot_be_written_raises_a_sentence_and_leaves_no_folder(tmp_path, monkeypatch, writes):
    """Each of the three files has a copy."""
    synced = []

    def full(descriptor):
        synced.append(descriptor)
        if len(synced) > writes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        begin_run([make_trial()], Store(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("writes", range(6))
def test_a_kill_while_a_run_begins_leaves_no_folder_that_a_command_takes_for_a_run(tmp_path, monkeypatch, writes):
    """What it leaves is hidden, and the next run removes it once it is old."""
    store = Store(tmp_path)
    if (child := os.fork()) == 0:
        synced = itertools.count()
        monkeypatch.setattr(os, "fsync", lambda _: next(synced) < writes or os.kill(os.getpid(), signal.SIGKILL))
        begin_run([make_trial()], store)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert store.begun() == [left]
    assert store.runs() == []
    with pytest.raises(StoreError, match="so none is the latest"):
        store.resolve("latest")
    begin_run([make_trial()], store)
    assert left.exists()
    os.utime(left, (0, 0))
    begin_run([make_trial()], store)
    assert store.begun() == []
    assert len(store.runs()) == 2


def test_a_run_that_begins_now_is_not_taken_for_an_abandoned_one(tmp_path):
    store = Store(tmp_path)
    begun = store.begin_folder()
    lock = hold_run(begun)
    os.utime(begun, (0, 0))
    begin_run([make_trial()], store)
    assert store.begun() == [begun]
    del lock
    begin_run([make_trial()], store)
    assert store.begun() == []


def test_the_lock_of_a_new_run_is_held_and_those_of_two_are_two(tmp_path):
    plans = [begin_run([make_trial()], Store(tmp_path)) for _ in range(2)]
    assert plans[0].lock is not plans[1].lock
    for plan in plans:
        with (plan.folder / LOCK).open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert hold_run(plan.folder) is plan.lock


def test_a_run_whose_records_are_a_link_is_refused_before_its_first_trial(tmp_path):
    folder = begin_run([make_trial()], Store(tmp_path)).folder
    (folder / "records.jsonl").symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError, match="is a link to another file"):
        resume_run(folder)
    assert not (tmp_path / "outside").exists()
