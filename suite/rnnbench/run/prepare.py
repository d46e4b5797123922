"""What comes before sampling, for one trial: probe, support, build, load and check, in a worker of its own."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from rnnbench.backends import registry
from rnnbench.backends.base import Probe, Support
from rnnbench.backends.registry import BackendError
from rnnbench.cases.trial import Trial
from rnnbench.measure.course import Course
from rnnbench.measure.growth import Step
from rnnbench.measure.roof import Roof
from rnnbench.measure.sampling import Block
from rnnbench.measure.warmup import WarmUp
from rnnbench.results.artifact import Artifact
from rnnbench.results.record import Anchor, CheckFigure
from rnnbench.rnn.weights import Weights
from rnnbench.run.account import Account
from rnnbench.run.messages import Failure, request_of
from rnnbench.run.process import WorkerError, WorkerProcess, Workplace
from rnnbench.run.wire import Message

Stage = Callable[[Trial, str], None]
"""Told of each trial and stage as it begins."""
PATHS: tuple[str, ...] = ("bound", "public")
"""The two latencies that every trial has."""


class Hired(Protocol):
    """What a trial needs of its worker: a process of its own, or a child of one that others have in turn."""

    def ready(self) -> Message: ...
    def ask(self, do: str, trial: Trial, timeout: float, memory: int | None = None) -> Message: ...
    def close(self) -> None: ...


@dataclass
class Findings:
    """What is known of a trial so far: filled stage by stage, and turned into its record at the end."""

    trial: Trial
    probe: Probe
    support: Support
    stage: str = ""
    failure: Failure | None = None
    is_built: bool = True
    """Whether its artifact is in the cache when it is to be sampled; otherwise it is built then."""
    started: Message = field(default_factory=dict)
    built: Message = field(default_factory=dict)
    loaded: Message = field(default_factory=dict)
    seen: Message = field(default_factory=dict)
    verdicts: dict[str, CheckFigure] = field(default_factory=dict)
    blocks: dict[str, list[list[Block]]] = field(default_factory=dict)
    """Samples of each latency path, by process."""
    warmups: dict[str, list[WarmUp]] = field(default_factory=dict)
    """What came before them, of the paths that have a warm-up."""
    courses: dict[str, Course] = field(default_factory=dict)
    """How the budget was shared out, where there was one of samples."""
    grown: dict[str, list[list[Step]]] = field(default_factory=dict)
    """How memory grew over the blocks of a path, by process."""
    anchor: Anchor | None = None
    roofs: list[list[Roof]] = field(default_factory=list)
    """What the machine was seen to do, look by look, beside each process of it."""
    no_roof: str = ""
    """Why it was not looked at."""
    copied: list[Block] = field(default_factory=list)
    """The state's round trip through NumPy, a block of each process."""
    least: Findings | None = None
    """The least program of its target and state, whose calls are its dispatch floor."""
    worker_s: float = 0.0
    """Seconds that its own worker has had, counted against its limit."""

    def fail(self, stage: str, failure: Failure) -> None:
        self.stage, self.failure = stage, failure

    def is_measured(self) -> bool:
        """Whether its samples are whole: all processes came to their end, or to a verdict against it."""
        ended = self.failure is None or self.failure.outcome == "nonconforming"
        return ended and bool(self.blocks)

    @property
    def conforms(self) -> bool:
        return all(figure.verdict != "fail" for figure in self.verdicts.values())

    @property
    def artifact(self) -> Artifact | None:
        return Artifact(**self.loaded["artifact"]) if "artifact" in self.loaded else None


@cache
def _probe(backend: str) -> Probe:
    return registry.find(backend).probe()


