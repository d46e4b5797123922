"""A worker process answers commands, ends with the suite, and what it died of is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from forked_workers import fork_workers
from harness_trials import make_trial
from rnnbench_fake import HANGS_IN
from waiting import PATIENCE_S, ended, started_from_now, wait_until

from rnnbench.outside_text import read_tail
from rnnbench.plan import close_adapters, examine
from rnnbench.worker import (
    Command,
    Done,
    ForkedWorker,
    ForkingWorker,
    Host,
    RunFolders,
    WorkerError,
    WorkerProcess,
    launcher,
    process_family,
    start_trial_worker,
    started_process,
)
from rnnbench.worker.commands import EndFork, Load

LIMIT_S = 60.0


@dataclass(frozen=True)
class Unknown(Command[Done]):
    """A command that no worker knows."""


@pytest.fixture
def worker(tmp_path):
    worker = start_trial_worker(examine(make_trial()), RunFolders.of_run(tmp_path), "worker.log")
    yield worker
    worker.close()


@pytest.fixture
def forked_worker(monkeypatch, tmp_path):
    """For tests that do not look at how it starts."""
    fork_workers(monkeypatch)
    worker = start_trial_worker(examine(make_trial()), RunFolders.of_run(tmp_path), "worker.log")
    yield worker
    worker.close()


def test_once_its_framework_is_imported_a_worker_says_what_that_took(worker):
    began = time.monotonic()
    figures = worker.ready()
    waited = time.monotonic() - began
    assert waited <= worker.age_s <= time.time() - psutil.Process().create_time()
    assert figures.import_s >= 0
    assert figures.harness > 0
    assert figures.imported > 0


def test_a_command_that_fails_leaves_the_worker_alive(forked_worker, tmp_path):
    forked_worker.ready()
    with pytest.raises(WorkerError) as raised:
        forked_worker.ask(Load(make_trial("fake:build-fails")), LIMIT_S)
    assert (raised.value.outcome, raised.value.alive) == ("build-failed", True)
    assert forked_worker.ask(Load(make_trial()), LIMIT_S).artifact.lowered == "looped 1"


def test_an_unknown_command_ends_the_worker_and_its_log_names_the_command(worker):
    worker.ready()
    with pytest.raises(WorkerError, match=r"exited with status 1; its log ends: .*Unknown") as raised:
        worker.ask(Unknown(), LIMIT_S)
    assert (raised.value.outcome, raised.value.alive) == ("crashed", False)


@pytest.mark.proof
def test_an_unknown_command_to_a_forked_child_ends_the_child_and_its_parent(worker):
    forked = ForkedWorker(ForkingWorker(worker))
    forked.ready()
    with pytest.raises(WorkerError, match=r"exited with status 1; its log ends: .*Unknown") as raised:
        forked.ask(Unknown(), LIMIT_S)
    assert not raised.value.alive
    forked.close()


def test_a_log_that_is_a_link_or_a_pipe_is_not_written(tmp_path):
    """A run that was made elsewhere may have a link to any file of its user, and a pipe has no end."""
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    (tmp_path / "mine").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match=name):
            WorkerProcess("rnnbench.worker", EndFork(), Host(tmp_path / name, {}))
        assert read_tail(tmp_path / "pipe") == ""
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_worker_that_has_ended_is_told_with_its_status_when_it_is_asked(forked_worker):
    forked_worker.ready()
    psutil.Process(forked_worker.pid).kill()
    wait_until(lambda: ended([psutil.Process(forked_worker.pid)]), "it was killed")
    with pytest.raises(WorkerError, match="SIGKILL") as raised:
        forked_worker.ask(EndFork(), LIMIT_S)
    assert "memory runs out" in raised.value.reason
    assert not raised.value.alive


@pytest.mark.parametrize(
    ("number", "outcome", "told"),
    [(signal.SIGKILL, "out-of-memory", "out-of-memory killer ended it"), (signal.SIGSEGV, "crashed", "SIGSEGV")],
)
def test_of_the_signals_that_end_a_worker_one_alone_is_the_out_of_memory_killers(
    forked_worker, number, outcome, told, monkeypatch
):
    """It may end another process meanwhile."""
    monkeypatch.setattr("rnnbench.worker.launcher.OomKills.happened", lambda kills: True)
    forked_worker.ready()
    os.kill(forked_worker.pid, number)
    with pytest.raises(WorkerError, match=told) as raised:
        forked_worker.ask(EndFork(), LIMIT_S)
    assert raised.value.outcome == outcome


def test_a_worker_that_has_more_than_its_limit_of_memory_is_killed(worker):
    worker.ready()
    resident = worker.resident(look=True)
    assert worker.ask(Load(make_trial("fake:honest")), LIMIT_S, 2 * resident).artifact
    with pytest.raises(WorkerError, match="MiB resident, over its limit of") as raised:
        worker.ask(Load(make_trial(chunk=2)), LIMIT_S, resident // 2)
    assert (raised.value.outcome, raised.value.alive) == ("out-of-memory", False)


def test_a_worker_that_prints_without_an_end_is_killed_and_its_log_is_cut(worker, tmp_path, monkeypatch):
    """What an earlier command printed does not count."""
    worker.ready()
    (log,) = RunFolders.of_run(tmp_path).logs.iterdir()
    monkeypatch.setattr(launcher, "MOST_PRINTED", 1 << 20)
    with log.open("ab") as printed:
        printed.write(bytes(2 << 20))
    with pytest.raises(WorkerError, match="expected ';'"):
        worker.ask(Load(make_trial("fake:build-fails")), LIMIT_S)
    with pytest.raises(WorkerError, match=r"printed more than 1 MiB; killed; its log ends: still compil") as raised:
        worker.ask(Load(make_trial("fake:build-prints")), LIMIT_S)
    assert (raised.value.outcome, raised.value.alive) == ("crashed", False)
    assert log.stat().st_size < (2 << 20) + (1 << 18)


def test_where_memory_runs_out_the_kernel_ends_a_worker_before_the_suite(worker):
    own, of_worker = (int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in ("self", worker.pid))
    assert of_worker == min(1000, own + 500)


def test_an_interpreter_that_ends_at_once_is_told_with_its_status(tmp_path):
    """However soon: it may have ended before its first command is sent."""
    for _ in range(20):
        worker = WorkerProcess("no_module", EndFork(), Host(tmp_path / "log", {}, "/bin/false"))
        with pytest.raises(WorkerError, match="exited with status 1"):
            worker.ready(LIMIT_S)
        worker.close()


def test_a_worker_without_an_answer_in_time_is_killed(tmp_path):
    started = started_from_now()
    trial = make_trial(f"fake:{HANGS_IN}import_framework")
    worker = start_trial_worker(examine(trial), RunFolders.of_run(tmp_path), "worker.log")
    with pytest.raises(WorkerError, match=r"no answer within 0\.001 s") as raised:
        worker.ready(0.001)
    assert (raised.value.outcome, raised.value.alive) == ("timed-out", False)
    close_adapters()
    wait_until(lambda: ended(started()), "the worker is left")


class _Stops:
    """A channel at whose first looks the suite is stopped for an hour, as by Ctrl-Z or with its container."""

    def __init__(self, channel, clock, times):
        self._channel, self._clock, self._left = channel, clock, times

    def receive(self, timeout):
        if not self._left:
            return self._channel.receive(timeout)
        self._left, self._clock[0] = self._left - 1, self._clock[0] + 3600.0
        return None

    def __getattr__(self, name):
        return getattr(self._channel, name)


@pytest.fixture
def clock(monkeypatch):
    """Seconds by which the suite's clock is ahead."""
    ahead = [0.0]
    clocks = SimpleNamespace(monotonic=lambda: time.monotonic() + ahead[0], sleep=time.sleep)
    monkeypatch.setattr(launcher, "time", clocks)
    return ahead


