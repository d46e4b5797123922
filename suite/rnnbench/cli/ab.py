"""`rnnbench ab`: compares two environments, sampled together."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rnnbench.cli.ending import leaves
from rnnbench.cli.options import BUDGET, ENVIRONMENT_FOLDER, NEW_RESULTS, REPORTS, THRESHOLD, console
from rnnbench.cli.output import tell
from rnnbench.cli.selection import Selection, selection

if TYPE_CHECKING:
    from rich.console import Console

    from rnnbench.results import Comparison


@click.command(short_help="Compare two environments, sampled together: is B slower than A?")
@selection
@click.option(
    "--a", "side_a", metavar="ENV", help="Environment A, the base.  [default: the environment that runs this command]"
)
@click.option(
    "--b",
    "side_b",
    metavar="ENV",
    help="Environment B, which is compared with A.  [default: the environment that runs this command]",
)
@NEW_RESULTS
@REPORTS
@BUDGET
@THRESHOLD
@ENVIRONMENT_FOLDER
def ab(
    selection: Selection,
    side_a: str | None,
    side_b: str | None,
    results: Path,
    reports: Path,
    budget: float,
    threshold: float | None,
    environments: Path,
) -> None:
    """Compare two environments on the trials of CASE…: is B slower than A?

    ENV is the folder of a virtual environment with this rnnbench in it (.venv-old), or a list of requirements
    ('onnxruntime==1.30.0'). For requirements an environment is made and kept. Both sides are built and checked. Then
    they are sampled together in fresh processes, pair by pair, until there is a verdict.

    \b
    Example:
      rnnbench ab cases/smoke.yaml --backend=onnxruntime \\
        --a onnxruntime==1.30.0 --b onnxruntime==1.31.1

    \b
    Exit status:
      0  none of the following was found
      1  a trial is SLOWER in B, or ok in A and not in B, or nonconforming
      3  a trial failed
    """
    from rnnbench.cli.exit_status import exit_status
    from rnnbench.pipeline import ProgressBar, SideBySide, check_side, compare_sides, open_side
    from rnnbench.results import Store, read_run
    from rnnbench.sampling import PairBudget

    trials = selection.select(cases := selection.load_cases(), selection.targets(cases, installed=False))
    for text in (side_a, side_b):
        check_side(text, trials, environments)
    sides = open_side(side_a, trials, environments), open_side(side_b, trials, environments)
    both = SideBySide.begin(trials, sides, Store(results))
    terminal = console()
    tell("\n".join(both.describe()))
    if side_a == side_b:
        tell("A and B are one environment: a SLOWER or FASTER is a false alarm. --a or --b names another one.")
    leaves(lambda: f"Finished trials are in {both.runs[0]} and {both.runs[1]}.")
    with ProgressBar(terminal, len(trials), sides=2) as progress:
        comparison = compare_sides(both, PairBudget(budget, threshold), progress)
    _show(comparison, both.runs, reports, terminal)
    failed = exit_status([record for run in both.runs for record in read_run(run).records])
    sys.exit(1 if comparison.regressed else failed)


def _show(comparison: Comparison, runs: Sequence[Path], reports: Path, terminal: Console) -> None:
    from rnnbench.reports import print_comparison, reliability_sentences, write_comparison
    from rnnbench.results import read_run, view_runs

    print_comparison(comparison, terminal)
    for name, run in zip("AB", runs, strict=True):
        for sentence in reliability_sentences(view_runs([read_run(run)])):
            tell(f"{name}: {sentence}")
    report = write_comparison(comparison, reports / runs[1].name)
    tell(f"{comparison.about[-1]}\n\nrecords  {runs[0]}\n         {runs[1]}\nreport   {report}")
