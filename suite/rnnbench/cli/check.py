"""`rnnbench check`: conformance alone."""

from __future__ import annotations

import os
import resource
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rnnbench.cli.known import EXPECTATIONS, known_failures
from rnnbench.cli.options import (
    EXIT_INTERRUPTED,
    REPORTS,
    RESULTS,
    Selection,
    console,
    paths_of,
    selection,
)

if TYPE_CHECKING:
    from rnnbench.cases import Trial
    from rnnbench.results.store import Run


@click.command(short_help="Check every trial and time none: conformance alone.")
@selection
@RESULTS
@REPORTS
@EXPECTATIONS
@click.option("--jobs", type=click.IntRange(1, 256), help="Trials checked at once. Without it, one to a core.")
@click.option(
    "--endurance",
    type=click.FloatRange(0, 3600),
    help="Seconds for each check that goes on for long (drift, memory); 0 leaves them out. Without it, as cases say.",
)
def check(
    selection: Selection,
    results: Path,
    reports: Path,
    expectations: Path | None,
    jobs: int | None,
    endurance: float | None,
) -> None:
    """Check every trial of CASE… and time none: conformance alone, trials side by side.

    Without --backend every route of all that is installed, on as few points as have every pair of values that it
    supports; those that build slowly on points that have every value.
    """
    from rnnbench.reports import print_conformance, write_report
    from rnnbench.results.store import Store, read_run
    from rnnbench.run.plan import begin
    from rnnbench.run.session import check_all, exit_status
    from rnnbench.run.shrink import command

    trials = _trials(selection, endurance)
    known = known_failures(selection.load(), (trial.target.backend for trial in trials), expectations)
    folder = begin(trials, Store(results), known)
    terminal = console()
    try:
        smallest = check_all(trials, folder, terminal, jobs or len(os.sched_getaffinity(0)))
    except KeyboardInterrupt:
        click.echo(f"\nInterrupted. The {len(read_run(folder).records)} finished trials are in {folder}", err=True)
        sys.exit(EXIT_INTERRUPTED)
    finished = read_run(folder)
    print_conformance(finished, terminal)
    paths = paths_of(selection.load()) if smallest else {}
    for found in smallest:
        click.echo(f"\nsmallest example found: {found.failure.reason if found.failure else ''}")
        click.echo(f"  {command(found.trial, paths[found.trial.case])}")
    click.echo(_cost(finished))
    click.echo(f"\nrecords  {folder}\nreport   {write_report([finished], reports / finished.name)}")
    sys.exit(exit_status(finished.records))


def _trials(selection: Selection, endurance: float | None) -> list[Trial]:
    if selection.backends:
        return selection.enduring(selection.trials(baseline=False), endurance)
    from rnnbench.backends.registry import find, names
    from rnnbench.run.everywhere import thinned

    here = tuple(f"{name}:*" for name in names() if find(name).probe().available)
    everywhere = replace(selection, backends=here).trials(baseline=False, here=False)
    thin = thinned(selection.enduring(everywhere, endurance))
    for sentence in thin.sentences():
        click.echo(sentence)
    return thin.trials


def _cost(run: Run) -> str:
    """Wall time, where the workers' time went, and the memory of this process."""
    spent, resident = run.info.seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    parts = [(what, spent.get(what, 0.0)) for what in ("build", "check", "import")]
    workers = sum(seconds for _, seconds in parts)
    shares = ", ".join(f"{what} {seconds:.0f} s" for what, seconds in parts)
    oracle = f", of it the oracle {spent.get('oracle', 0.0) / workers:.1%}" if workers else ""
    return (
        f"{len(run.records):,} trials in {spent['total']:.0f} s; workers had {shares}{oracle}; "
        f"this process had {resident >> 10} MiB at most"
    )
