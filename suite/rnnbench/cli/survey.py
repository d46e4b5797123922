"""`rnnbench list`, `backends` and `schema`: what would run, on what, and how cases are written."""

from __future__ import annotations

import click

from rnnbench.cli.options import Selection, console, selection


@click.command("list")
@selection
def list_trials(selection: Selection) -> None:
    """Print the id of every trial that would run, one a line."""
    trials = selection.trials(baseline=False)
    click.echo("\n".join(trial.id for trial in trials))
    click.echo(f"{len(trials)} trials", err=True)


@click.command(short_help="Print what is here and what it supports.")
def backends() -> None:
    """Print what is here, its versions and what it supports; and how to get what is not."""
    from rnnbench.backends.support_matrix import support_matrix
    from rnnbench.reports.survey import print_survey

    print_survey(support_matrix(), console())


@click.command()
def schema() -> None:
    """Print the JSON Schema of case files, for editors."""
    import json

    from rnnbench.cases import json_schema

    click.echo(json.dumps(json_schema(), indent=2))
