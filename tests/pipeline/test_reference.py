"""The reference has a limit of its own. Where it is too slow, this is said, and no other trial begins it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harness_trials import SilentObserver, context_in, make_trial

from rnnbench.cases import Limits, Trial
from rnnbench.pipeline.check import CheckPool
from rnnbench.pipeline.reference import compute_reference
from rnnbench.plan import begin_run, examine_all
from rnnbench.results import Store, read_run
from rnnbench.worker import Command, ComputeReference, ReferenceFigures, WorkerError


class FakeWorker:
    """Answers as a worker does whose reference takes so long."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked: list[Command[Any]] = []

    def ask(self, command: Command[Any], timeout: float, memory: int | None = None) -> Any:
        self.asked.append(command)
        if self.seconds > timeout:
            raise WorkerError("timed-out", "killed", alive=False)
        return ReferenceFigures(self.seconds)


def limited(seconds: float, **values: Any) -> Trial:
    return make_trial(limits=Limits(reference=seconds), **values)


@pytest.fixture
def too_slow(tmp_path: Path) -> Callable[[Trial], bool]:
    """Whether the reference of a trial is begun, and ended by its limit."""

    def is_begun(trial: Trial) -> bool:
        worker = FakeWorker(10)
        with pytest.raises(WorkerError) as raised:
            compute_reference(trial, worker, context_in(tmp_path))
        assert raised.value.outcome == "timed-out"
        assert f"more than {trial.limits.reference:g} s (limits.reference)" in str(raised.value)
        return worker.asked == [ComputeReference(trial)]

    return is_begun


def test_a_reference_that_was_too_slow_is_not_begun_again(
    too_slow: Callable[[Trial], bool],
) -> None:
    assert too_slow(limited(3))
    assert not too_slow(limited(3))
    assert not too_slow(limited(2))
    assert too_slow(limited(4)), "its limit is longer"
    assert too_slow(limited(3, chunk=2)), "its ring is another one"


def test_checks_have_more_time_where_the_reference_took_long(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    assert compute_reference(limited(600), FakeWorker(0), context) == 0
    assert compute_reference(limited(600), FakeWorker(7), context) == 70
    assert compute_reference(limited(600), FakeWorker(400), context) == 600


def test_an_observer_is_told_of_a_reference_that_is_begun(tmp_path: Path) -> None:
    stages: list[str] = []
    context = replace(context_in(tmp_path), on_stage=lambda trial, stage: stages.append(stage))
    compute_reference(limited(3), FakeWorker(0), context)
    with pytest.raises(WorkerError):
        compute_reference(limited(3), FakeWorker(10), context)
    with pytest.raises(WorkerError, match="Another trial has shown this"):
        compute_reference(limited(3), FakeWorker(10), context)
    assert stages == ["reference"] * 2


@pytest.mark.usefixtures("few_checks")
def test_a_trial_with_a_slow_reference_says_so_and_others_go_on(tmp_path: Path) -> None:
    slow = limited(1e-6, chunk=2)
    trials = [slow, replace(slow, seed=1), replace(slow, target=make_trial("fake:wrong-bound").target), make_trial()]
    plan = begin_run(trials, Store(tmp_path))
    CheckPool(plan, context_in(plan.folder), SilentObserver()).run(jobs=1, examined=examine_all(plan.trials))
    records = {record.trial: record for record in read_run(plan.folder).records}
    first, other_seed, other_route, honest = (records[trial.id] for trial in trials)
    assert honest.outcome == "ok"
    for late in (first, other_seed, other_route):
        assert (late.outcome, late.stage) == ("timed-out", "check")
        assert "so its program was not checked. Give it more, as in --set limits.reference=" in late.reason
    ended = [late for late in (first, other_route) if late.reason.endswith("Another trial has shown this")]
    assert len(ended) == 1, "of two trials with the same reference, one has begun it"


class StoppedWorker:
    """Uses nothing of the processor, and is killed at its limit."""

    def ask(self, command: Command[Any], timeout: float, memory: int | None = None) -> Any:
        raise WorkerError("timed-out", "killed", alive=False, cpu_s=0.01)


def test_a_worker_that_was_stopped_does_not_make_the_reference_of_others_too_slow(
    tmp_path: Path, too_slow: Callable[[Trial], bool]
) -> None:
    trial = limited(3)
    with pytest.raises(WorkerError, match=r"used 0.01 s of the processor: it hung, was stopped"):
        compute_reference(trial, StoppedWorker(), context_in(tmp_path))
    assert too_slow(trial), "it is begun"
