"""Trials that are only checked share workers: which trial a worker has next, and that none harms another."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import pytest
from harness_trials import SilentObserver, context_in, expected_failure, make_trial
from waiting import PATIENCE_S, ended, started_from_now, wait_until

from rnnbench.cases import Limits
from rnnbench.devices import Device
from rnnbench.pipeline import check, check_trials
from rnnbench.pipeline.check import CheckPool, WaitingTrials
from rnnbench.plan import begin_run, examine, examine_all
from rnnbench.results import Store, StoreError, read_run
from rnnbench.stages import Examined
from rnnbench.worker import worker_key

pytestmark = pytest.mark.usefixtures("few_checks")


def examined(route: str, chunks: int, slow: tuple[str, ...] = ()) -> list[Examined]:
    """Trials of one route, which has an environment and so workers of its own."""
    trials = [examine(make_trial(f"fake:{route}", chunk=chunk)) for chunk in range(1, chunks + 1)]
    return [replace(one, probe=replace(one.probe, slow=slow)) for one in trials]


def test_a_group_is_finished_before_the_next_one_and_the_largest_comes_first() -> None:
    small, large = examined("honest", 1), examined("wrong-bound", 2)
    waiting, order, group = WaitingTrials([*small, *large]), [], None
    while (one := waiting.next(group)) is not None:
        order.append(one)
        group = worker_key(one)
    assert order == [*large, *small]


def test_slow_builds_do_not_come_last() -> None:
    slow, large = examined("honest", 1, slow=("honest",)), examined("wrong-bound", 3)
    assert WaitingTrials([*large, *slow]).next(None) == slow[0]


def test_a_thread_that_finds_every_group_taken_helps_with_the_longest() -> None:
    small, large = examined("honest", 2), examined("wrong-bound", 4)
    waiting = WaitingTrials([*small, *large])
    assert waiting.next(None) == large[0]
    assert waiting.next(None) == small[0]
    assert waiting.next(None) == large[1]


@pytest.mark.parametrize(("device", "software", "cores"), [("cpu", False, 1), ("cuda", False, 8), ("vulkan", True, 1)])
def test_a_worker_that_waits_for_a_device_may_use_every_core(tmp_path, monkeypatch, device, software, cores) -> None:
    """A driver's threads would wait for a core that the caller asks on (docs/devices.md)."""
    asked = []

    def start(examined, folders, log, cores):
        asked.append(len(cores))
        raise KeyboardInterrupt

    monkeypatch.setattr(check, "start_trial_worker", start)
    monkeypatch.setattr(check.os, "sched_getaffinity", lambda process: set(range(8)))
    (one,) = examined("honest", 1)
    probe = replace(one.probe, devices={device: Device("one", software=software)})
    plan = begin_run([one.trial], Store(tmp_path))
    pool = CheckPool(plan, context_in(plan.folder), SilentObserver())
    with pytest.raises(KeyboardInterrupt):
        pool.run(jobs=1, examined=[replace(one, trial=replace(one.trial, device=device), probe=probe)])
    assert asked == [cores]


def test_an_error_of_any_thread_ends_the_check(tmp_path, monkeypatch):
    """Also that of a thread which ends after the others."""
    first_ended = Event()

    def work(self, waiting, job, core):
        if job == 0:
            first_ended.set()
            return
        first_ended.wait(PATIENCE_S)
        raise StoreError("no room")

    monkeypatch.setattr(CheckPool, "_work", work)
    plan = begin_run([make_trial()], Store(tmp_path))
    with pytest.raises(StoreError, match="no room"):
        CheckPool(plan, context_in(plan.folder), SilentObserver()).run(jobs=2, examined=[])


@pytest.mark.parametrize(("memory", "jobs"), [(4 << 30, 4), (80 << 30, 16), (1 << 20, 1)])
def test_a_check_has_no_more_jobs_than_its_device_has_memory_for(tmp_path, monkeypatch, memory, jobs):
    """A machine with many cores may have a small GPU, on which each job makes a context."""
    begun = []
    monkeypatch.setattr(CheckPool, "_work", lambda self, waiting, job, core: begun.append(job))
    (one,) = examined("honest", 1)
    probe = replace(one.probe, devices={"cuda": Device("a GPU", driver="a driver", memory=memory)})
    plan = begin_run([one.trial], Store(tmp_path))
    on_gpu = replace(one, trial=replace(one.trial, device="cuda"), probe=probe)
    CheckPool(plan, context_in(plan.folder), SilentObserver()).run(jobs=16, examined=[one, on_gpu])
    assert sorted(begun) == list(range(jobs))


