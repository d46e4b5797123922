"""A worker that hangs ends at its trial's limit, whatever it was doing. It ignores signals and holds Python's lock."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from harness_trials import check_trial, context_in, make_trial
from rnnbench_fake import HANGING_PATHS, HANGS_IN
from waiting import ended, started_from_now, wait_until

from rnnbench.cases import Limits, Measure
from rnnbench.measure import PATHS, BlockPlan
from rnnbench.plan import close_adapters, examine
from rnnbench.sampling import PathBlocks, SamplingWorker, TrialSampling
from rnnbench.worker import WorkerError, start_trial_worker

pytestmark = pytest.mark.usefixtures("few_checks")

LIMIT_S = 1.0
"""Each command that does not hang takes some milliseconds."""
MEASURE = Measure(budget=0.05, processes=1, settings={"cold": 1.0, "period": 0.001})
COMMANDS = ("prepare", "sample_state_copy", "verify", *HANGING_PATHS)
FURTHER = {"sample_state_copy": "state_copy", "cold": "cold", "paced": "paced"}
"""The commands for figures beside the latencies that every trial has, and these figures."""
NO_ANSWER = "no answer within 1 s, the rest of its limit; killed"


@pytest.fixture(scope="module")
def hung(tmp_path_factory):
    """The trial that hangs in each command of sampling, and the processes that were started for all of them."""
    started = started_from_now()

    def sampled(where: str) -> TrialSampling:
        context = context_in(tmp_path_factory.mktemp(where))
        examined = examine(make_trial(f"fake:{HANGS_IN}{where}", measure=MEASURE, limits=Limits(trial=LIMIT_S)))
        sampling = TrialSampling(examined, is_built=False)
        worker = SamplingWorker([sampling], context, "log")
        worker.prepare()
        worker.sample_state_copy(sampling, 0.001)
        for path in HANGING_PATHS:
            worker.sample(sampling, PathBlocks(PATHS[path], {"cold": 1.0, "paced": 0.001}.get(path)), BlockPlan(0.001))
        worker.verify()
        worker.close()
        return sampling

    with ThreadPoolExecutor(3) as pool:
        samplings = dict(zip(COMMANDS, pool.map(sampled, COMMANDS), strict=True))
    close_adapters()
    return samplings, started()


@pytest.mark.parametrize("where", [where for where in COMMANDS if where not in FURTHER])
def test_a_trial_that_hangs_while_it_is_sampled_is_timed_out(hung, where):
    failure = hung[0][where].failure
    assert (failure.stage, failure.outcome) == ("sample", "timed-out")
    assert failure.reason == NO_ANSWER


@pytest.mark.parametrize("where", FURTHER)
def test_a_trial_that_hangs_in_a_further_figure_has_all_but_this_figure(hung, where):
    assert hung[0][where].failure is None
    assert hung[0][where].unmeasured == {FURTHER[where]: f"timed-out while it was measured: {NO_ANSWER}"}


def test_no_process_of_a_trial_that_hangs_is_left(hung):
    wait_until(lambda: ended(hung[1]), "a process of a trial is left")


def test_a_trial_that_hangs_while_it_is_loaded_is_timed_out(tmp_path):
    failure = check_trial(make_trial(f"fake:{HANGS_IN}load", limits=Limits(trial=1.5)), context_in(tmp_path)).failure
    assert failure.outcome == "timed-out"


def test_a_worker_that_hangs_in_its_import_is_timed_out(tmp_path):
    worker = start_trial_worker(
        examine(make_trial(f"fake:{HANGS_IN}import_framework")), context_in(tmp_path).folders, "log"
    )
    with pytest.raises(WorkerError, match="no answer within 1 s") as raised:
        worker.ready(LIMIT_S)
    assert (raised.value.outcome, raised.value.alive) == ("timed-out", False)
