"""A worker in which several trials are sampled: what one of them does is charged to it alone."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from harness_trials import context_in, make_trial, run_trials
from rnnbench_fake import FAULTY_CHUNK, HELD

from rnnbench.cases import Limits
from rnnbench.devices import KINDS
from rnnbench.measure import PATHS, Block, BlockPlan
from rnnbench.plan import examine
from rnnbench.sampling import PathBlocks, SamplingWorker, TrialSampling
from rnnbench.sampling.added_memory import AddedMemory
from rnnbench.sampling.sampling_worker import SHARED_DEATH, STOPPED, TRIES
from rnnbench.worker import DeviceTime, Verify, WorkerError

MEMORY = Limits(memory=170 << 20)
"""A worker has some 60 MiB resident before it loads a program."""


@pytest.fixture(scope="module")
def growing(tmp_path_factory):
    trials = {chunk: make_trial("fake:sample-grows", chunk=chunk, limits=MEMORY) for chunk in (2, FAULTY_CHUNK)}
    _, records = run_trials(list(trials.values()), tmp_path_factory.mktemp("results"))
    return {chunk: records[trial.id] for chunk, trial in trials.items()}


@pytest.mark.proof
def test_a_trial_that_grows_while_it_is_sampled_ends_at_its_limit_of_memory(growing):
    """Each block is over long before a first look at the worker's memory would be due."""
    record = growing[FAULTY_CHUNK]
    assert (record.outcome, record.stage) == ("out-of-memory", "sample")
    assert "MiB resident, over its limit of" in record.reason


def test_the_trial_beside_it_is_sampled_by_another_worker(growing):
    assert growing[2].outcome == "ok", growing[2].reason
    assert growing[2].latency("bound") is not None
    assert growing[2].timing.dispatch_floor.unmeasured == ""


@pytest.mark.proof
def test_what_the_other_trials_of_a_worker_hold_is_not_charged_to_a_trial(tmp_path):
    trials = [make_trial("fake:holds-much", chunk=chunk, limits=MEMORY) for chunk in (2, 3, 4)]
    assert MEMORY.memory < 3 * 8 * HELD
    _, records = run_trials(trials, tmp_path)
    assert [record.outcome for record in records.values()] == ["ok"] * 3, [record.reason for record in records.values()]


def growing_by(grown: int) -> SimpleNamespace:
    """A process to which a command adds so many resident bytes."""
    resident = iter([0, grown])
    return SimpleNamespace(resident=lambda look: next(resident), ask=lambda *_: None)


def test_a_trial_s_limit_is_raised_by_what_other_trials_added_and_not_by_what_it_takes_itself():
    """MiB that are resident before and after each call of two trials in turn."""
    resident, limits, memory = iter([60, 160, 160, 165, 165, 165]), [], AddedMemory(buffer=8 << 20)
    process = SimpleNamespace(
        resident=lambda look: next(resident) << 20, ask=lambda command, seconds, memory: limits.append(memory >> 20)
    )
    first, second = (make_trial(chunk=chunk, limits=MEMORY) for chunk in (2, 4))
    for trial in (first, second, first):
        memory.ask(process, trial, Verify(trial))
    assert limits == [170 + 8, 170 + 8 + 100, 170 + 8 + 5], "and by the suite's own buffer"


@pytest.mark.parametrize("killed_by_suite", [True, False])
def test_what_other_trials_hold_is_told_beside_the_limit_that_it_raised(killed_by_suite):
    """The limit at which the kernel kills is another one."""

    def fail(*_: object) -> None:
        raise WorkerError("out-of-memory", "its end", alive=False, cpu_s=1.0 if killed_by_suite else None)

    trial, memory = make_trial(chunk=2), AddedMemory(buffer=0)
    memory.ask(growing_by(70 << 20), make_trial(chunk=4), Verify(trial))
    with pytest.raises(WorkerError) as raised:
        memory.ask(SimpleNamespace(resident=lambda look: 0, ask=fail), trial, Verify(trial))
    told = "its end; 70 MiB of both belong to other trials in its process"
    assert raised.value.reason == (told if killed_by_suite else "its end")


