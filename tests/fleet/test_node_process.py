"""What a node's process finds and leaves on its machine."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import fake_records as fake
import numpy as np
import pytest
from harness_trials import expected_failure, make_trial
from waiting import PATIENCE_S

from rnnbench.fleet import node_process
from rnnbench.fleet.group_task import node_environment
from rnnbench.fleet.messages import GO, GroupWork, decode, decode_samples
from rnnbench.fleet.node_process import PREFIX, YOUNG_S, work_folder
from rnnbench.locks import locked_folder
from rnnbench.results import SAMPLE_COLUMNS, save_samples


class Driver:
    """The other end of the channel: it gives one answer."""

    def __init__(self, answer):
        self._answer = answer
        self.got = []

    def send(self, line):
        self.got.append(decode(line))

    def receive(self):
        return self._answer


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The folder of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def aged(folder):
    folder.mkdir()
    (folder / "records.jsonl").touch()
    long_ago = time.time() - 2 * YOUNG_S
    os.utime(folder, (long_ago, long_ago))
    return folder


def test_its_folder_is_removed_at_the_end(temporary):
    with work_folder() as folder:
        (folder / "artifact").touch()
        assert os.getcwd() == str(folder)
    assert not list(temporary.iterdir())


def test_folders_of_killed_processes_are_removed_and_no_others(temporary):
    left = aged(temporary / f"{PREFIX}left")
    locked = aged(temporary / f"{PREFIX}locked")
    young = temporary / f"{PREFIX}young"
    young.mkdir()
    other = aged(temporary / "other")
    with locked_folder(locked), work_folder():
        assert not left.exists()
        assert all(folder.exists() for folder in (locked, young, other))


@pytest.mark.parametrize("rebuild", [False, True])
def test_a_group_is_measured_as_its_work_says_once_the_driver_agrees(temporary, monkeypatch, rebuild):
    runs = []
    monkeypatch.setattr(node_process, "usable_cache", lambda tell, reads: reads)
    monkeypatch.setattr(node_process, "run_trials", lambda plan, sender, cache: runs.append((plan.seed, cache)))
    work = GroupWork((make_trial(),), {}, seed=7, timed=True, rebuild=rebuild)
    driver = Driver(GO)
    node_process.measure(work, driver, temporary)
    assert runs == [(7, not rebuild)]
    assert [message.kind for message in driver.got] == ["facts", "done"]


def test_without_the_drivers_word_nothing_is_measured(temporary, monkeypatch):
    monkeypatch.setattr(node_process, "_carry_out", lambda *_: pytest.fail("it measures"))
    driver = Driver(b"no")
    node_process.measure(GroupWork((make_trial(),), {}, seed=7, timed=True), driver, temporary)
    assert [message.kind for message in driver.got] == ["facts"]


def test_the_environment_is_that_of_the_start_without_rays():
    """As in a task: Ray adds variables to its process before that starts one."""
    code = (
        "import os; os.environ.update(OMP_NUM_THREADS='1')\n"
        "from rnnbench.fleet.group_task import node_environment as found\n"
        "print(*(name in found() for name in ('MINE', 'RAY_JOB_ID', 'OMP_NUM_THREADS')))"
    )
    started_with = {"MINE": "1", "RAY_JOB_ID": "01", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=started_with, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert done.stdout.split() == ["True", "False", "False"]
    assert "PATH" in node_environment()


@pytest.mark.parametrize("jobs", [3, None])
def test_a_group_that_is_only_checked_is_checked_side_by_side(temporary, monkeypatch, jobs):
    """As many as the driver says, or else as the node finds."""
    checks = []
    monkeypatch.setattr(node_process, "usable_cache", lambda tell, reads: None)
    monkeypatch.setattr(node_process, "run_trials", lambda *_, **named: pytest.fail("it times"))
    monkeypatch.setattr(node_process, "check_trials", lambda plan, sender, jobs, **named: checks.append(jobs))
    node_process.measure(GroupWork((make_trial(),), {}, seed=7, timed=False, jobs=jobs), Driver(GO), temporary)
    assert checks == [jobs]


def test_folders_of_other_users_are_left_alone(temporary, monkeypatch):
    left = aged(temporary / f"{PREFIX}of-another")
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    with work_folder():
        assert left.exists()


def test_the_samples_of_a_record_are_sent_with_it(tmp_path):
    driver = Driver(GO)
    record = fake.record()
    rows = np.arange(10.0).reshape(2, len(SAMPLE_COLUMNS))
    save_samples(tmp_path, record.trial, "bound", rows)
    driver.send = driver.got.append
    node_process.Sender(driver, tmp_path).finished(record)
    message = decode(driver.got[0])
    assert message.record == record
    assert list(message.samples) == ["bound"]
    np.testing.assert_array_equal(decode_samples(message.samples["bound"]), rows)


def test_a_group_is_measured_with_the_expected_failures_of_its_work(temporary, monkeypatch):
    plans = []
    monkeypatch.setattr(node_process, "_carry_out", lambda work, plan, sender: plans.append(plan))
    trial = make_trial()
    entry = expected_failure()
    node_process.measure(GroupWork((trial,), {trial.case: (entry,)}, seed=7, timed=True), Driver(GO), temporary)
    assert [list(plan.expected_of(trial)) for plan in plans] == [[entry]]
