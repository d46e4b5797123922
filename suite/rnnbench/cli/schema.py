"""`rnnbench schema`: how cases are written, for editors."""

from __future__ import annotations

import click


@click.command()
def schema() -> None:
    """Print the JSON Schema of case files, for editors."""
    import json

    from rnnbench.cases import json_schema

    click.echo(json.dumps(json_schema(), indent=2))
