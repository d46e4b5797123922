"""A program that helps the suite ends with its call and with the suite, and so does all that it starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from waiting import PATIENCE_S, ended, started_from_now, wait_until

from rnnbench.worker import run_helper

STARTS_A_CHILD = "sleep 1000 & setsid sleep 1000 & echo begun >&2; "
"""Both children have the program's output, and one is in a session of its own."""


def test_it_gets_its_text_and_its_output_and_status_come_back():
    done = run_helper(["sh", "-c", "cat; echo wrong >&2; exit 7"], 60, "asked\n")
    assert (done.stdout, done.stderr, done.returncode) == ("asked\n", "wrong\n", 7)
    assert run_helper(["cat"], 60).stdout == ""


def test_output_that_is_no_text_is_shown_all_the_same():
    assert run_helper(["printf", "\\377"], 60).stdout == "\ufffd"


def test_what_is_not_there_is_an_error_of_the_system():
    with pytest.raises(FileNotFoundError):
        run_helper(["/nowhere/at/all"], 60)


@pytest.mark.parametrize("end", ["sleep 1000", "exit 0"])
def test_one_whose_time_is_over_ends_with_its_children_though_they_hold_its_output(end):
    started, begun = started_from_now(), time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run_helper(["sh", "-c", STARTS_A_CHILD + end], 0.5)
    assert time.monotonic() - begun < 100
    assert ended([process for process in started() if "sleep" in process.name()])


def test_an_interrupt_ends_it_with_its_children():
    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    started = started_from_now()
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_helper(["sh", "-c", STARTS_A_CHILD + "sleep 1000"], 900)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert ended([process for process in started() if "sleep" in process.name()])


def test_it_ends_with_a_suite_that_is_killed(tmp_path):
    shell = f"{STARTS_A_CHILD}echo $$ > {tmp_path}/begun; sleep 1000"
    script = f"from rnnbench.worker import run_helper; run_helper(['sh', '-c', {shell!r}], 900)"
    suite = subprocess.Popen([sys.executable, "-c", script])
    wait_until(lambda: (tmp_path / "begun").exists() and (tmp_path / "begun").read_text().strip() != "", "it begins")
    helpers = psutil.Process(suite.pid).children(recursive=True)
    assert len(helpers) >= 3
    os.kill(suite.pid, signal.SIGKILL)
    suite.wait(PATIENCE_S)
    wait_until(lambda: ended(helpers), "what it started ends with the suite")
