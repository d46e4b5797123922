"""Small trials for tests of the harness, and running them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rnnbench.cases.trial import Limits, Measure, State, Strategy, Target, Trial
from rnnbench.results.record import Record
from rnnbench.results.store import Store, read_run
from rnnbench.rnn.spec import Model
from rnnbench.run.account import Account
from rnnbench.run.execute import execute
from rnnbench.run.plan import begin


class Silent:
    """Told of stages and records, and keeps them to itself."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, str]] = []
        self.records: list[Record] = []

    def stage(self, trial: Trial, stage: str) -> None:
        self.stages.append((trial.target.route, stage))

    def finished(self, record: Record) -> None:
        self.records.append(record)


def run_trials(trials: Sequence[Trial], folder: Path) -> tuple[Path, dict[str, Record]]:
    """A whole run under `folder`: its own folder, and its records by trial."""
    run = begin(trials, Store(folder))
    execute(trials, run, seed=0, account=Account(), observer=Silent())
    return run, {record.trial: record for record in read_run(run).records}


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
