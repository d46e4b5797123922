"""A run from its first trial to its last: groups of trials that are compared are prepared, then sampled together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from rnnbench.cases.trial import Trial
from rnnbench.measure.latency import save_samples
from rnnbench.results import append_record
from rnnbench.results.record import Record
from rnnbench.run.account import Account
from rnnbench.run.compose import compose
from rnnbench.run.parts import note_anchor, split
from rnnbench.run.plan import known_failures
from rnnbench.run.prepare import Findings, examine, prepare, start_worker
from rnnbench.run.process import WorkerProcess, Workplace
from rnnbench.run.sample import sample


class Observer(Protocol):
    """Is told how a run goes on."""

    def stage(self, trial: Trial, stage: str) -> None: ...
    def finished(self, record: Record) -> None: ...


def execute(trials: Iterable[Trial], run: Path, seed: int, account: Account, observer: Observer) -> None:
    """Build, check and sample the trials, and append each one's record to the run as soon as it is complete."""
    workplace, known = Workplace.of_run(run), known_failures(run)

    def journal(found: Findings, twin: Findings | None = None) -> None:
        record = compose(found, twin, known.get(found.trial.case, ()))
        append_record(run, record)
        observer.finished(record)

    for group in _groups(trials):
        findings = [examine(trial) for trial in group]
        for found in _prepared(findings, workplace, account, observer):
            if found.failure is not None:
                journal(found)
        whole = [found for found in findings if found.failure is None]
        twins = _twins(whole)
        if single := [found for found in whole if found.trial.id not in twins]:
            parts = list(split(single))
            for part in parts:
                sample(part.trials, workplace, account, observer.stage, seed)
            note_anchor(parts)
            for found in filter(Findings.is_measured, single):
                for path, blocks in found.blocks.items():
                    save_samples(run / "samples" / f"{found.trial.digest}.{path}.npy", blocks)
        for found in whole:
            journal(found, twins.get(found.trial.id))


def _prepared(
    findings: list[Findings], workplace: Workplace, account: Account, observer: Observer
) -> Iterator[Findings]:
    """Every trial, as it is prepared or found not to be possible.

    The next worker imports its framework while one is being loaded and checked: never while one builds, which is timed.
    """
    waiting = [found for found in findings if found.failure is None]
    yield from (found for found in findings if found.failure is not None)
    with ExitStack() as workers:

        def start_next() -> WorkerProcess | None:
            if not waiting:
                return None
            worker = start_worker(waiting[0], workplace, f"{waiting[0].trial.digest}.log")
            workers.callback(worker.close)
            return worker

        following = start_next()
        while following is not None:
            found, worker = waiting.pop(0), following
            following = None
            for done in prepare(found, worker, workplace, account, observer.stage):
                if done == "build":
                    following = start_next()
            following = following or start_next()
            yield found


def _groups(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Trials of the same case and sizes; small chunks first: ragged rests run through the program of chunk 1."""
    groups: dict[object, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(comparable(trial), []).append(trial)
    return [sorted(group, key=lambda trial: trial.strategy.chunk) for group in groups.values()]


def comparable(trial: Trial) -> Hashable:
    """What trials have in common that are compared, and so sampled in turn: the case and the sizes."""
    return (trial.case, trial.model, trial.batch, trial.dtype, trial.device, trial.threads, trial.seed)


def _twins(findings: list[Findings]) -> dict[str, Findings]:
    """By trial, the earlier one of its group whose program and call plan are the same to the byte."""
    first: dict[object, Findings] = {}
    twins: dict[str, Findings] = {}
    for found in findings:
        trial, artifact = found.trial, found.artifact
        assert artifact is not None, "a trial without failure was loaded"
        plan = (trial.target, artifact.digest, trial.strategy.state, trial.strategy.chunk)
        if plan in first:
            twins[trial.id] = first[plan]
        first.setdefault(plan, found)
    return twins
