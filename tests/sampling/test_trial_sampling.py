"""What is kept of a trial while it is sampled: the worst check, each finding once, and the largest of each figure."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness_trials import make_trial

from rnnbench.measure import EnergyUse
from rnnbench.plan import examine
from rnnbench.results import CheckResult, Finding, FindingKind
from rnnbench.sampling.trial_sampling import MISSED, TrialSampling
from rnnbench.stages import Built, Checked, Failure, RoofReadings, WorkerState
from rnnbench.worker import DeviceTime, Verified, WorkerError

NO_ROOF = RoofReadings()
PASSED, WORSE = (CheckResult(verdict="pass", rounding=rounding) for rounding in (1.0, 3.0))
FAILED, FAILED_MORE = (CheckResult(verdict="fail", detail=f"off by {by}", rounding=float(by)) for by in (7, 9))


@pytest.fixture
def sampling() -> TrialSampling:
    return TrialSampling(examine(make_trial()))


def sampled(sampling: TrialSampling, **changes: object):
    return sampling.sampled(replace(Checked(Built(sampling.examined)), **changes), NO_ROOF)


@pytest.mark.parametrize(
    ("results", "kept"),
    [
        ((PASSED, WORSE), WORSE),
        ((WORSE, PASSED), WORSE),
        ((PASSED, FAILED), FAILED),
        ((FAILED, WORSE), FAILED),
        ((FAILED, FAILED_MORE), FAILED),
    ],
    ids=["worse", "better", "failed", "passed after it failed", "failed again"],
)
def test_the_worst_result_of_the_processes_counts_and_the_first_that_failed(sampling, results, kept) -> None:
    for result in results:
        sampling.note_timed(result)
    assert sampled(sampling).timed == kept
    assert sampling.has_failed == (kept.verdict == "fail")
    assert not sampling.has_failed or kept.detail in sampling.failure.reason


def test_a_trial_that_died_is_not_called_nonconforming_by_a_process_that_is_checked_later(sampling) -> None:
    sampling.fail(WorkerError("crashed", "died of SIGSEGV", alive=False))
    sampling.note_timed(FAILED)
    assert sampling.failure == Failure("sample", "crashed", "died of SIGSEGV")


def test_the_largest_of_each_metric_is_kept(sampling) -> None:
    for metrics in ({"open_files": 9.0}, {"open_files": 7.0, "child_processes": 1.0}):
        sampling.note_verified(Verified(PASSED, WorkerState(1, (0,)), 1, {}, metrics))
    assert sampled(sampling).state.metrics == {"open_files": 9.0, "child_processes": 1.0}


def test_a_figure_that_is_lost_leaves_nothing_of_it_and_all_else(sampling) -> None:
    sampling.energy.append(EnergyUse(1.0, 1.0, 3))
    sampling.device_time["device_time_per_step"] = 1e-3
    sampling.lose("energy", WorkerError("crashed", "died of SIGABRT", alive=False))
    done = sampled(sampling)
    assert (done.energy, done.failure) == ((), None)
    assert done.unmeasured == {"energy": "crashed while it was measured: died of SIGABRT"}
    assert [finding.detail for finding in done.findings] == [
        "its process ended (crashed) while energy was measured; the results of the calls that had been timed in this "
        "process were not checked before"
    ]
    assert sampling.device_time


def test_a_device_time_that_one_process_missed_may_be_of_another(sampling) -> None:
    sampling.note_verified(Verified(PASSED, WorkerState(1, (0,)), 1))
    sampling.miss_device_time()
    assert sampled(sampling).unmeasured == {"device_time": MISSED}
    for seconds in (2e-3, 1e-3):
        sampling.note_device_time(DeviceTime({"device_time_per_step": seconds}))
    done = sampled(sampling)
    assert (done.unmeasured, done.state.metrics) == ({}, {"device_time_per_step": 2e-3})


def test_findings_and_reasons_of_all_stages_are_kept_and_each_once(sampling) -> None:
    of_check, of_sampling = (Finding(kind=FindingKind.TIME, detail=text) for text in ("checked", "sampled"))
    for _ in range(2):
        sampling.note_findings([of_sampling, of_sampling])
    sampling.note_unmeasured({"cold": "no room"})
    done = sampled(sampling, findings=(of_check,), unmeasured={"device_memory": "the driver does not tell"})
    assert done.findings == (of_check, of_sampling)
    assert done.unmeasured == {"device_memory": "the driver does not tell", "cold": "no room"}
