"""`rnnbench run`: build, check, time, report."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rnnbench.cli.ending import run_leaves
from rnnbench.cli.options import EXPECTATIONS, REPORTS, RESULTS, Selection, console, selection
from rnnbench.cli.output import tell

if TYPE_CHECKING:
    from rnnbench.plan import RunPlan
    from rnnbench.results import Store


@click.command(short_help="Build, check and time every trial, and write a report.")
@selection
@RESULTS
@REPORTS
@EXPECTATIONS
@click.option(
    "--processes",
    type=click.IntRange(1, 100),
    help="Number of fresh processes that sample each trial. Default: as in the case.",
)
@click.option("--resume", metavar="RUN", help="Continue an interrupted run: give its folder, its name, or 'latest'.")
@click.option("--no-baseline", is_flag=True, help="Do not add NumPy's trials as the baseline.")
@click.option("--keep-artifacts", is_flag=True, help="Keep the compiled files in the run's folder.")
def run(
    selection: Selection,
    results: Path,
    reports: Path,
    expectations: Path | None,
    processes: int | None,
    resume: str | None,
    no_baseline: bool,
    keep_artifacts: bool,
) -> None:
    """Build, check and time every trial of CASE…, and write a report."""
    from rnnbench.plan import resume_run
    from rnnbench.results import Store

    store = Store(results)
    if resume is not None:
        if selection.cases:
            raise click.UsageError("--resume continues the cases of the run; do not give CASE…")
        plan = resume_run(store.resolve(resume))
    else:
        plan = _new_run(selection, store, expectations, processes, baseline=not no_baseline)
    sys.exit(_carry_out(plan, reports, keep_artifacts))


def _new_run(
    selection: Selection, store: Store, expectations: Path | None, processes: int | None, *, baseline: bool
) -> RunPlan:
    from rnnbench.plan import begin_run, expected_failures, require_devices

    cases = selection.load_cases()
    trials = selection.select(cases, selection.targets(baseline=baseline))
    if selection.backends:
        require_devices(trials)
    if processes is not None:
        trials = [replace(trial, measure=replace(trial.measure, processes=processes)) for trial in trials]
    return begin_run(trials, store, expected_failures(cases, trials, expectations))


def _carry_out(plan: RunPlan, reports: Path, keep_artifacts: bool) -> int:
    from rnnbench.cli.exit_status import exit_status
    from rnnbench.measure import describe_seconds
    from rnnbench.pipeline import ProgressBar, run_trials
    from rnnbench.reports import print_summary, write_report
    from rnnbench.results import read_run

    terminal = console()
    run_leaves(plan.folder, f". To continue: rnnbench run --resume {plan.folder}")
    for change in plan.changes:
        tell(f"warning: {change}", is_error=True)
    with ProgressBar(terminal, len(plan.trials)) as progress:
        run_trials(plan, progress, keep_artifacts)
    finished = read_run(plan.folder)
    print_summary(finished, terminal)
    report = write_report([finished], reports / finished.name)
    tell(f"\nrecords  {plan.folder}\nreport   {report}")
    tell(describe_seconds(finished.info.seconds))
    return exit_status(finished.records)