def test_as_many_jobs_run_as_cores_may_be_kept_busy_unless_a_number_is_given(tmp_path, monkeypatch):
    begun: list[int] = []
    monkeypatch.setattr(CheckPool, "run", lambda self, jobs, examined: begun.append(jobs))
    monkeypatch.setattr(check, "cores_at_once", lambda: 3)
    trials = [make_trial(chunk=chunk) for chunk in (1, 2, 4, 8)]
    for jobs in (None, 2):
        check_trials(begin_run(trials, Store(tmp_path)), SilentObserver(), jobs)
    assert begun == [3, 2]


@pytest.mark.first(2)
@pytest.mark.parametrize(("memory", "jobs"), [(100, 4), (32, 3), (31, 2), (23, 1), (1, 1)])
def test_as_many_jobs_run_as_the_free_memory_holds_unless_a_number_is_given(tmp_path, monkeypatch, memory, jobs):
    """Else the kernel ends a trial that keeps within its own limit."""
    begun: list[int] = []
    monkeypatch.setattr(CheckPool, "run", lambda self, jobs, examined: begun.append(jobs))
    monkeypatch.setattr(check, "cores_at_once", lambda: 4)
    monkeypatch.setattr(check, "free_memory", lambda: memory << 30)
    trials = [make_trial(chunk=k, limits=Limits(memory=gib << 30)) for k, gib in ((1, 4), (2, 12), (4, 8), (8, 12))]
    for given in (None, 4):
        check_trials(begin_run(trials, Store(tmp_path)), SilentObserver(), given)
    assert begun == [jobs, 4]


@pytest.mark.proof
def test_trials_that_are_only_checked_share_imports_and_no_process(tmp_path, monkeypatch):
    """A crash, a hang and a wrong number end their own trial; the next one starts where none has been."""
    routes = ["honest", "check-raises", "load-segfaults", "wrong-third-step", "build-segfaults", "check-hangs"]
    started = started_from_now()
    hanging = Limits(trial=1.5)
    trials = [make_trial(f"fake:{route}", limits=hanging if "hangs" in route else Limits()) for route in routes]
    trials += [make_trial("fake:honest", chunk=chunk) for chunk in (1, 2, 3)]
    plan = begin_run(trials, Store(tmp_path))
    workers, start = [], check.start_trial_worker

    def noted(*arguments):
        workers.append(start(*arguments))
        return workers[-1]

    monkeypatch.setattr(check, "start_trial_worker", noted)
    CheckPool(plan, context_in(plan.folder), SilentObserver()).run(jobs=1, examined=examine_all(plan.trials))
    records = read_run(plan.folder).records
    assert len(records) == len(trials)
    assert {r.outcome for r in records if r.route == "honest"} == {"ok"}
    assert {r.route: r.outcome for r in records if r.route != "honest"} == {
        "check-raises": "run-failed",
        "load-segfaults": "crashed",
        "wrong-third-step": "nonconforming",
        "build-segfaults": "crashed",
        "check-hangs": "timed-out",
    }
    (late,) = [record for record in records if record.outcome == "timed-out"]
    assert late.reason.endswith("killed")
    assert len(workers) == 6, "one for each route: a route's environment is its own"
    wait_until(lambda: ended(started()), "a worker is left")
    assert all(record.timing.build_s is None and not record.timing.latency for record in records), "none is timed"


def test_the_smallest_trials_that_fail_alike_are_given_back_and_expected_failures_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr("rnnbench.pipeline.shrink.BUDGET_S", float("inf"))
    also = ("chunks", "contents", "mixed", "rings")
    entry = expected_failure(route=("wrong-bound",), check=("bound",), also=also)
    trials = [make_trial(f"fake:{route}", chunk=1) for route in ("honest", "wrong-bound", "wrong-third-step")]
    plan = begin_run(trials, Store(tmp_path), {"harness": [entry]})
    (smallest,) = check_trials(plan, SilentObserver(), jobs=2)
    assert smallest.trial.target.route == "wrong-third-step"
    assert smallest.trial.model.hidden == 1
    run = read_run(plan.folder)
    assert run.info.finished is not None
    assert {record.route: record.outcome for record in run.records} == {
        "honest": "ok",
        "wrong-bound": "nonconforming",
        "wrong-third-step": "nonconforming",
    }
    assert sorted(path.name for path in plan.folder.iterdir() if path.is_dir()) == ["logs"]


def test_nothing_is_made_smaller_where_that_is_not_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("rnnbench.pipeline.check.shrink", lambda *_: pytest.fail("shrunk"))
    plan = begin_run([make_trial("fake:wrong-third-step")], Store(tmp_path))
    assert check_trials(plan, SilentObserver(), 1, shrinks=False) == []
    assert [record.outcome for record in read_run(plan.folder).records] == ["nonconforming"]
