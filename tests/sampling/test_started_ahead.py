"""Processes that are started ahead are imported and stopped until their turn, and disturb and outlive nothing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import psutil
import pytest
from forked_workers import MAINS
from harness_trials import check_trial, context_in, make_trial
from waiting import wait_until

from rnnbench.cases import Limits
from rnnbench.sampling import Context, SamplingWorker, TrialSampling, judged_pairs, pair_sampling
from rnnbench.sampling.judged_pairs import PairBudget, judge_trials
from rnnbench.sampling.started_ahead import StartedAhead, sets_at_once
from rnnbench.stages import Checked
from rnnbench.worker import launcher

pytest.importorskip("scipy")
pytestmark = pytest.mark.usefixtures("few_checks")

GIB = 1 << 30
LIMIT_S = 60.0


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Context:
    return context_in(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def checked(context: Context) -> Checked:
    one = check_trial(make_trial(limits=Limits(trial=LIMIT_S)), context)
    assert one.failure is None, one.failure
    return one


@pytest.fixture
def sampling(checked: Checked) -> TrialSampling:
    return TrialSampling(checked.examined)


@pytest.fixture
def ahead() -> Iterator[StartedAhead]:
    with StartedAhead(at_once=2, certain=3) as started:
        yield started


class Maker:
    """Makes sets of one worker, and keeps them."""

    def __init__(self, sampling: TrialSampling, context: Context) -> None:
        self.made: dict[int, SamplingWorker] = {}
        self._sampling = sampling
        self._context = context

    def __call__(self, number: int) -> list[SamplingWorker]:
        self.made[number] = SamplingWorker([self._sampling], self._context, f"ahead-{number}.log")
        return [self.made[number]]

    def process(self, number: int) -> psutil.Process:
        return psutil.Process(self.made[number]._process.pid)


def stops(process: psutil.Process) -> bool:
    """Whether it is stopped, or is as soon as it gets a core to take the signal."""
    until = time.monotonic() + LIMIT_S
    while process.status() != psutil.STATUS_STOPPED and time.monotonic() < until:
        time.sleep(0.001)
    return process.status() == psutil.STATUS_STOPPED


@pytest.mark.parametrize(
    ("workers", "nbytes", "cores", "sets"),
    [(2, GIB, 2, 1), (2, GIB, 9, 4), (4, GIB, 2, 1), (1, 0, 3, 3), (2, 3 * GIB, 16, 2), (2, 100 * GIB, 16, 1)],
)
def test_sets_have_a_core_for_each_worker_and_half_of_the_memory(workers, nbytes, cores, sets) -> None:
    assert sets_at_once(workers, nbytes, cores, available=12 * GIB) == sets


def test_all_that_start_together_have_imported_and_are_stopped(ahead, sampling, context) -> None:
    make = Maker(sampling, context)
    (first,) = ahead.take(0, [sampling], make)
    assert sorted(make.made) == [0, 1]
    assert all(stops(make.process(number)) for number in (0, 1))
    pid = make.process(1).pid
    first.close()
    (second,) = ahead.take(1, [sampling], make)
    assert (second, second._process.pid) == (make.made[1], pid)
    assert sorted(make.made) == [0, 1], "what was started is used first"


def test_no_more_are_started_ahead_than_are_certain(ahead, sampling, context) -> None:
    make = Maker(sampling, context)
    for number in range(5):
        ahead.take(number, [sampling], make)[0].close()
        assert max(make.made) == max(1, number)


def test_the_limit_of_time_does_not_run_while_a_process_waits(ahead, sampling, context, monkeypatch) -> None:
    make = Maker(sampling, context)
    ahead.take(0, [sampling], make)
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 2 * LIMIT_S, sleep=time.sleep)
    monkeypatch.setattr(launcher, "time", later)
    (second,) = ahead.take(1, [sampling], make)
    second.prepare()
    assert sampling.failure is None
    assert second.trials == [sampling]


def test_what_was_not_taken_is_ended(sampling, context) -> None:
    make = Maker(sampling, context)
    with StartedAhead(at_once=2, certain=2) as started:
        started.take(0, [sampling], make)
        processes = [make.process(number) for number in (0, 1)]
    assert not any(process.is_running() for process in processes)


def test_a_trial_that_failed_meanwhile_has_no_process(ahead, sampling, context) -> None:
    make = Maker(sampling, context)
    ahead.take(0, [sampling], make)
    process = make.process(1)
    assert ahead.take(1, [], make) == []
    assert not process.is_running()


def test_a_waiting_process_that_dies_is_replaced_once(ahead, sampling, context) -> None:
    make = Maker(sampling, context)
    ahead.take(0, [sampling], make)
    process = make.process(1)
    process.kill()
    wait_until(lambda: process.status() == psutil.STATUS_ZOMBIE, "it does not die")
    (second,) = ahead.take(1, [sampling], make)
    second.prepare()
    assert (sampling.failure, second.trials) == (None, [sampling])
    (finding,) = sampling._findings
    assert (finding.kind, finding.disbelieved) == ("process", False)
    assert "died while it waited" in finding.detail


@contextmanager
def endless_imports() -> Iterator[None]:
    """Workers that are started in the block import for ever, so that none of them has answered when it is killed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(MAINS, "rnnbench.worker", signal.pause)
        yield


