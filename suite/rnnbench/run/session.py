"""`rnnbench run` without its options: a run begun or gone on with, executed, ended, and what its exit status is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from rnnbench.cases.trial import Trial
from rnnbench.measure.machine import MachineWatch
from rnnbench.results.record import FAILURES, Record
from rnnbench.results.store import read_run
from rnnbench.run.account import Account
from rnnbench.run.check import Checking
from rnnbench.run.execute import execute
from rnnbench.run.plan import end
from rnnbench.run.prepare import Findings
from rnnbench.run.process import Workplace
from rnnbench.run.progress import ProgressBar
from rnnbench.run.shrink import shrink

SHRUNK = 4
"""Failures of one `rnnbench check` that are made smaller; each may take a minute."""
EXIT_OK, EXIT_NONCONFORMING, EXIT_FAILED = 0, 1, 3


def carry_out(trials: Sequence[Trial], run: Path, console: Console, keep_artifacts: bool) -> None:
    """Execute the trials of a run that has begun, and close it.

    A KeyboardInterrupt goes through once every worker is gone; what has a record then stays as it is.
    """
    account, watch = Account(), MachineWatch()
    seed = read_run(run).info.seed
    with ProgressBar(console, len(trials)) as progress:
        execute(trials, run, seed, account, progress)
    end(run, account.seconds(), watch.conditions())
    if not keep_artifacts:
        Workplace.of_run(run).clear()


def check_all(trials: Sequence[Trial], run: Path, console: Console, jobs: int) -> list[Findings]:
    """Check the trials of a run that has begun, and close it. Interrupts go through, as in `carry_out`.

    Returns failing trials, one for each target and check and at most SHRUNK, made as small as they go.
    """
    account, watch = Account(), MachineWatch()
    with ProgressBar(console, len(trials)) as progress:
        checking = Checking(run, account, progress)
        checking.check(trials, jobs)
    end(run, account.seconds(), watch.conditions())
    workplace = Workplace.of_run(run)
    smallest = [shrink(found, workplace) for found in list(checking.failing.values())[:SHRUNK]]
    workplace.clear()
    return smallest


def exit_status(records: Sequence[Record]) -> int:
    """1 where something is nonconforming, before 3 where a trial failed: a wrong number is the worse of the two.

    What is known to fail counts as little as what is unsupported; 1, too, where it passes: then what is known is wrong.
    """
    outcomes = {record.outcome for record in records if not record.fails_as_expected}
    if "nonconforming" in outcomes or any(record.passes_unexpectedly for record in records):
        return EXIT_NONCONFORMING
    return EXIT_FAILED if outcomes & FAILURES else EXIT_OK
