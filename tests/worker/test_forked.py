"""Work in a forked child leaves nothing behind but its answer, and its death is an outcome."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from rnnbench.run.forked import run_forked
from rnnbench.run.messages import read_failure


def test_the_answer_comes_back_and_the_work_leaves_nothing():
    kept = []
    assert run_forked(lambda: {"pid": kept.append(1) or os.getpid()})["pid"] != os.getpid()
    assert kept == []


def test_a_signal_is_a_crash_that_names_it():
    failure = read_failure(run_forked(lambda: os.kill(os.getpid(), signal.SIGKILL)))
    assert failure.outcome == "crashed"
    assert "SIGKILL" in failure.reason


def test_an_exit_is_a_crash_that_names_its_status():
    failure = read_failure(run_forked(lambda: os._exit(7)))
    assert failure.outcome == "crashed"
    assert "status 7" in failure.reason


def test_an_answer_larger_than_a_pipe_comes_back_whole():
    assert len(run_forked(lambda: {"text": "x" * 1_000_000})["text"]) == 1_000_000


def test_the_child_dies_with_whoever_waits_for_it():
    """A suite that is killed kills its workers, and they have no time to end what they forked."""
    script = (
        "import time\n"
        "from rnnbench.run.forked import run_forked\n"
        "def work():\n    print('begun', flush=True)\n    time.sleep(30)\n    print('outlived', flush=True)\n"
        "run_forked(work)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout.readline() == "begun\n"
        waiting.kill()
        assert waiting.stdout.read() == "", "both ends are closed once both processes are gone"
