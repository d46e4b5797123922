"""The stages before sampling: build, load and check a trial in a worker of its own."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from rnnbench.cases import Trial
from rnnbench.conformance import checks_without_result
from rnnbench.measure import exceeds_wait
from rnnbench.pipeline.reference import compute_reference
from rnnbench.results import Finding, FindingKind
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
    Forget,
    Load,
    Reply,
    RunChecks,
    RunFolders,
    WorkerError,
    remember_build,
    remembered_build,
)


class TrialWorker(Protocol):
    """A trial's worker: a process of its own, or a forked child of a process that trials share."""

    def ready(self, *, memory: int | None = None) -> ImportFigures: ...
    def ask(self, command: Command[Reply], timeout: float, memory: int | None = None) -> Reply: ...
    def take_findings(self) -> tuple[Finding, ...]: ...
    @property
    def age_s(self) -> float: ...
    @property
    def stopped_s(self) -> float: ...
    def close(self) -> None: ...


def import_framework(examined: Examined, worker: TrialWorker, context: Context) -> Built:
    """Wait until the worker has imported its framework."""
    if examined.failure is not None:
        return Built(examined, failure=examined.failure)
    context.on_stage(examined.trial, "import")
    try:
        with context.wall_time.spent_on("import"):
            imports = worker.ready(memory=examined.trial.limits.memory)
    except WorkerError as error:
        return Built(examined, failure=_failure("import", error))
    if problem := exceeds_wait({"the import": imports.import_s}, worker.age_s):
        return Built(examined, findings=worker.take_findings(), failure=_impossible("import", problem))
    return Built(examined, imports)


def build(imported: Built, worker: TrialWorker, context: Context) -> Built:
    """Build the program in a child of the worker."""
    if imported.failure is not None:
        return imported
    trial = imported.trial
    context.on_stage(trial, "build")
    started = time.monotonic()
    try:
        with context.wall_time.spent_on("build"):
            figures = worker.ask(Build(trial), min(trial.limits.build, trial.limits.trial), trial.limits.memory)
    except WorkerError as error:
        return replace(imported, findings=worker.take_findings(), failure=_failure("build", error))
    waited, times = time.monotonic() - started, {"the build": figures.build_s, "its imports": figures.import_s}
    if problem := exceeds_wait(times, waited):
        return replace(imported, findings=worker.take_findings(), failure=_impossible("build", problem))
    stopped_s, stopped = worker.stopped_s, _stopped(times, worker.stopped_s)
    if figures.stopped:
        detail = "the process of the build was stopped from outside, and went on: its times contain that"
        stopped = (Finding(kind=FindingKind.TIME, detail=detail, disbelieved=True),)
    if stopped:
        _forget_times(trial, worker)
    kept = figures if stopped else remember_cold_build(figures, trial, context.folders)
    findings = (*worker.take_findings(), *stopped)
    return Built(imported.examined, imported.imports, kept, waited - stopped_s, findings)


def load(built: Built, worker: TrialWorker, context: Context) -> Checked:
    """Load the program and call it, within the time that its build left of the trial's limit."""
    if built.failure is not None:
        return Checked(built, findings=built.findings, failure=built.failure)
    trial = built.trial
    context.on_stage(trial, "load")
    started = time.monotonic()
    try:
        with context.wall_time.spent_on("check"):
            loaded = worker.ask(Load(trial), trial.limits.trial - built.worker_s, trial.limits.memory)
    except WorkerError as error:
        return Checked(built, findings=_findings(built, worker), failure=_failure("load", error))
    waited = time.monotonic() - started
    if problem := exceeds_wait(loaded.seconds, waited):
        return Checked(built, findings=_findings(built, worker), failure=_impossible("load", problem))
    findings = (*built.findings, *_stopped(loaded.seconds, worker.stopped_s))
    return Checked(built, loaded, findings=findings, worker_s=built.worker_s + waited - worker.stopped_s)


