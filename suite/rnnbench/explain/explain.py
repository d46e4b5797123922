"""Explaining a trial: a worker builds it, as `rnnbench run` would, and says what it found."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from rnnbench.explain.explained import Explained
from rnnbench.explain.worker import ExplainTrial
from rnnbench.outside_text import safe_text
from rnnbench.results import Outcome
from rnnbench.stages import Examined
from rnnbench.worker import START_LIMIT_S, Host, WorkerError, WorkerProcess, own_folder, variables, worker_cores

BUILDS = 2
"""Times that a program may be built: once as it is run, and once more with its stages written out."""


class ExplainError(Exception):
    """A trial that cannot be explained: its backend does not support it, or its build failed. The message says why."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(safe_text(reason))
        self.outcome = outcome


def explain_trial(examined: Examined, folder: Path, lines: int) -> Explained:
    """What the trial's program is made of. Its stages are written into `folder`, and `lines` of each are shown.

    Nothing of its framework is imported in this process. Raises ExplainError.
    """
    if examined.failure is not None:
        raise ExplainError(examined.failure.outcome, examined.failure.reason)
    trial = examined.trial
    folder.mkdir(parents=True, exist_ok=True)
    with own_folder() as work:
        command = ExplainTrial(trial, work, folder.resolve(), worker_cores(trial), lines)
        host = Host(work / "log", variables(examined), examined.support.interpreter)
        limit = START_LIMIT_S + BUILDS * trial.limits.build
        with closing(WorkerProcess("rnnbench.explain.worker", command, host)) as worker:
            try:
                return worker.ready(limit, trial.limits.memory)
            except WorkerError as error:
                raise ExplainError(error.outcome, error.reason) from error
