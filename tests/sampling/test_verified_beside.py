"""The check after sampling runs beside the preparation of the next processes, and what it finds counts as before."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace

import pytest
from harness_trials import check_trial, context_in, make_trial, run_trials

from rnnbench.cases import Limits, Measure
from rnnbench.measure import PATHS, BlockPlan
from rnnbench.sampling import PathBlocks, SamplingWorker, TrialSampling
from rnnbench.sampling.verified_beside import cores_beside, verified_beside

pytestmark = pytest.mark.usefixtures("few_checks")

GIB = 1 << 30
LIMIT_S = 60.0
MEASURE = Measure(budget=0.2, processes=2)


@pytest.mark.parametrize(
    ("threads", "cores", "nbytes", "expected"),
    [
        (1, [0, 1], GIB, [0]),
        (1, [0, 1, 2, 3], GIB, [2]),
        (2, [0, 1, 2, 3], GIB, [0, 1]),
        (2, [0, 1, 2], GIB, []),
        (1, [0], GIB, []),
        (1, [0, 1], 2 * GIB, [0]),
        (1, [0, 1], 3 * GIB, []),
    ],
)
def test_there_is_room_where_cores_and_memory_hold_two_sets(threads, cores, nbytes, expected):
    trial = replace(make_trial(), threads=threads)
    assert cores_beside(trial, nbytes, cores, available=8 * GIB) == expected


def test_programs_on_another_device_have_it_for_themselves():
    assert cores_beside(replace(make_trial(), device="cuda"), GIB, [0, 1], available=8 * GIB) == []


@pytest.fixture
def beside(monkeypatch):
    """Sampling that checks beside, whatever the machine has; and the processes that it checked."""
    monkeypatch.setattr("rnnbench.sampling.interleaved.cores_beside", lambda *_: [min(os.sched_getaffinity(0))])
    checked, verify = [], SamplingWorker.verify

    def noted(self):
        checked.append(self._process.pid)
        verify(self)

    monkeypatch.setattr(SamplingWorker, "verify", noted)
    return checked


def test_every_process_is_checked(beside, tmp_path):
    trial = make_trial(measure=MEASURE)
    _, records = run_trials([trial], tmp_path)
    record = records[trial.id]
    assert record.outcome == "ok", record.reason
    processes = max(len(latency.process_medians) for latency in record.timing.latency.values())
    assert len(set(beside)) == len(beside) == processes >= 2
    assert record.conformance["timed"].verdict == "pass"
    assert record.environment.affinity == record.environment.affinity_requested


def test_without_room_beside_each_process_is_checked_before_the_next_one_begins(monkeypatch, tmp_path):
    """Each set of processes has its number: by that its logs are named, and the order of its turns is drawn."""
    steps, verify, begin = [], SamplingWorker.verify, SamplingWorker.prepare

    def noted(name, method):
        def run(self):
            steps.append(name)
            method(self)

        return run

    monkeypatch.setattr("rnnbench.sampling.interleaved.cores_beside", lambda *_: [])
    monkeypatch.setattr("rnnbench.sampling.interleaved.sets_at_once", lambda *_: 1)
    monkeypatch.setattr(SamplingWorker, "verify", noted("verify", verify))
    monkeypatch.setattr(SamplingWorker, "prepare", noted("prepare", begin))
    trial = make_trial(measure=MEASURE)
    run, records = run_trials([trial], tmp_path)
    processes = max(len(records[trial.id].latency(path).process_medians) for path in ("bound", "public"))
    assert steps[:4] == ["prepare", "verify", "prepare", "verify"]
    assert {log.name for log in run.rglob("sample-*.log")} == {f"sample-{number}.log" for number in range(processes)}


@pytest.mark.proof
def test_a_trial_that_fails_the_check_is_left_out_of_the_processes_that_were_prepared_meanwhile(beside, tmp_path):
    wrong, honest = make_trial("fake:wrong-once-timed", measure=MEASURE), make_trial(measure=MEASURE)
    _, records = run_trials([wrong, honest], tmp_path)
    assert (records[wrong.id].outcome, records[wrong.id].stage) == ("nonconforming", "sample")
    assert records[honest.id].outcome == "ok", records[honest.id].reason
    assert len(records[honest.id].latency("bound").process_medians) >= 2


@pytest.fixture
def timed(tmp_path):
    """A worker with one trial, which was timed."""
    context = context_in(tmp_path)
    sampling = TrialSampling(check_trial(make_trial(limits=Limits(trial=LIMIT_S)), context).examined)
    worker = SamplingWorker([sampling], context, "sample.log")
    worker.prepare()
    worker.sample(sampling, PathBlocks(PATHS["bound"]), BlockPlan(0.001))
    worker.end_sampling()
    yield worker, sampling
    worker.close()


def test_a_process_that_stepped_aside_says_where_it_was_timed_and_costs_no_time(timed, monkeypatch, tmp_path):
    worker, sampling = timed
    context = context_in(tmp_path)
    cores = sorted(os.sched_getaffinity(0))
    before = os.sched_getaffinity(worker._process.pid)
    moved = threading.Event()
    monkeypatch.setattr(worker, "verify", lambda: (moved.set(), SamplingWorker.verify(worker)))
    with verified_beside([worker], cores[:1], context.wall_time):
        assert moved.wait(LIMIT_S)
        assert os.sched_getaffinity(worker._process.pid) == set(cores[:1])
    sampled = sampling._state
    assert sampled.worker.affinity == tuple(sorted(before))
    assert set(context.wall_time.seconds()) == {"total", "check"}


def test_processes_that_wait_at_the_end_are_shared_by_both(tmp_path):
    """The first one is checked until the other is, so only this thread can have checked that."""
    shared = threading.Event()

    class First(Noted):
        def verify(self):
            assert shared.wait(LIMIT_S)
            super().verify()

    class Last(Noted):
        def verify(self):
            super().verify()
            shared.set()

    first, last = First(trials=2), Last(trials=1)
    began = first.aside
    with verified_beside([last, first], [0], context_in(tmp_path).wall_time):
        assert began.wait(LIMIT_S)
    assert first.verified_by is not threading.main_thread()
    assert last.verified_by is threading.main_thread()
    assert not last.aside.is_set()


class Noted:
    """A worker that notes who checks it."""

    def __init__(self, trials):
        self.trials = [object()] * trials
        self.aside = threading.Event()
        self.verified_by = None

    def step_aside(self, cores):
        self.aside.set()

    def verify(self):
        self.verified_by = threading.current_thread()


def test_an_interrupt_does_not_wait_for_the_check(timed, monkeypatch, tmp_path):
    worker, sampling = timed
    process, began = worker._process, threading.Event()
    ask = type(process).ask

    def slow(self, command, *args):
        os.kill(self.pid, signal.SIGSTOP)  # It never answers.
        began.set()
        return ask(self, command, *args)

    monkeypatch.setattr(process, "ask", slow.__get__(process))

    def interrupted():
        with verified_beside([worker], [0], context_in(tmp_path).wall_time):
            assert began.wait(LIMIT_S)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert sampling.failure.outcome == "crashed", "not timed-out: nobody waited for its limit"
    assert worker.trials == []
    assert worker._process is None
