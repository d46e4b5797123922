"""`rnnbench triage`: the alerts of a history, as a page for the person who decides."""

from __future__ import annotations

from pathlib import Path

import click

from rnnbench.cli.history import LAST, look
from rnnbench.cli.option_types import GivenPath
from rnnbench.cli.options import ALERTS, HISTORY, require_replaceable
from rnnbench.cli.output import write_text_file


@click.command(short_help="Write what is new, mended and open, for a person who decides.")
@HISTORY
@ALERTS
@LAST
@click.option("-o", "--output", type=GivenPath(dir_okay=False), help="File to write.  [default: standard output]")
def triage(history_folder: Path, alerts_file: Path, last: int, output: Path | None) -> None:
    """Write a page in Markdown: what is new, what is mended, what is still open, and the commands that show it again.

    It changes no alert: `rnnbench history alerts` does.
    """
    from rnnbench.reports import triage_page

    if output is not None:
        require_replaceable(output, "-o", history_folder, alerts_file)
    alerts, news = look(history_folder, alerts_file, last)
    page = triage_page(alerts, news)
    if output is None:
        click.echo(page, nl=False)
    else:
        write_text_file("triage", output, page, "-o")
