"""The suite's clock against a worker's: what cannot be is a failure, and what was hidden is a finding."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from waiting import PATIENCE_S, wait_until

from rnnbench.measure import Block, Served, cpu_seconds_beyond
from rnnbench.sampling import command_watch
from rnnbench.sampling.command_watch import CommandTimes, CommandWatch, WatchedBlock, moved_outside

GOOD = Block(0.0, 1, np.full(10, 1e-4), 2, elapsed=0.003)


def contradiction(block, asked=2):
    watch = CommandWatch(os.getpid(), os.sched_getaffinity(0))
    watch.begin("trial")
    time.sleep(0.005)
    block = replace(block, start=block.start + time.time())
    watch.end()
    return watch.contradiction("trial", block, asked)


def samples(*seconds):
    return replace(GOOD, seconds=np.array(seconds))


IMPOSSIBLE = {
    "no sample": replace(GOOD, seconds=np.zeros(0)),
    "is -0.0001 s": samples(1e-4, -1e-4),
    "is 0 s": samples(1e-4, 0.0),
    "not a finite": samples(1e-4, float("nan")),
    "is not a finite": samples(float("inf")),
    "elapsed is nan s": replace(GOOD, elapsed=float("nan")),
    "elapsed is -1 s": replace(GOOD, elapsed=-1.0),
    "take 0.004 s together": samples(*[2e-4] * 10),
    "the suite waited": replace(GOOD, elapsed=60.0),
    "4 calls were timed as one": replace(GOOD, calls_per_sample=4),
    "no counts": replace(GOOD, missed=11),
    "are no counts": replace(GOOD, warm_calls=-1),
    "from the moment": replace(GOOD, start=-3600.0),
    "+3.6e+03 s from the moment": replace(GOOD, start=3600.0),
}


def test_a_block_that_can_be_is_no_failure():
    assert contradiction(GOOD) == ""


@pytest.mark.parametrize("sentence", IMPOSSIBLE)
def test_times_that_cannot_be_are_told_in_a_sentence(sentence):
    assert sentence in contradiction(IMPOSSIBLE[sentence])


def block(elapsed=0.04, waited=0.048, cpu=0.045, before=0.0):
    return WatchedBlock(elapsed, CommandTimes(0.0, waited, waited, cpu, before))


MOVED = {
    "in which it used": block(waited=0.4, cpu=0.4),
    "something waited outside of them": block(waited=2.0, cpu=0.03),
    "used 1.9 cores; it was held to 1": block(waited=0.044, cpu=0.083),
    "was stopped between blocks": block(before=0.1),
}


@pytest.mark.parametrize("sentence", MOVED)
def test_work_outside_of_blocks_is_found(sentence):
    assert any(sentence in detail for detail in moved_outside([MOVED[sentence]] * 4, 1))


def test_threads_that_were_requested_may_work_and_one_more_may_not():
    assert moved_outside([block(cpu=0.09)] * 4, 2) == []
    assert "cores; it was held to 2" in moved_outside([block(cpu=0.14)] * 4, 2)[0]


def test_a_machine_that_delays_a_block_or_all_of_them_a_little_accuses_nobody():
    assert moved_outside([block()] * 4, 1) == []
    assert moved_outside([block(waited=2.0, cpu=0.5), *[block(waited=0.2)] * 3], 1) == []
    assert moved_outside([block(elapsed=0.004, waited=0.2, cpu=0.02)] * 4, 1) == []
    assert moved_outside([], 1) == []


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core only")
def test_a_child_that_works_on_other_cores_is_found_at_its_own_trial_however_busy_the_machine():
    """It may get less than the trial's own core has to give, and then no sum of CPU time shows it."""
    watch = CommandWatch(os.getpid(), {min(os.sched_getaffinity(0))})
    watch.begin("other")
    watch.end()
    watch.begin("trial")
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        watch.end()
        wait_until(lambda: watch.findings("trial", 1), "the child's work was not seen")
        assert watch.findings("other", 1) == []
    finally:
        child.kill()
        child.wait(PATIENCE_S)


