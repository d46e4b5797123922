"""`rnnbench list`: what would run."""

from __future__ import annotations

import click

from rnnbench.cli.options import Selection, selection
from rnnbench.cli.output import tell


@click.command("list")
@selection
def list_trials(selection: Selection) -> None:
    """Print the id of every trial that would run, one per line."""
    from rnnbench.reports import count

    trials = selection.select(selection.load_cases(), selection.targets())
    tell("\n".join(trial.id for trial in trials))
    tell(count(len(trials), "trial"), is_error=True)