def examine(trial: Trial) -> Findings:
    """What can be said of a trial without running anything: whether its backend is here, and supports it."""
    probe = _probe(trial.target.backend)
    try:
        support = registry.support(trial.target.backend, request_of(trial, Weights(())))
    except BackendError as error:
        findings = Findings(trial, probe, Support("unsupported", str(error)))
        findings.fail("support", Failure("run-failed", str(error)))
        return findings
    findings = Findings(trial, probe, support)
    if support.level == "unsupported":
        findings.fail("support", Failure("unsupported", support.reason))
    elif lack := probe.lack(trial.target.route):
        findings.fail("probe", Failure("unavailable", f"{lack.reason}; install it with: {lack.install}"))
    return findings


def prepare(findings: Findings, worker: Hired, workplace: Workplace, account: Account, stage: Stage) -> Iterator[str]:
    """Build, load and check the trial in its worker, which is closed at the end. Yields each stage that is done.

    What goes wrong is in the findings, not raised.
    """
    trial = findings.trial
    at = "import"
    try:
        stage(trial, at)
        with account.spent("import"):
            findings.started = worker.ready()
        yield at
        at = "build"
        stage(trial, at)
        with account.spent("build"):
            findings.built = _remembered(_ask(findings, worker, at, trial.limits.build), trial, workplace)
        yield at
        at = "load"
        stage(trial, at)
        with account.spent("check"):
            findings.loaded = _ask(findings, worker, at, trial.limits.trial)
        yield at
        at = "check"
        stage(trial, at)
        with account.spent("check"):
            checked = _ask(findings, worker, at, trial.limits.trial)
        account.add("oracle", checked["oracle_s"])
        _note_check(findings, checked)
        yield at
    except WorkerError as error:
        findings.fail(at, error.failure)
    finally:
        worker.close()


def _note_check(findings: Findings, checked: Message) -> None:
    findings.built["tail_build_s"] = checked["tail_build_s"]
    findings.seen = {key: checked[key] for key in ("threads_seen", "affinity")}
    findings.verdicts = {name: CheckFigure(**figure) for name, figure in checked["verdicts"].items()}
    if not findings.conforms:
        findings.fail("check", Failure("nonconforming", first_failure(findings.verdicts)))


def _remembered(built: Message, trial: Trial, workplace: Workplace) -> Message:
    """A cold build's figures are kept beside its artifact, for a run that is interrupted here and resumed."""
    path = workplace.cache / f"{trial.digest}.build.json"
    if built["build_origin"] == "cold":
        workplace.cache.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(built))
    elif path.exists():
        built = json.loads(path.read_text())
    return built


def start_worker(
    findings: Findings, workplace: Workplace, log: str, cores: Sequence[int] | None = None
) -> WorkerProcess:
    """A fresh worker with the environment that the trial's backend asks for, on as many cores as it has threads."""
    trial, support = findings.trial, findings.support
    cores = cores or affinity(trial.threads)
    return WorkerProcess(trial.target.backend, workplace, cores, variables(findings), log, support.interpreter)


def variables(findings: Findings) -> dict[str, str]:
    """The reference's own products run on one thread in every worker; a backend may say otherwise for its runtime."""
    own = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": str(findings.trial.threads)}
    return {**own, **findings.support.environment}


def shared_by(findings: Findings) -> Hashable:
    """What trials have in common that may be in one worker: backend, interpreter, threads, environment."""
    environment = tuple(sorted(variables(findings).items()))
    return (findings.trial.target.backend, findings.support.interpreter, findings.trial.threads, environment)


def affinity(threads: int) -> list[int]:
    """The cores a worker is held to: the last ones, the suite itself and most interrupts being on the first."""
    return sorted(os.sched_getaffinity(0))[-threads:]


def first_failure(verdicts: Mapping[str, CheckFigure]) -> str:
    return next(f"{name}: {figure.detail}" for name, figure in verdicts.items() if figure.verdict == "fail")


def _ask(findings: Findings, worker: Hired, do: str, limit: float) -> dict[str, Any]:
    """One command, within its own limit and what is left of the trial's."""
    limits = findings.trial.limits
    start = time.monotonic()
    try:
        return worker.ask(do, findings.trial, min(limit, limits.trial - findings.worker_s), limits.memory)
    finally:
        findings.worker_s += time.monotonic() - start
