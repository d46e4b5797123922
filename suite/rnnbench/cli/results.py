"""`rnnbench report` and `rnnbench compare`: what runs that are over say."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from rnnbench.cli.options import REPORTS, RESULTS, THRESHOLD, console


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@RESULTS
@REPORTS
def report(runs: tuple[str, ...], results: Path, reports: Path) -> None:
    """Write Markdown and plots for RUN…: folders, names, or 'latest'."""
    from rnnbench.reports import write_report
    from rnnbench.results.store import Store

    store = Store(results)
    read = [store.read(name) for name in runs]
    click.echo(write_report(read, reports / "+".join(item.name for item in read)))


@click.command(short_help="Compare two runs: what is faster, slower, the same?")
@click.argument("base")
@click.argument("new")
@RESULTS
@THRESHOLD
@click.option(
    "--across-machines", is_flag=True, help="Compare latencies of two machines, which have no verdict otherwise."
)
def compare(base: str, new: str, results: Path, threshold: float, across_machines: bool) -> None:
    """Compare two runs, trial by trial; exit with 1 where NEW is slower or no longer conforms."""
    from rnnbench.reports import print_comparison
    from rnnbench.results import Store, StoreError
    from rnnbench.results.compare import compare_runs

    store = Store(results)
    old, young = store.read(base), store.read(new)
    if old.by_trial.keys().isdisjoint(young.by_trial):
        raise StoreError(f"{base} and {new} have no trial in common, so nothing can be said; compare runs of one case")
    comparison = compare_runs(old, young, threshold, across_machines=across_machines)
    print_comparison(comparison, console())
    sys.exit(1 if comparison.regressed else 0)
