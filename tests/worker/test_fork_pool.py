"""One worker forks a child for each trial: the import is shared, and what a child does is gone with it."""

from __future__ import annotations

import psutil
import pytest
from harness_trials import make_trial
from rnnbench_fake import PREPARES
from waiting import ended, started_from_now, wait_until

from rnnbench.plan import close_adapters, examine
from rnnbench.worker import ForkedWorker, ForkingWorker, RunFolders, WorkerError, start_trial_worker
from rnnbench.worker.commands import Build, Load, RunChecks

pytestmark = pytest.mark.usefixtures("forked_workers")
LIMIT_S = 60.0


@pytest.fixture
def start(tmp_path):
    """Starts a forking worker for a trial."""
    started = []

    def start_for(trial):
        parent = ForkingWorker(start_trial_worker(examine(trial), RunFolders.of_run(tmp_path), "worker.log"))
        started.append(parent)
        return parent

    yield start_for
    for parent in started:
        parent.close()


def test_children_of_one_parent_share_its_import(start):
    trials = [make_trial(chunk=chunk) for chunk in (1, 2)]
    parent = start(trials[0])
    imports = []
    for trial in trials:
        worker = ForkedWorker(parent)
        imports.append(worker.ready())
        worker.ask(Build(trial), LIMIT_S)
        assert worker.ask(Load(trial), LIMIT_S).artifact.lowered == "looped 1"
        worker.close()
    assert imports[0] is imports[1]
    assert not parent.is_closed


def test_a_parent_prepares_for_builds_once_a_child_has_built_and_one_that_cannot_goes_on(start, tmp_path):
    parent = start(make_trial())
    for chunk in (1, 2, 4):
        worker = ForkedWorker(parent)
        worker.ready()
        trial = make_trial(chunk=chunk)
        worker.ask(Build(trial), LIMIT_S)
        worker.close()
    log = (RunFolders.of_run(tmp_path).logs / "worker.log").read_text()
    prepared = [line for line in log.splitlines() if line.startswith(PREPARES)]
    assert prepared == [f"{PREPARES} {parent.process.pid} honest cpu"]


def test_a_parent_whose_child_could_not_build_prepares_nothing(start, tmp_path):
    trial = make_trial("fake:build-fails")
    parent = start(trial)
    for _ in range(2):
        worker = ForkedWorker(parent)
        worker.ready()
        with pytest.raises(WorkerError, match="refused"):
            worker.ask(Build(trial), LIMIT_S)
        worker.close()
    assert PREPARES not in (RunFolders.of_run(tmp_path).logs / "worker.log").read_text()


def test_a_child_that_failed_leaves_its_parent_for_the_next_trial(start):
    trial = make_trial("fake:build-fails")
    parent = start(trial)
    worker = ForkedWorker(parent)
    worker.ready()
    with pytest.raises(WorkerError, match="refused"):
        worker.ask(Build(trial), LIMIT_S)
    worker.close()
    assert not parent.is_closed
    ForkedWorker(parent).ready()


def test_a_child_whose_program_asked_to_exit_is_not_used_again(start):
    trial = make_trial("fake:check-exits")
    parent = start(trial)
    worker = ForkedWorker(parent)
    worker.ready()
    worker.ask(Build(trial), LIMIT_S)
    process = psutil.Process(parent.process.pid)
    with pytest.raises(WorkerError, match="asked the interpreter to exit: SystemExit: enough") as raised:
        worker.ask(RunChecks(trial), LIMIT_S)
    assert (raised.value.outcome, raised.value.alive) == ("crashed", False)
    assert ended([process])
    worker.close()
    assert parent.is_closed


def test_a_build_that_asked_to_exit_harmed_its_own_child_alone(start):
    trial = make_trial("fake:build-exits")
    parent = start(trial)
    worker = ForkedWorker(parent)
    worker.ready()
    with pytest.raises(WorkerError, match="asked the interpreter to exit: SystemExit: enough") as raised:
        worker.ask(Build(trial), LIMIT_S)
    assert raised.value.alive
    worker.close()
    assert not parent.is_closed


def test_a_child_that_died_takes_its_parent_with_it(start):
    started = started_from_now()
    trial = make_trial("fake:load-segfaults")
    parent = start(trial)
    worker = ForkedWorker(parent)
    worker.ready()
    worker.ask(Build(trial), LIMIT_S)
    with pytest.raises(WorkerError, match="SIGSEGV"):
        worker.ask(Load(trial), LIMIT_S)
    worker.close()
    assert parent.is_closed
    close_adapters()
    wait_until(lambda: ended(started()), "the parent or its child is left")
