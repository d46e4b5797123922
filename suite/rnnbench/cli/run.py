"""`rnnbench run`: build, check, sample, report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rnnbench.cli.known import EXPECTATIONS, known_failures
from rnnbench.cli.options import EXIT_INTERRUPTED, REPORTS, RESULTS, Selection, console, selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnnbench.cases import Trial


@click.command(short_help="Build, check and sample every trial, and write a report.")
@selection
@RESULTS
@REPORTS
@EXPECTATIONS
@click.option("--processes", type=click.IntRange(1, 100), help="Fresh processes that each trial is sampled in.")
@click.option("--resume", metavar="RUN", help="Go on with an interrupted run: its folder, its name, or 'latest'.")
@click.option("--no-baseline", is_flag=True, help="Leave out the NumPy baseline that every table otherwise has.")
@click.option("--keep-artifacts", is_flag=True, help="Keep what the compilers left behind, in the run's folder.")
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
    """Build, check and sample every trial of CASE…, and write a report."""
    from dataclasses import replace

    from rnnbench.results.store import Store
    from rnnbench.run.plan import begin, remaining

    store = Store(results)
    if resume is not None:
        if selection.cases:
            raise click.UsageError("--resume goes on with a run's own cases; leave CASE… out")
        folder = store.resolve(resume)
        trials = remaining(folder)
    else:
        trials = selection.trials(baseline=not no_baseline)
        if processes is not None:
            trials = [replace(trial, measure=replace(trial.measure, processes=processes)) for trial in trials]
        known = known_failures(selection.load(), (trial.target.backend for trial in trials), expectations)
        folder = begin(trials, store, known)
    sys.exit(_carry_out(trials, folder, reports, keep_artifacts))


def _carry_out(trials: Sequence[Trial], folder: Path, reports: Path, keep_artifacts: bool) -> int:
    from rnnbench.reports import print_summary, write_report
    from rnnbench.reports.units import count
    from rnnbench.results.store import read_run
    from rnnbench.run.account import describe_seconds
    from rnnbench.run.session import carry_out, exit_status

    terminal = console()
    try:
        carry_out(trials, folder, terminal, keep_artifacts)
    except KeyboardInterrupt:
        done = count(len(read_run(folder).records), "finished trial")
        click.echo(
            f"\nInterrupted. {folder} has {done}, and all that was built; go on with: rnnbench run --resume {folder}",
            err=True,
        )
        return EXIT_INTERRUPTED
    finished = read_run(folder)
    print_summary(finished, terminal)
    report = write_report([finished], reports / finished.name)
    click.echo(f"\nrecords  {folder}\nreport   {report}")
    click.echo(describe_seconds(finished.info.seconds))
    return exit_status(finished.records)
