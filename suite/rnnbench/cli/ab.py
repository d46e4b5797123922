"""`rnnbench ab`: two environments, sampled in turn in one session."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from rnnbench.cli.options import EXIT_INTERRUPTED, REPORTS, RESULTS, THRESHOLD, Selection, console, selection


@click.command(short_help="Compare two environments, sampled in turn: is B slower?")
@selection
@click.option("--a", "old", metavar="ENV", help="The side compared with. Without it, the environment that runs this.")
@click.option("--b", "new", metavar="ENV", help="The side that is judged. Without it, the environment that runs this.")
@RESULTS
@REPORTS
@click.option("--budget", default="120s", show_default=True, help="Longest that the sampling of one trial may go on.")
@THRESHOLD
@click.option(
    "--environments", type=click.Path(path_type=Path), help="Folder of the environments made. [~/.cache/rnnbench]"
)
def ab(
    selection: Selection,
    old: str | None,
    new: str | None,
    results: Path,
    reports: Path,
    budget: str,
    threshold: float,
    environments: Path | None,
) -> None:
    """Compare two environments on the trials of CASE…: is B slower than A?

    An ENV is the folder of a virtual environment with this rnnbench in it (.venv-old), or requirements
    ('onnxruntime==1.30.0'), of which an environment is made, and kept. Both are built, checked, and sampled in turn in
    fresh processes, pair by pair, until there is a verdict. Exit status 1: something is SLOWER in B, or was ok in A and
    is not in B, or nonconforming; 3: a trial failed.
    """
    from rnnbench.cases.quantity import SECONDS, parse
    from rnnbench.reports import print_comparison, trust, write_comparison
    from rnnbench.results import Store, read_run, view_runs
    from rnnbench.run.ab import SideBySide, judge_sides
    from rnnbench.run.environments import CACHE, open_side
    from rnnbench.run.session import exit_status

    seconds = parse(budget, SECONDS) or 0.0
    if seconds <= 0:
        raise click.UsageError(f"--budget is a duration such as 60s or 5min, not '{budget}'")
    trials = selection.trials(baseline=False, here=False)
    cache = environments or CACHE
    both = SideBySide.begin(trials, (open_side(old, trials, cache), open_side(new, trials, cache)), Store(results))
    terminal = console()
    click.echo("\n".join(both.describe()))
    try:
        comparison = judge_sides(both, trials, seconds, threshold, terminal)
    except KeyboardInterrupt:
        click.echo(f"\nInterrupted. What is finished is in {both.runs[0]} and {both.runs[1]}", err=True)
        sys.exit(EXIT_INTERRUPTED)
    print_comparison(comparison, terminal)
    for name, run in zip("AB", both.runs, strict=True):
        for sentence in trust(view_runs([read_run(run)])):
            click.echo(f"{name}: {sentence}")
    report = write_comparison(comparison, reports / both.runs[1].name)
    click.echo(f"{comparison.about[-1]}\n\nrecords  {both.runs[0]}\n         {both.runs[1]}\nreport   {report}")
    failed = exit_status([record for run in both.runs for record in read_run(run).records])
    sys.exit(1 if comparison.regressed else failed)
