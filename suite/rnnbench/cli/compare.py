"""`rnnbench compare`: what changed from one run to another."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from rnnbench.cli.options import RESULTS, THRESHOLD, console


@click.command(short_help="Compare two runs: FASTER, SLOWER, SAME or UNDECIDED.")
@click.argument("base")
@click.argument("new")
@RESULTS
@THRESHOLD
@click.option("--across-machines", is_flag=True, help="Give verdicts on latencies of two different machines, too.")
def compare(base: str, new: str, results: Path, threshold: float, across_machines: bool) -> None:
    """Compare two runs, trial by trial.

    Exit with 1 if something in NEW is SLOWER, or was ok in BASE and is not ok in NEW. Runs made at different times also
    differ by the drift of the machine; `rnnbench ab` avoids that.
    """
    from rnnbench.reports import print_comparison
    from rnnbench.results import Store, StoreError, compare_runs

    store = Store(results)
    base_run, new_run = store.read(base), store.read(new)
    if base_run.by_trial.keys().isdisjoint(new_run.by_trial):
        raise StoreError(f"{base} and {new} have no trial in common; compare two runs of the same case")
    comparison = compare_runs(base_run, new_run, threshold, across_machines=across_machines)
    print_comparison(comparison, console())
    sys.exit(1 if comparison.regressed else 0)
