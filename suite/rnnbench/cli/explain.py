"""`rnnbench explain`: what a trial's program is made of."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rnnbench.cli.option_types import GivenPath, WholeNumber
from rnnbench.cli.options import ENVIRONMENT_FOLDER, console
from rnnbench.cli.output import tell, written
from rnnbench.cli.selection import Selection, selection

if TYPE_CHECKING:
    from rnnbench.cases import Trial

NAMED = 8
"""The most trials that are listed when one of them has to be chosen."""


@click.command(short_help="Show what a trial's program is made of: stages, loops, operations, calls.")
@selection
@click.option(
    "--output",
    "-o",
    default=Path("explained"),
    show_default=True,
    type=GivenPath(file_okay=False),
    help="Folder that gets the text of each stage, in a folder for each trial.",
)
@click.option(
    "--lines",
    type=WholeNumber(0, 200),
    default=12,
    show_default=True,
    help="Lines of each stage to print; 0 prints none.",
)
@click.option(
    "--picture",
    metavar="FILE",
    type=GivenPath(dir_okay=False),
    help="Draw the operations of each stage into a .png or .svg file.",
)
@click.option(
    "--in",
    "environment",
    metavar="ENV",
    help="Explain what another environment makes of it: a virtual environment's folder, or requirements such as "
    "'onnxruntime==1.30.0', from which one is made.",
)
@ENVIRONMENT_FOLDER
def explain(
    selection: Selection, output: Path, lines: int, picture: Path | None, environment: str | None, environments: Path
) -> None:
    """Build one trial of CASE… on each target, and show the stages that its program goes through.

    Each stage has the text of its IR, its operations and its loops. Then follow the functions that the program offers
    to its caller, and the plan of its calls: inputs and outputs, who keeps the state, and what a reset does. If a case
    has several trials, choose one with --filter or --only.

    \b
    Example:
      rnnbench explain cases/smoke.yaml --backend=iree \\
        --filter time=looped,state=stateful,chunk=4

    \b
    Exit status:
      0  every supported trial was explained
      3  a trial could not be explained, or none is supported
    """
    from rnnbench.cli.exit_status import FAILED, OK
    from rnnbench.explain import ExplainError, explain_trial, print_explained, title_of
    from rnnbench.pipeline import open_side
    from rnnbench.plan import close_adapters, examine_all, require_devices
    from rnnbench.reports import draw_operations
    from rnnbench.results import file_name

    if environment is not None and not selection.backends:
        raise click.UsageError("--in needs the backends that are explained there; give them with --backend")
    if picture is not None and picture.suffix not in (".png", ".svg"):
        raise click.UsageError(f"--picture {picture}: expected a file that ends in .png or .svg")
    cases = selection.load_cases()
    trials = selection.select(cases, selection.targets(cases, installed=environment is None))
    _require_one_each(trials)
    if environment is None:
        require_devices(trials)
        examined = examine_all(trials)
        close_adapters()
    else:
        examined = open_side(environment, trials, environments).examined()
    terminal, failed, stages = console(), False, dict[str, list[tuple[str, dict[str, int]]]]()
    for index, one in enumerate(examined):
        folder = output / file_name("-".join([one.trial.case, *str(one.trial.target).split(":"), one.trial.digest]))
        if index:
            tell("")
        try:
            explained = explain_trial(one, folder, lines)
            print_explained(one, explained, folder, terminal)
            stages[title_of(one.trial)] = explained.operations_by_stage
        except ExplainError as error:
            tell(f"{one.trial.id}\n{error.outcome}: {error}", is_error=True)
            failed = failed or error.outcome != "unsupported"
    if picture is not None and stages:
        tell("")
        with written("picture", picture):
            draw_operations(stages, picture)
    sys.exit(FAILED if failed or not stages else OK)


def _require_one_each(trials: list[Trial]) -> None:
    """Raise UsageError if a case has several trials on a target."""
    groups: defaultdict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in trials:
        groups[trial.case, str(trial.target)].append(trial)
    for (case, target), same in groups.items():
        if len(same) > 1:
            listed = "".join(f"\n  {trial.id}" for trial in same[:NAMED])
            more = f"\n  and {len(same) - NAMED} more" if len(same) > NAMED else ""
            raise click.UsageError(
                f"{case} has {len(same)} trials on {target}; choose one with --filter, as time=looped,chunk=1, or with "
                f"--only and the last 8 digits of its id:{listed}{more}"
            )
