"""The smallest trial that still fails the same check, and the command that reproduces it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rnnbench.cases import Trial, scalar
from rnnbench.measure import WallTime
from rnnbench.pipeline.build_and_check import build_and_check_trial
from rnnbench.pipeline.progress import NoProgress
from rnnbench.plan import examine
from rnnbench.sampling import Context
from rnnbench.stages import Checked
from rnnbench.worker import RunFolders, log_name, start_trial_worker

BUDGET_S = 60.0
"""Longest time for making one failure smaller. Every attempt is a build."""


def shrink(failed: Checked, folders: RunFolders) -> Checked:
    """Halve sizes while the first check that failed still fails, within BUDGET_S. Returns the smallest such trial."""
    context = Context(folders, WallTime(), NoProgress().stage)
    check, smallest, deadline = first_failed_check(failed), failed, time.monotonic() + BUDGET_S
    progress = True
    while progress:
        progress = False
        for trial in _smaller(smallest.trial):
            if time.monotonic() > deadline:
                return smallest
            examined = examine(trial)
            if examined.failure is not None:
                continue
            worker = start_trial_worker(examined, folders, log_name(trial))
            checked = build_and_check_trial(examined, worker, context)
            if checked.results and first_failed_check(checked) == check:
                smallest, progress = checked, True
                break
    return smallest


def first_failed_check(checked: Checked) -> str:
    """Name of the first check that failed, in the order of the checks; empty if none did."""
    return next((name for name, result in checked.results.items() if result.verdict == "fail"), "")


def reproduce_command(trial: Trial, case: Path) -> str:
    """A command line that checks this trial, and nothing else."""
    settings = {
        **{f"model.{key}": value for key, value in trial.model.case_keys.items()},
        "workload.steps": trial.steps,
        "workload.batch": trial.batch,
        "workload.chunk": trial.strategy.chunk,
        "workload.dtype": trial.dtype,
        "workload.seed": trial.seed,
        "workload.lengths": trial.lengths,
        "strategy.time": trial.strategy.time,
        "strategy.state": trial.strategy.state,
        "strategy.launch": trial.strategy.launch,
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
    """Trials with one size halved. Those that save most come first."""
    chunk = trial.strategy.chunk

    def with_calls(steps: int, chunk: int) -> Trial:
        return replace(trial, steps=steps, strategy=replace(trial.strategy, chunk=chunk))

    if trial.batch > 1:
        yield replace(trial, batch=trial.batch // 2)
    yield from (replace(trial, model=network) for network in trial.model.smaller())
    if trial.steps // 2 >= chunk and (trial.steps // 2) % chunk == 0:
        yield with_calls(trial.steps // 2, chunk)
    if chunk > 1 and ":" not in trial.strategy.time:
        yield with_calls(max(trial.steps // 2, chunk // 2), chunk // 2)
