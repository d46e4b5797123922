"""A worker in which several trials are sampled, and which is lost: it is replaced, and the trial is named that lost it.

The workers are forked. `test_sampling_worker.py` has started ones, whose memory is looked at.
"""

from __future__ import annotations

import os
import signal

import pytest
from harness_trials import check_trial, context_in, make_trial, run_trials
from rnnbench_fake import FAULTY_CHUNK
from waiting import wait_until

from rnnbench.measure import PATHS, BlockPlan
from rnnbench.sampling import PathBlocks, SamplingWorker, TrialSampling
from rnnbench.sampling.sampling_worker import SHARED_DEATH, UNCHECKED

pytestmark = pytest.mark.usefixtures("few_checks")


def test_a_trial_that_loses_the_device_does_not_fail_the_trial_beside_it(tmp_path):
    """Every later call fails in a process whose GPU was lost, whichever program it is of."""
    loses, other = (make_trial("fake:sample-raises", chunk=chunk) for chunk in (FAULTY_CHUNK, 2))
    _, records = run_trials([loses, other], tmp_path)
    assert (records[loses.id].outcome, records[loses.id].stage) == ("run-failed", "sample")
    assert "lost its device" in records[loses.id].reason
    assert records[other.id].outcome == "ok", records[other.id].reason


@pytest.mark.proof
def test_a_worker_in_which_a_program_asked_to_exit_is_replaced(tmp_path):
    context = context_in(tmp_path)
    trials = [check_trial(make_trial("fake:sample-exits", chunk=chunk), context) for chunk in (2, 4)]
    exits, other = samplings = [TrialSampling(checked.examined) for checked in trials]
    worker = SamplingWorker(list(samplings), context, "sample.log")
    worker.start()
    worker.prepare()
    first = worker._process
    assert worker.sample(exits, PathBlocks(PATHS["bound"]), BlockPlan(0.001)) is None
    assert (exits.failure.outcome, exits.failure.stage) == ("crashed", "sample")
    assert "other trial" not in exits.failure.reason, "its own call asked for it"
    assert worker.trials == [other]
    assert worker._process is not first
    assert worker.sample(other, PathBlocks(PATHS["public"]), BlockPlan(0.001)) is not None
    worker.close()


def test_a_worker_that_is_killed_while_it_is_stopped_is_replaced_once_and_no_trial_is_blamed(tmp_path):
    context = context_in(tmp_path)
    trials = [check_trial(make_trial(chunk=chunk), context) for chunk in (2, 4)]
    one, other = samplings = [TrialSampling(checked.examined) for checked in trials]
    worker = SamplingWorker(list(samplings), context, "sample.log")
    try:
        worker.start()
        worker.prepare()
        _kill(worker)
        assert worker.sample(one, PathBlocks(PATHS["bound"]), BlockPlan(0.001)) is not None
        assert worker.sample(other, PathBlocks(PATHS["bound"]), BlockPlan(0.001)) is not None
        assert worker.trials == samplings
        told = "a process for its samples died while it was stopped; another one took its place"
        assert all(told in [finding.detail for finding in sampling._findings] for sampling in samplings)
        assert not any(UNCHECKED in sampling._findings for sampling in samplings), "nothing was timed there"
        _kill(worker)
        assert worker.sample(one, PathBlocks(PATHS["bound"]), BlockPlan(0.001)) is None
        assert one.failure.outcome == "crashed"
        assert one.failure.reason.endswith("; 1 other trial had run in its process, and may be the cause")
        assert worker.sample(other, PathBlocks(PATHS["bound"]), BlockPlan(0.001)) is not None
        assert SHARED_DEATH in other._findings
        assert SHARED_DEATH not in one._findings
        assert UNCHECKED in other._findings
        assert UNCHECKED not in one._findings, "it has failed"
    finally:
        worker.close()


def test_timed_calls_whose_process_is_killed_before_they_are_checked_are_told(tmp_path):
    context = context_in(tmp_path)
    trials = [check_trial(make_trial(chunk=chunk), context) for chunk in (2, 4)]
    checked, timed = samplings = [TrialSampling(trial.examined) for trial in trials]
    worker = SamplingWorker(list(samplings), context, "sample.log")
    try:
        worker.start()
        worker.prepare()
        assert worker.sample(checked, PathBlocks(PATHS["bound"]), BlockPlan(0.001)) is not None
        worker.verify()
        assert worker.sample(timed, PathBlocks(PATHS["bound"]), BlockPlan(0.001)) is not None
        _kill(worker)
        assert worker.sample(checked, PathBlocks(PATHS["bound"]), BlockPlan(0.001)) is not None
        assert UNCHECKED in timed._findings
        assert UNCHECKED not in checked._findings
    finally:
        worker.close()


def _kill(worker):
    os.kill(worker._process.pid, signal.SIGKILL)
    wait_until(lambda: worker._process.has_ended, "it outlives SIGKILL")
