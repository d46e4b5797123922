"""Work in a forked child leaves nothing behind but its reply, and its death is a failure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass

from rnnbench.worker.forked import run_forked
from rnnbench.worker.protocol import Command, Failed


@dataclass(frozen=True)
class Reply:
    pid: int = 0
    text: str = ""


@dataclass(frozen=True)
class Work(Command[Reply]):
    """The command that the work carries out."""


def test_the_reply_comes_back_and_the_work_leaves_nothing():
    done = []
    assert run_forked(Work(), lambda: Reply(done.append(1) or os.getpid())).pid != os.getpid()
    assert done == []


def test_a_failure_comes_back_as_it_is():
    assert run_forked(Work(), lambda: Failed("build-failed", "refused")) == Failed("build-failed", "refused")


def test_a_signal_is_a_crash_that_names_it():
    failed = run_forked(Work(), lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert failed == Failed("crashed", "died of SIGKILL")


def test_an_exit_is_a_crash_that_names_its_status():
    failed = run_forked(Work(), lambda: os._exit(7))
    assert failed == Failed("crashed", "exited with status 7")


def test_a_reply_larger_than_a_pipe_comes_back_whole():
    assert len(run_forked(Work(), lambda: Reply(text="x" * 1_000_000)).text) == 1_000_000


def test_the_child_dies_with_the_process_that_waits_for_it():
    """A suite that is killed kills its workers, and they have no time to end their children."""
    script = (
        "import time\n"
        "from rnnbench.worker.commands import EndFork\n"
        "from rnnbench.worker.forked import run_forked\n"
        "def work():\n    print('begun', flush=True)\n    time.sleep(30)\n    print('outlived', flush=True)\n"
        "run_forked(EndFork(), work)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout.readline() == "begun\n"
        waiting.kill()
        assert waiting.stdout.read() == "", "both ends are closed once both processes are gone"
