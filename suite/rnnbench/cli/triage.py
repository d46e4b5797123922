"""`rnnbench triage`: the page that a person reads on Monday."""

from __future__ import annotations

from pathlib import Path

import click

from rnnbench.cli.history import LAST, look
from rnnbench.cli.options import ALERTS, HISTORY


@click.command(short_help="Write what is new, mended and open, for a person who decides.")
@HISTORY
@ALERTS
@LAST
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="File to write.  [default: standard output]"
)
def triage(history_folder: Path, alerts_file: Path, last: int, output: Path | None) -> None:
    """Write a page in Markdown: what is new, what is mended, what is still open, and the commands that show it again.

    It changes no alert: `rnnbench history alerts` does.
    """
    from rnnbench.reports import triage_page, write_page

    alerts, news = look(history_folder, alerts_file, last)
    page = triage_page(alerts, news)
    if output is None:
        click.echo(page, nl=False)
    else:
        write_page(page, output)
        click.echo(f"triage   {output}")
