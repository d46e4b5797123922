"""`rnnbench report`: writes a report of finished runs."""

from __future__ import annotations

import gc
from pathlib import Path

import click

from rnnbench.cli.options import REPORTS, RESULTS
from rnnbench.cli.output import tell, tell_warnings


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@RESULTS
@REPORTS
def report(runs: tuple[str, ...], results: Path, reports: Path) -> None:
    """Write a report of RUN… in Markdown, with plots. A RUN is a folder, a name or 'latest'.

    Example: rnnbench report latest
    """
    from rnnbench.reports import write_report
    from rnnbench.results import Store, file_name

    store = Store(results)
    finished = [store.read(name) for name in runs]
    tell_warnings(warning for run in finished for warning in run.warnings)
    gc.freeze()  # Records have no cycles; plots make so many objects that the collector visits all again and again.
    tell(write_report(finished, reports / file_name("+".join(run.name for run in finished))))
