"""Small trials for tests of the stages that a trial passes through, and running them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rnnbench import pipeline
from rnnbench.cases import ExpectedFailure, Limits, Measure, State, Strategy, Target, Trial
from rnnbench.measure.wall_time import WallTime
from rnnbench.pipeline.batches import Comparing, build_and_check_all
from rnnbench.plan import RunPlan, begin_run, examine
from rnnbench.results import Store, read_run, write_info
from rnnbench.results.record import Record
from rnnbench.rnn.spec import Model
from rnnbench.sampling import Context
from rnnbench.stages import Checked
from rnnbench.worker import RunFolders


class SilentObserver:
    """Keeps the stages and records that it is told of."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, str]] = []
        self.records: list[Record] = []

    def stage(self, trial: Trial, stage: str) -> None:
        self.stages.append((trial.target.route, stage))

    def finished(self, record: Record, side: str = "") -> None:
        self.records.append(record)


def begin_with_seed(trials: Sequence[Trial], store: Store, seed: int = 0) -> RunPlan:
    """A run that has begun, with this seed in the place of a drawn one."""
    plan = replace(begin_run(trials, store), seed=seed)
    write_info(plan.folder, read_run(plan.folder).info.model_copy(update={"seed": seed}))
    return plan


def run_trials(trials: Sequence[Trial], folder: Path, seed: int = 0) -> tuple[Path, dict[str, Record]]:
    """A whole run under `folder`: its own folder, and its records by trial."""
    plan = begin_with_seed(trials, Store(folder), seed)
    pipeline.run_trials(plan, SilentObserver())
    return plan.folder, {record.trial: record for record in read_run(plan.folder).records}


def context_in(folder: Path) -> Context:
    """What stages need, with the folders of a run in `folder`."""
    return Context(RunFolders.of_run(folder), WallTime(), SilentObserver().stage)


def check_trial(trial: Trial, context: Context, compare: Comparing = lambda checked, _: checked) -> Checked:
    """Build and check a trial in a worker of its own."""
    return next(build_and_check_all([(examine(trial), context)], compare))


def make_trial(
    target: str = "fake:honest",
    time: str = "looped",
    state: State = "stitched",
    chunk: int = 4,
    measure: Measure = Measure(budget=0.05, processes=1),  # noqa: B008 frozen
    limits: Limits = Limits(),  # noqa: B008 frozen
) -> Trial:
    backend, route = target.split(":")
    return Trial(
        case="harness",
        target=Target(backend, route),
        model=Model(cell="lstm", input=3, hidden=4),
        strategy=Strategy(time, state, chunk),
        steps=12,
        batch=1,
        dtype="float32",
        device="cpu",
        threads=1,
        seed=0,
        limits=limits,
        measure=measure,
    )


def expected_failure(**changed: Any) -> ExpectedFailure:
    """An entry by which every trial of the fake backend fails the check `values`, with these changes."""
    entry = {"place": "expectations.yaml:3:5", "backend": "fake", "version": {}, "route": (), "where": {}}
    entry |= {"check": ("values",), "also": (), "outcome": None, "reason": "Known."}
    return ExpectedFailure(**entry | {"upstream": "https://example.org/1"} | changed)


def assert_all_figures(record: Record) -> None:
    """A trial that went well has been built, and has every latency that a case asks for by itself."""
    assert (record.outcome, record.reason) == ("ok", "")
    timing = record.timing
    assert timing.build_s is not None
    assert timing.latency.get("bound") is not None
    assert timing.latency.get("public") is not None
    assert timing.state_copy is not None
    assert timing.dispatch_floor is not None
    assert timing.dispatch_floor.unmeasured == ""
    assert timing.dispatch_floor.seconds is not None
