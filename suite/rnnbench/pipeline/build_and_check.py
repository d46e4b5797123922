"""The stages before sampling: a trial is built, loaded and checked in a worker of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Protocol

from rnnbench.cases import Trial
from rnnbench.measure import exceeds_wait
from rnnbench.results import Finding
from rnnbench.sampling import Context
from rnnbench.stages import (
    BuildFigures,
    Built,
    Checked,
    CheckResults,
    Examined,
    Failure,
    ImportFigures,
    Sampled,
    Stage,
    first_failure,
)
from rnnbench.worker import (
    Build,
    Command,
    Load,
    Reply,
    RunChecks,
    RunFolders,
    WorkerError,
    log_name,
    remember_build,
    remembered_build,
    start_trial_worker,
)


class TrialWorker(Protocol):
    """What a trial needs of its worker: a process of its own, or a forked child of one that trials share."""

    def ready(self, *, memory: int | None = None) -> ImportFigures: ...
    def ask(self, command: Command[Reply], timeout: float, memory: int | None = None) -> Reply: ...
    def take_findings(self) -> tuple[Finding, ...]: ...
    @property
    def age_s(self) -> float: ...
    def close(self) -> None: ...


Comparing = Callable[[Checked, TrialWorker], Checked]
"""What a trial is compared with once it is checked, in the worker that has its program."""


def build(examined: Examined, worker: TrialWorker, context: Context) -> Built:
    """Wait for the worker's import, and build the trial in it. A failure is in the value, not raised."""
    trial = examined.trial
    if examined.failure is not None:
        return Built(examined, failure=examined.failure)
    context.on_stage(trial, "import")
    try:
        with context.wall_time.spent_on("import"):
            imports = worker.ready(memory=trial.limits.memory)
    except WorkerError as error:
        return Built(examined, failure=_failure("import", error))
    if problem := exceeds_wait({"the import": imports.import_s}, worker.age_s):
        return Built(examined, findings=worker.take_findings(), failure=_impossible("import", problem))
    context.on_stage(trial, "build")
    started = time.monotonic()
    try:
        with context.wall_time.spent_on("build"):
            figures = worker.ask(Build(trial), min(trial.limits.build, trial.limits.trial), trial.limits.memory)
    except WorkerError as error:
        return Built(examined, imports, findings=worker.take_findings(), failure=_failure("build", error))
    worker_s = time.monotonic() - started
    if problem := exceeds_wait({"the build": figures.build_s, "its imports": figures.import_s}, worker_s):
        return Built(examined, imports, findings=worker.take_findings(), failure=_impossible("build", problem))
    kept = _remember_cold_build(figures, trial, context.folders)
    return Built(examined, imports, kept, worker_s, worker.take_findings())


def check(built: Built, worker: TrialWorker, context: Context) -> Checked:
    """Load the program and run the conformance checks, within what its build left of the trial's limit."""
    if built.failure is not None:
        return Checked(built, findings=built.findings, failure=built.failure)
    trial, deadline = built.trial, time.monotonic() + built.trial.limits.trial - built.worker_s

    def ask(command: Command[Reply]) -> Reply:
        with context.wall_time.spent_on("check"):
            return worker.ask(command, deadline - time.monotonic(), trial.limits.memory)

    def found() -> tuple[Finding, ...]:
        return (*built.findings, *worker.take_findings())

    context.on_stage(trial, "load")
    started = time.monotonic()
    try:
        loaded = ask(Load(trial))
    except WorkerError as error:
        return Checked(built, findings=found(), failure=_failure("load", error))
    if problem := exceeds_wait(loaded.seconds, time.monotonic() - started):
        return Checked(built, findings=found(), failure=_impossible("load", problem))
    context.on_stage(trial, "check")
    try:
        figures = ask(RunChecks(trial))
    except WorkerError as error:
        return Checked(built, loaded, findings=found(), failure=_failure("check", error))
    context.wall_time.add("reference", figures.reference_s)
    return Checked(built, loaded, figures, found(), _nonconforming(figures))


def build_and_check_trial(
    examined: Examined,
    worker: TrialWorker,
    context: Context,
    when_built: Callable[[], None] = lambda: None,
    compare: Comparing = lambda checked, _: checked,
) -> Checked:
    """Both stages in one worker, which is closed at the end. `when_built` is called between them."""
    try:
        built = build(examined, worker, context)
        when_built()
        return compare(check(built, worker, context), worker)
    finally:
        worker.close()


def build_and_check_all(
    trials: Sequence[tuple[Examined, Context]], compare: Comparing = lambda checked, _: checked
) -> Iterator[Checked]:
    """Every trial that has not failed yet, each in a worker of its own, one after the other.

    The next worker imports its framework while a trial is loaded and checked; never while one builds, which is timed.
    """
    with ExitStack() as open_workers:
        workers: dict[int, TrialWorker] = {}

        def start(number: int) -> None:
            if number < len(trials) and number not in workers:
                examined, context = trials[number]
                workers[number] = start_trial_worker(examined, context.folders, log_name(examined.trial))
                open_workers.callback(workers[number].close)

        for number, (examined, context) in enumerate(trials):
            start(number)
            yield build_and_check_trial(examined, workers.pop(number), context, partial(start, number + 1), compare)


def not_checked(examined: Examined) -> Checked:
    """The value of a trial that failed before it was built."""
    return Checked(Built(examined, failure=examined.failure), failure=examined.failure)


def not_sampled(checked: Checked) -> Sampled:
    """The value of a trial that is not sampled: it failed, or was only checked."""
    return Sampled(checked, findings=checked.findings, failure=checked.failure)


def _failure(stage: Stage, error: WorkerError) -> Failure:
    return Failure(stage, error.outcome, error.reason)


def _impossible(stage: Stage, problem: str) -> Failure:
    return Failure(stage, "run-failed", f"times that cannot be: {problem}")


def _nonconforming(figures: CheckResults) -> Failure | None:
    if all(result.verdict != "fail" for result in figures.results.values()):
        return None
    return Failure("check", "nonconforming", first_failure(figures.results))


def _remember_cold_build(figures: BuildFigures, trial: Trial, folders: RunFolders) -> BuildFigures:
    """Keep a cold build's figures beside its artifact, for a run that is interrupted here and resumed."""
    if figures.origin == "cold":
        remember_build(folders.artifacts, trial, figures)
        return figures
    return remembered_build(folders.artifacts, trial) or figures