def test_a_worker_has_its_time_also_if_the_suite_was_stopped_meanwhile(worker, clock):
    worker.ready()
    worker._channel = _Stops(worker._channel, clock, times=1)
    assert worker.ask(Load(make_trial()), LIMIT_S).artifact.lowered == "looped 1"
    assert worker.stopped_s == pytest.approx(3600.0, abs=LIMIT_S)
    worker.ask(Load(make_trial()), LIMIT_S)
    assert worker.stopped_s == 0.0


@pytest.mark.proof
def test_a_program_that_starves_the_suite_has_an_end(worker, clock):
    worker.ready()
    worker._channel = _Stops(worker._channel, clock, times=launcher.MOST_STOPS + 1)
    with pytest.raises(WorkerError, match="no answer within 60 s"):
        worker.ask(Load(make_trial()), LIMIT_S)


def test_all_processes_of_the_machine_are_looked_at_once_when_a_worker_is_closed(forked_worker, monkeypatch):
    """What it is known to have started ends before: each look takes a few milliseconds of the processor."""
    looks, marked = [], process_family.marked
    monkeypatch.setattr(started_process, "LOOK_AGAIN_S", PATIENCE_S)
    monkeypatch.setattr(process_family, "marked", lambda mark: looks.append(mark) or marked(mark))
    forked_worker.ready()
    forked_worker.close()
    assert len(looks) == 1


def test_a_finished_run_keeps_only_its_logs(tmp_path):
    folders = RunFolders.of_run(tmp_path)
    for folder in (folders.artifacts, folders.references, folders.logs):
        folder.mkdir()
    folders.clear()
    assert list(tmp_path.iterdir()) == [folders.logs]
    folders.clear()


def test_a_worker_dies_with_the_suite(tmp_path):
    """SIGKILL leaves no time to clean up. The kernel ends the worker, which is busy: this suite has no supervisor.

    Its temporary files stay, in this test's folder.
    """
    script = tmp_path / "start.py"
    script.write_text(
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from harness_trials import make_trial\n"
        "from rnnbench.plan import examine\n"
        "from rnnbench.temporary import TemporaryFolder\n"
        "from rnnbench.worker import Load, RunFolders, launcher, start_trial_worker\n"
        "from rnnbench.worker.protocol import encode_command\n"
        "launcher.supervise = TemporaryFolder\n"
        "trial = make_trial('fake:hangs-in-load')\n"
        "worker = start_trial_worker(examine(trial), RunFolders.of_run(Path(sys.argv[1])), 'log')\n"
        "worker.ready()\n"
        "worker._channel.send(encode_command(Load(trial)))\n"
        "print(worker.pid, flush=True)\n"
        "sys.stdin.readline()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, str(script), str(tmp_path)]
    variables = {**os.environ, "TMPDIR": str(tmp_path), "RNNBENCH_USERS_TMPDIR": ""}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=variables, text=True, **pipes) as suite:
        worker = psutil.Process(int(suite.stdout.readline()))
        suite.stdin.write("\n")
    assert suite.returncode == -signal.SIGKILL
    wait_until(lambda: ended([worker]), "the worker outlived the suite")
