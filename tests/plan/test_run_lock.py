"""A run in progress is not resumed. Its lock goes with the process that holds it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from harness_trials import make_trial
from waiting import PATIENCE_S

from rnnbench.plan import begin_run, resume_run
from rnnbench.plan.run_lock import LOCK, RunLock, hold_run
from rnnbench.results import Store, StoreError

HOLDS = """
import sys, time
from pathlib import Path
from rnnbench.plan.run_lock import hold_run
lock = hold_run(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


def holder(folder):
    process = subprocess.Popen([sys.executable, "-c", HOLDS, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


def test_a_run_that_another_process_holds_is_refused_until_that_process_is_gone(tmp_path):
    folder = begin_run([make_trial()], Store(tmp_path)).folder
    process = holder(folder)
    try:
        with pytest.raises(StoreError, match=f"is in progress: process {process.pid} on .* runs it; wait until"):
            resume_run(folder)
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    assert len(resume_run(folder).trials) == 1


@pytest.mark.proof
def test_a_plan_holds_its_run_as_long_as_it_exists(tmp_path):
    plan = begin_run([make_trial()], Store(tmp_path))
    command = [sys.executable, "-c", HOLDS.replace("time.sleep(600)", ""), str(plan.folder)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert f"process {os.getpid()} on" in refused.stderr
    folder = plan.folder
    del plan
    assert subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S).returncode == 0
    hold_run(folder)


def test_a_worker_does_not_keep_the_lock_of_its_run(tmp_path):
    lock = hold_run(tmp_path)
    child = subprocess.Popen(["sleep", "600"], close_fds=False)
    try:
        del lock
        process = holder(tmp_path)
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    finally:
        child.kill()
        child.wait(PATIENCE_S)


def test_a_lock_that_is_a_link_empties_no_other_file(tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("of somebody")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / LOCK).symlink_to(outside)
    with pytest.raises(StoreError, match="is a link to another file"):
        RunLock(folder)
    assert outside.read_text() == "of somebody"