def test_streams_may_take_half_of_the_memory_that_their_trial_has_left():
    commands, sampling, memory = [], SimpleNamespace(trial=make_trial(limits=MEMORY)), AddedMemory(buffer=0)
    memory.ask(growing_by(70 << 20), sampling.trial, Verify(sampling.trial))
    worker = SimpleNamespace(
        _memory=memory,
        _ask_or_restart=lambda _, command, *__: commands.append(command) or SimpleNamespace(streams=3),
    )
    assert SamplingWorker.open_streams(worker, sampling, 4, "streams") == 3
    assert [command.room >> 20 for command in commands] == [(170 - 70) // 2]


def test_a_worker_that_opens_more_streams_than_were_requested_fails_its_trial(tmp_path):
    """The search would go on with a number that it never asked for."""
    sampling = TrialSampling(examine(make_trial()))
    worker = SamplingWorker([sampling], context_in(tmp_path), "sample.log")
    worker._ask_or_restart = lambda *_: SimpleNamespace(streams=1_000_000_000)
    assert worker.open_streams(sampling, 4, "streams") == 0
    assert sampling.failure.reason == "1000000000 streams are open, and 4 were requested"


def test_a_new_process_has_nothing_of_what_was_in_the_one_before(tmp_path):
    first, second = (TrialSampling(examine(make_trial(chunk=chunk))) for chunk in (2, 4))
    worker = SamplingWorker([first, second], context_in(tmp_path), "sample.log")
    worker._memory.ask(growing_by(1 << 30), second.trial, Verify(second.trial))
    worker._ran.add(second.trial.id)
    worker.close()
    limits = []
    process = SimpleNamespace(resident=lambda look: 0, ask=lambda command, seconds, memory: limits.append(memory))
    worker._memory.ask(process, first.trial, Verify(first.trial))
    assert limits == [first.trial.limits.memory]
    assert worker._shared_death(first, WorkerError("crashed", "it died", alive=False)) == "it died"


@pytest.mark.parametrize("outcome", ["crashed", "timed-out", "out-of-memory"])
def test_what_ran_before_may_have_led_to_an_end_and_not_to_a_lack_of_memory(tmp_path, outcome):
    """Which is counted by trial."""
    first, second = (TrialSampling(examine(make_trial(chunk=chunk))) for chunk in (2, 4))
    worker = SamplingWorker([first, second], context_in(tmp_path), "sample.log")
    worker._ran.add(second.trial.id)
    reason = worker._shared_death(first, WorkerError(outcome, "it ended", alive=False))
    assert ("1 other trial had run in its process" in reason) == (outcome != "out-of-memory")
    assert (SHARED_DEATH in second._findings) == (outcome != "out-of-memory")


@pytest.mark.parametrize(("stops", "asked"), [(0, 1), (1, 2), (2, 3), (3, 3)])
def test_calls_are_timed_again_if_the_suite_was_stopped_meanwhile(tmp_path, stops, asked):
    """The worker may have been stopped in one of them, which would then take an hour."""
    sampling = TrialSampling(examine(make_trial()))
    worker = SamplingWorker([sampling], context_in(tmp_path), "sample.log")
    worker._watch = SimpleNamespace(contradiction=lambda *_: "")
    blocks = []

    def ask(*_):
        blocks.append(Block(0.0, 0, np.full(3, 1e-5), 4, elapsed=1.0))
        worker._process = SimpleNamespace(stopped_s=3600.0 if len(blocks) <= stops else 0.0)
        return blocks[-1]

    worker._ask_or_restart = ask
    assert worker.sample(sampling, PathBlocks(PATHS["bound"]), BlockPlan(0.001)).seconds is blocks[-1].seconds
    assert (len(blocks), worker.stops) == (asked, stops)
    assert (STOPPED in sampling._findings) == (stops == TRIES)
    assert STOPPED.disbelieved


def test_trials_after_one_that_loses_the_process_in_its_events_have_no_device_time(tmp_path, monkeypatch):
    """All of their figures are there by then, so that no process is started for this one. The other trial has it."""
    monkeypatch.setitem(KINDS, "cpu", replace(KINDS["cpu"], open_clock=lambda stream: lambda call: 0.0))
    timed, loses, missing = samplings = [TrialSampling(examine(make_trial(chunk=chunk))) for chunk in (1, 2, 4)]
    worker = SamplingWorker(list(samplings), context_in(tmp_path), "sample.log")
    asked = []

    def ask(command, seconds, memory):
        asked.append(command.trial)
        if command.trial is loses.trial:
            raise WorkerError("crashed", "died of SIGABRT", alive=False)
        return DeviceTime({"device_time_per_step": 1e-6})

    nothing = dict.fromkeys(("pause", "resume", "close"), lambda: None)
    worker._process = SimpleNamespace(ask=ask, resident=lambda look: 0, take_findings=tuple, **nothing)
    worker._watch = SimpleNamespace(begin=lambda name: None, end=lambda: None)
    worker._time_on_device()
    assert asked == [timed.trial, loses.trial]
    assert (worker.trials, worker._process) == (samplings, None)
    assert [sampling.device_time for sampling in samplings] == [{"device_time_per_step": 1e-6}, {}, {}]
    assert "died of SIGABRT; 1 other trial had run in its process" in loses.unmeasured["device_time"]
    assert (loses.failure, missing._missed_device_time) == (None, True)


def test_a_worker_keeps_its_process_as_long_as_it_has_a_trial(tmp_path):
    kept, other = (TrialSampling(examine(make_trial(chunk=chunk))) for chunk in (2, 4))
    worker = SamplingWorker([kept, other], context_in(tmp_path), "sample.log")
    closed = []
    worker._process = SimpleNamespace(close=lambda: closed.append(True))
    worker.keep([kept])
    assert (worker.trials, closed) == ([kept], [])
    worker.keep([])
    assert (worker.trials, closed) == ([], [True])


def test_an_abandoned_worker_starts_no_process_and_fails_no_trial(tmp_path):
    """Another thread may abandon it between any two of its steps."""
    sampling = TrialSampling(examine(make_trial()))
    worker = SamplingWorker([sampling], context_in(tmp_path), "sample.log")
    worker.abandon()
    worker.start()
    worker.import_framework()
    worker.prepare()
    assert worker.sample(sampling, PathBlocks(PATHS["bound"]), BlockPlan(0.001)) is None
    assert worker._process is None
    assert sampling.failure is None
