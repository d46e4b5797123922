"""Work in a forked child leaves nothing behind but its reply, and its death is a failure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass

import psutil
from waiting import ended, wait_until

from rnnbench.worker import process_family
from rnnbench.worker.forked_build import run_forked
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
    assert run_forked(Work(), lambda: Reply(done.append(1) or os.getpid())).reply.pid != os.getpid()
    assert done == []


def test_a_failure_comes_back_as_it_is():
    assert run_forked(Work(), lambda: Failed("build-failed", "refused")).reply == Failed("build-failed", "refused")


def test_a_signal_is_a_crash_that_names_it():
    failed = run_forked(Work(), lambda: os.kill(os.getpid(), signal.SIGKILL)).reply
    assert failed == Failed("crashed", "died of SIGKILL")


def test_an_exit_is_a_crash_that_names_its_status():
    failed = run_forked(Work(), lambda: os._exit(7)).reply
    assert failed == Failed("crashed", "exited with status 7")


def test_how_a_child_ended_is_told_where_ended_children_were_ignored():
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        failed = run_forked(Work(), lambda: os._exit(7)).reply
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert failed == Failed("crashed", "exited with status 7")


def test_half_of_an_answer_is_none():
    before = set(os.listdir("/proc/self/fd"))

    def answer_half():
        for number in set(os.listdir("/proc/self/fd")) - before:
            with suppress(OSError):  # The folder that was listed is closed.
                os.write(int(number), b'{"reply": ')
        os._exit(0)

    failed = run_forked(Work(), answer_half).reply
    assert failed.outcome == "crashed"
    assert "is no reply" in failed.reason


def test_a_reply_larger_than_a_pipe_comes_back_whole():
    assert len(run_forked(Work(), lambda: Reply(text="x" * 1_000_000)).reply.text) == 1_000_000


def test_the_child_dies_with_the_process_that_waits_for_it():
    """A suite that is killed kills its workers, and they have no time to end their children."""
    script = (
        "import time\n"
        "from rnnbench.worker.commands import EndFork\n"
        "from rnnbench.worker.forked_build import run_forked\n"
        "def work():\n    print('begun', flush=True)\n    time.sleep(30)\n    print('outlived', flush=True)\n"
        "run_forked(EndFork(), work)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout.readline() == "begun\n"
        waiting.kill()
        assert waiting.stdout.read() == "", "both ends are closed once both processes are gone"


def test_a_child_that_raises_or_answers_nonsense_is_a_crash_and_never_goes_on_as_its_parent():
    before = os.getpid()
    assert run_forked(Work(), lambda: sys.exit(0)).reply == Failed("crashed", "exited with status 1")
    nonsense = run_forked(Work(), lambda: Failed("odd", "")).reply
    assert nonsense.outcome == "crashed"
    assert "is no reply" in nonsense.reason or "exited with status" in nonsense.reason
    assert os.getpid() == before


def test_what_a_child_leaves_running_is_not_waited_for():
    """It holds the pipe of the reply, and lives until this test closes another one."""
    waits, ends = os.pipe()

    def answer_and_leave() -> Reply:
        if (left := os.fork()) == 0:
            os.close(ends)
            os.read(waits, 1)
            os._exit(0)
        return Reply(left)

    reply = run_forked(Work(), answer_and_leave).reply
    left = psutil.Process(reply.pid)
    assert not ended([left])
    os.close(waits)
    os.close(ends)
    wait_until(lambda: ended([left]), "what was left waits for the end of a pipe")


def test_a_child_that_dies_without_an_answer_is_seen_while_what_it_left_holds_the_pipe():
    """What it forked has all of its descriptors, and lives until this test closes another pipe."""
    waits, ends = os.pipe()

    def die_and_leave():
        if os.fork() == 0:
            os.close(ends)
            os.read(waits, 1)
            os._exit(0)
        os._exit(7)

    failed = run_forked(Work(), die_and_leave).reply
    os.close(waits)
    os.close(ends)
    assert failed == Failed("crashed", "exited with status 7")


def test_a_child_that_the_kernel_killed_for_want_of_memory_is_told_so(monkeypatch, tmp_path):
    events = tmp_path / "memory.events"
    events.write_text("oom_kill 0")
    monkeypatch.setattr(process_family, "_memory_events", lambda: iter([events]))
    failed = run_forked(Work(), lambda: events.write_text("oom_kill 1") and os.kill(os.getpid(), signal.SIGKILL)).reply
    assert failed.outcome == "out-of-memory"
