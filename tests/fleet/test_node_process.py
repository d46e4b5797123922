"""What a node's process finds and leaves on its machine."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import fake_records as fake
import numpy as np
import pytest
from harness_trials import expected_failure, make_trial
from waiting import PATIENCE_S

from rnnbench.fleet import node_process
from rnnbench.fleet.group_task import node_environment
from rnnbench.fleet.messages import GO, GroupWork, decode, decode_samples
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


def test_it_works_in_a_folder_that_goes_with_it(temporary, monkeypatch):
    """The supervisor removes it where the process is killed."""
    worked_in = []
    driver = Driver(b"work")
    monkeypatch.setattr(node_process, "open_channel", lambda: driver)
    monkeypatch.setattr(node_process, "die_with_parent", lambda: None)
    monkeypatch.setattr(node_process, "decode_work", lambda line: line)
    monkeypatch.setattr(
        node_process, "measure", lambda work, channel, folder: worked_in.append((folder, os.getcwd(), folder.is_dir()))
    )
    node_process.main()
    ((folder, working, existed),) = worked_in
    assert (str(folder), True) == (working, existed)
    assert not folder.exists()


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