def test_a_thread_is_that_of_the_trial_in_whose_command_it_was_first_seen(monkeypatch):
    """It may go on in the commands of others."""
    seen, charged = iter([{1}, {1, 2}, {1, 2, 3}]), []
    monkeypatch.setattr(command_watch, "family_tasks", lambda pid: next(seen))
    monkeypatch.setattr(command_watch, "cpu_seconds_beyond", lambda cores, tasks: charged.append(tasks) or 0.0)
    watch = CommandWatch(os.getpid(), os.sched_getaffinity(0))
    for trial in ("first", "second"):
        watch.begin(trial)
        watch.end()
    for trial in ("first", "second"):
        watch.findings(trial, 1)
    assert charged == [[2], [3]]


def test_a_child_that_works_on_the_cores_of_its_trial_is_no_finding():
    watch = CommandWatch(os.getpid(), os.sched_getaffinity(0))
    watch.begin("trial")
    work = "import time\nwhile time.process_time() < 0.1: pass\ninput()"
    child = subprocess.Popen([sys.executable, "-c", work], stdin=subprocess.PIPE)
    watch.end()
    wait_until(lambda: cpu_seconds_beyond(set(), [child.pid]) > 0.1, "the child worked")
    findings = watch.findings("trial", 1)
    child.communicate(b"\n", timeout=PATIENCE_S)
    assert findings == []


def test_the_times_of_served_work_are_held_against_the_suites_clock():
    watch = CommandWatch(os.getpid(), os.sched_getaffinity(0))
    watch.begin("trial")
    time.sleep(0.005)
    served = Served(time.time(), np.array([1e-4, 2e-4]), 2, 0, 2e-4, 0.003)
    watch.end()
    assert watch.contradiction_of_served(served) == ""
    assert "the suite waited" in watch.contradiction_of_served(replace(served, elapsed=60.0))
    assert "from the moment" in watch.contradiction_of_served(replace(served, start=served.start - 3600.0))
    assert "no counts" in watch.contradiction_of_served(replace(served, missed=3))


def test_threads_of_a_trial_may_work_in_its_blocks_and_not_beside_them():
    """Two cores are allowed: what both did inside is taken off, and not what one did."""
    assert moved_outside([block(waited=0.2, cpu=0.11)] * 4, 2) == []
    assert "in which it used" in moved_outside([block(waited=0.2, cpu=0.17)] * 4, 2)[0]


def test_what_little_a_stopped_worker_does_is_no_finding():
    """A tenth of its blocks, and 50 ms in all."""
    assert moved_outside([block(elapsed=1.0, waited=1.1, cpu=1.0, before=0.1)] * 4, 1) == []
    assert (
        "was stopped between blocks" in moved_outside([block(elapsed=1.0, waited=1.1, cpu=1.0, before=0.12)] * 4, 1)[0]
    )


def test_the_blocks_of_a_process_are_told_once():
    watch = CommandWatch(os.getpid(), os.sched_getaffinity(0))
    watch._blocks["trial"] += [MOVED["in which it used"]] * 4
    assert len(watch.findings("trial", 1)) == 1
    assert watch.findings("trial", 1) == []


def test_each_command_has_the_cpu_time_of_its_own(monkeypatch):
    """What was used between two commands is that of no command."""
    seconds = iter([1.0, 3.0, 7.0, 7.5, 9.0])
    monkeypatch.setattr(command_watch, "family_cpu_seconds", lambda pid: next(seconds))
    watch = CommandWatch(os.getpid(), os.sched_getaffinity(0))
    for before, during in ((2.0, 4.0), (0.5, 1.5)):
        watch.begin("trial")
        watch.end()
        assert (watch._times.cpu_before, watch._times.cpu) == (before, during)
