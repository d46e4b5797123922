"""The smallest trial that still fails the same check, and the command that reproduces exactly it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rnnbench.cases.expand import scalar
from rnnbench.cases.trial import Trial
from rnnbench.run.account import Account
from rnnbench.run.prepare import Findings, examine, prepare, start_worker
from rnnbench.run.process import Workplace

BUDGET_S = 60.0
"""Longest that one failure is made smaller for; every attempt is a build."""


def shrink(failing: Findings, workplace: Workplace) -> Findings:
    """Halve sizes for as long as the first check that failed fails, within BUDGET_S. Returns the smallest found."""
    check, smallest, deadline = first_failed(failing), failing, time.monotonic() + BUDGET_S
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(smallest.trial):
            if time.monotonic() > deadline:
                return smallest
            found = examine(smaller)
            if found.failure is None:
                worker = start_worker(found, workplace, f"{smaller.digest}.log")
                for _ in prepare(found, worker, workplace, Account(), _quietly):
                    continue
            if found.verdicts and first_failed(found) == check:
                smallest, progress = found, True
                break
    return smallest


def first_failed(findings: Findings) -> str:
    """The first check that failed, in the order of the checks; empty where none did."""
    return next((name for name, figure in findings.verdicts.items() if figure.verdict == "fail"), "")


def command(trial: Trial, case: Path) -> str:
    """A command line that checks this trial, and nothing else."""
    settings = {
        **{f"model.{key}": value for key, value in trial.model.model_dump().items()},
        "workload.steps": trial.steps,
        "workload.batch": trial.batch,
        "workload.chunk": trial.strategy.chunk,
        "workload.dtype": trial.dtype,
        "workload.seed": trial.seed,
        "workload.lengths": trial.lengths,
        "strategy.time": trial.strategy.time,
        "strategy.state": trial.strategy.state,
        "target.device": trial.device,
        "target.threads": trial.threads,
        "matrix": "{}",
    }
    words = ["rnnbench", "check", str(case), f"--backend={trial.target}"]
    for key, value in settings.items():
        words += ["--set", f"{key}={scalar(value)}"]
    words += ["--endurance", f"{trial.limits.endurance:g}"]
    return shlex.join(words)


def _smaller(trial: Trial) -> Iterator[Trial]:
    """Trials with one size halved, the ones that save most first."""
    model, chunk = trial.model, trial.strategy.chunk

    def with_model(**sizes: int) -> Trial:
        return replace(trial, model=model.model_copy(update=sizes))

    def with_calls(steps: int, chunk: int) -> Trial:
        return replace(trial, steps=steps, strategy=replace(trial.strategy, chunk=chunk))

    if trial.batch > 1:
        yield replace(trial, batch=trial.batch // 2)
    if model.layers > 1:
        yield with_model(layers=model.layers // 2)
    if model.hidden > 1 and not model.projection:
        half = model.hidden // 2
        yield with_model(hidden=half, input=half) if model.cell == "counter" else with_model(hidden=half)
    if model.input > 1 and model.cell != "counter":
        yield with_model(input=model.input // 2)
    if trial.steps // 2 >= chunk and (trial.steps // 2) % chunk == 0:
        yield with_calls(trial.steps // 2, chunk)
    if chunk > 1 and ":" not in trial.strategy.time:
        yield with_calls(max(trial.steps // 2, chunk // 2), chunk // 2)


def _quietly(trial: Trial, stage: str) -> None:
    """Attempts are nobody's trials: no progress is shown."""
