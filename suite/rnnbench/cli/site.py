"""`rnnbench site`: static pages from the history and runs."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from rnnbench.cli.option_types import GivenPath
from rnnbench.cli.options import ALERTS, HISTORY, RESULTS
from rnnbench.cli.output import tell, tell_warnings


@click.command(short_help="Make static pages from the history and runs.")
@click.argument("runs", nargs=-1, metavar="[RUN…]")
@click.option(
    "-o",
    "--output",
    default=Path("reports/site"),
    show_default=True,
    type=GivenPath(file_okay=False),
    help="Folder of the site. Files of an earlier site in it are replaced.",
)
@HISTORY
@ALERTS
@RESULTS
def site(runs: tuple[str, ...], output: Path, history_folder: Path, alerts_file: Path, results: Path) -> None:
    """Make static pages: what moved, what is fastest, what conforms.

    The pages open from a disk and from any static host. They show the records of each RUN (a folder, a name or
    'latest'). Without a RUN, they show the newest run of each case in the history. If the folder of results does not
    have such a run, they show its rows in the history, which have all figures, but no samples and no details of checks.
    Series, changes and releases come from the history, if there is one, and the states of alerts from their file.

    Example: rnnbench site latest -o reports/site
    """
    from rnnbench.history import Alerts, History
    from rnnbench.pipeline import told_if_long
    from rnnbench.results import Store, StoreError
    from rnnbench.site import newest_runs, write_site
    from rnnbench.spelling import absent, count

    def is_default(name: str) -> bool:
        return click.get_current_context().get_parameter_source(name) is ParameterSource.DEFAULT

    if not is_default("history_folder") and not history_folder.is_dir():
        raise StoreError(f"{history_folder} is not a folder; a history is made by: rnnbench history add RUN")
    if not is_default("alerts_file") and not alerts_file.is_file():
        raise StoreError(f"{alerts_file} {absent(alerts_file)}; `rnnbench history alerts` makes a file of alerts")
    history = History(history_folder) if history_folder.is_dir() else None
    if not runs and history is None:
        raise StoreError("the site needs the records of a run: rnnbench site RUN…, for example 'latest'")
    store = Store(results)
    with told_if_long("reading the runs"):
        shown = [store.read(name) for name in runs] if runs or history is None else newest_runs(history, results)
    with told_if_long(f"writing the pages of {count(len(shown), 'run')} into {output}"):
        page = write_site(shown, history, output, Alerts.read(alerts_file))
    tell_warnings(warning for run in shown for warning in run.warnings)
    tell_warnings(history.warnings if history else ())
    tell(page)