def dies_when_it_is_asked(worker: SamplingWorker, patch: pytest.MonkeyPatch) -> None:
    """It lives until somebody waits for its import."""
    process = worker._process
    assert process is not None
    ready = process.ready

    def killed(*arguments, **how):
        os.kill(process.pid, signal.SIGKILL)
        return ready(*arguments, **how)

    patch.setattr(process, "ready", killed)


def test_a_process_that_dies_during_its_import_is_replaced_once(sampling, context, monkeypatch) -> None:
    (first,) = Maker(sampling, context)(0)
    with endless_imports():
        first.start()
    dies_when_it_is_asked(first, monkeypatch)
    first.prepare()
    assert (sampling.failure, first.trials) == (None, [sampling])
    assert "died during its import, before it had a program (died of SIGKILL" in sampling._findings[0].detail
    first.close()


def test_where_the_next_one_dies_too_its_trials_have_failed(sampling, context, monkeypatch) -> None:
    start = SamplingWorker.start

    def start_one_that_dies(worker: SamplingWorker) -> None:
        start(worker)
        dies_when_it_is_asked(worker, monkeypatch)

    monkeypatch.setattr(SamplingWorker, "start", start_one_that_dies)
    (first,) = Maker(sampling, context)(0)
    with endless_imports():
        first.prepare()
    assert sampling.failure is not None
    assert (sampling.failure.outcome, first.trials) == ("crashed", [])
    assert len(sampling._findings) == 1
    first.close()


def test_while_a_block_is_timed_every_other_process_is_stopped(checked, context, monkeypatch) -> None:
    monkeypatch.setattr(pair_sampling, "BLOCK_S", 0.002)
    monkeypatch.setattr(judged_pairs, "sets_at_once", lambda *_: 2)
    started: list[SamplingWorker] = []
    stopped: list[bool] = []
    start, sample = SamplingWorker.start, SamplingWorker._sample

    def note_start(worker: SamplingWorker) -> None:
        started.append(worker)
        start(worker)

    def look(worker, *arguments):
        living = [one for one in started if one._process is not None and one is not worker]
        stopped.extend(stops(psutil.Process(one._process.pid)) for one in living)
        return sample(worker, *arguments)

    monkeypatch.setattr(SamplingWorker, "start", note_start)
    monkeypatch.setattr(SamplingWorker, "_sample", look)
    (judged,) = judge_trials([(checked, checked)], (context, context), PairBudget(1e9, 0.5, pairs=2), seed=0)
    assert [len(ratios) for ratios in judged.ratios.values()] == [2, 2]
    assert len(started) == 4
    assert len(stopped) > 4
    assert all(stopped)
