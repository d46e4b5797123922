"""A worker in which several trials are sampled: what one of them does is charged to it alone."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import pytest
from harness_trials import make_trial, run_trials
from rnnbench_fake import FAULTY_CHUNK, HELD

from rnnbench.cases import Limits
from rnnbench.sampling import SamplingWorker
from rnnbench.worker import Verify

MEMORY = Limits(memory=170 << 20)
"""A worker has some 60 MiB resident before it loads a program."""


@pytest.fixture(scope="module")
def growing(tmp_path_factory):
    trials = {chunk: make_trial("fake:sample-grows", chunk=chunk, limits=MEMORY) for chunk in (2, FAULTY_CHUNK)}
    _, records = run_trials(list(trials.values()), tmp_path_factory.mktemp("results"))
    return {chunk: records[trial.id] for chunk, trial in trials.items()}


def test_a_trial_that_grows_while_it_is_sampled_ends_at_its_limit_of_memory(growing):
    """Each block is over long before a first look at the worker's memory would be due."""
    record = growing[FAULTY_CHUNK]
    assert (record.outcome, record.stage) == ("out-of-memory", "sample")
    assert "MiB resident, over its limit of" in record.reason


def test_the_trial_beside_it_is_sampled_by_another_worker(growing):
    assert growing[2].outcome == "ok", growing[2].reason
    assert growing[2].latency("bound") is not None
    assert growing[2].timing.dispatch_floor.unmeasured == ""


def test_what_the_other_trials_of_a_worker_hold_is_not_charged_to_a_trial(tmp_path):
    trials = [make_trial("fake:holds-much", chunk=chunk, limits=MEMORY) for chunk in (2, 3, 4)]
    assert MEMORY.memory < 3 * 8 * HELD
    _, records = run_trials(trials, tmp_path)
    assert [record.outcome for record in records.values()] == ["ok"] * 3, [record.reason for record in records.values()]


def test_a_trial_s_limit_is_raised_by_what_other_trials_added_and_not_by_what_it_takes_itself():
    """MiB that are resident before and after each call of two trials in turn."""
    resident, limits, added = iter([60, 160, 160, 165, 165, 165]), [], defaultdict(int)
    process = SimpleNamespace(
        resident=lambda look: next(resident) << 20, ask=lambda command, seconds, memory: limits.append(memory >> 20)
    )
    worker = SimpleNamespace(_added=added, _buffer=0)
    first, second = (SimpleNamespace(trial=make_trial(chunk=chunk, limits=MEMORY)) for chunk in (2, 4))
    for sampling in (first, second, first):
        SamplingWorker._ask_within_limits(worker, process, sampling, Verify(sampling.trial))
    assert limits == [170, 170 + 100, 170 + 5]
