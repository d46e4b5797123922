"""`rnnbench publish`: tells GitHub of a night."""

from __future__ import annotations

from pathlib import Path

import click

from rnnbench.cli.option_types import ExistingPath
from rnnbench.cli.output import tell


@click.command(short_help="Open an issue of GitHub for each alert of a night, and close what is mended.")
@click.argument("folder", metavar="NIGHT", type=ExistingPath(file_okay=False))
def publish(folder: Path) -> None:
    """Bring issues and comments of GitHub up to date with the summary in NIGHT, as reports/night.

    Each certain alert has one issue, which is updated. It is closed when the alert is mended, refuted or accepted, and
    opened again if the alert comes back. An issue that a person closed stays closed. Open pull requests that change
    versions get the summary as a comment, which is replaced each night.

    Example: rnnbench publish reports/night

    It calls `gh` in the folder of a clone; `gh` needs a token that may write issues and pull requests.
    """
    from rnnbench.night import GitHub, tell_github

    tell_github(folder, GitHub(), tell)