def check(loaded: Checked, worker: TrialWorker, context: Context, *, reuse: bool = False) -> Checked:
    """Compute the reference and run the conformance checks, within the time that is left of the trial's limit.

    The reference has a limit of its own. Other threads may check other trials meanwhile.

    With `reuse`, the results of the same checks in an earlier run are returned if there are any.
    """
    if loaded.failure is not None:
        return loaded
    trial, started = loaded.trial, time.monotonic()
    try:
        seconds = trial.limits.trial - loaded.worker_s + compute_reference(trial, worker, context)
        context.on_stage(trial, "check")
        figures = worker.ask(RunChecks(trial, reuse, seconds), seconds, trial.limits.memory)
    except WorkerError as error:
        return replace(loaded, findings=_findings(loaded.built, worker), failure=_failure("check", error))
    findings = _findings(loaded.built, worker)
    if missing := checks_without_result(trial, figures.results):
        failure = Failure("check", "run-failed", f"its worker sent no result of the check {missing[0]}")
        return replace(loaded, findings=findings, failure=failure)
    waited = loaded.worker_s + time.monotonic() - started
    if problem := exceeds_wait({"its references": figures.reference_s}, waited):
        return replace(loaded, findings=findings, failure=_impossible("check", problem))
    if stopped := _stopped({"the build for a ragged rest": figures.tail_build_s}, worker.stopped_s):
        _forget_times(trial, worker)
    return replace(loaded, figures=figures, findings=(*findings, *stopped), failure=_nonconforming(figures))


def build_and_check_trial(examined: Examined, worker: TrialWorker, context: Context) -> Checked:
    """Run all of these stages in one worker, and close it."""
    try:
        loaded = load(build(import_framework(examined, worker, context), worker, context), worker, context)
        with context.wall_time.spent_on("check"):
            checked = check(loaded, worker, context)
        context.wall_time.add("reference", checked.reference_s)
        return checked
    finally:
        worker.close()


def not_checked(examined: Examined) -> Checked:
    """The value of a trial that failed before it was built."""
    return Checked(Built(examined, failure=examined.failure), failure=examined.failure)


def not_sampled(checked: Checked) -> Sampled:
    """The value of a trial that is not sampled: it failed, or was only checked."""
    return Sampled(checked, unmeasured=checked.unmeasured, findings=checked.findings, failure=checked.failure)


def _findings(built: Built, worker: TrialWorker) -> tuple[Finding, ...]:
    return (*built.findings, *worker.take_findings())


def _stopped(times: Mapping[str, float | None], stopped_s: float) -> tuple[Finding, ...]:
    """A finding if the worker may have been stopped together with the suite: its times are long enough for that."""
    total = sum(filter(None, times.values()))
    if not 0 < stopped_s <= total:
        return ()
    detail = (
        f"the suite was stopped for {stopped_s:.3g} s, and its worker may have been too: "
        f"{' and '.join(times)} took {total:.3g} s"
    )
    return (Finding(kind=FindingKind.TIME, detail=detail, disbelieved=True),)


def _forget_times(trial: Trial, worker: TrialWorker) -> None:
    """Let no later run show the times of a build that was stopped. A worker that dies of it fails in its next stage."""
    with suppress(WorkerError):
        worker.ask(Forget(trial), trial.limits.build)


def _failure(stage: Stage, error: WorkerError) -> Failure:
    return Failure(stage, error.outcome, error.reason)


def _impossible(stage: Stage, problem: str) -> Failure:
    return Failure(stage, "run-failed", f"times that cannot be: {problem}")


def _nonconforming(figures: CheckResults) -> Failure | None:
    if all(result.verdict != "fail" for result in figures.results.values()):
        return None
    return Failure("check", "nonconforming", first_failure(figures.results))


def remember_cold_build(figures: BuildFigures, trial: Trial, folders: RunFolders) -> BuildFigures:
    """Write a cold build's figures beside its artifact, so that a resumed run has them."""
    if figures.origin == "cold":
        remember_build(folders.artifacts, trial, figures)
        return figures
    return remembered_build(folders.artifacts, trial) or figures
