"""`rnnbench site`: static pages from the history and runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from rnnbench.cli.options import ALERTS, HISTORY, RESULTS
from rnnbench.cli.output import tell

if TYPE_CHECKING:
    from rnnbench.history import History


@click.command(short_help="Make static pages from the history and runs.")
@click.argument("runs", nargs=-1, metavar="[RUN…]")
@click.option(
    "-o",
    "--output",
    default=Path("reports/site"),
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the site. Files of an earlier site in it are replaced.",
)
@HISTORY
@ALERTS
@RESULTS
def site(runs: tuple[str, ...], output: Path, root: Path, file: Path, results: Path) -> None:
    """Make static pages: what moved, what is fastest, what conforms.

    They open from a disk and from any static host. The records of each RUN are shown (a folder, a name or 'latest');
    without one, those of the newest run of each case in the history that are in the folder of results. Series and
    changes come from the history, where there is one, and the states of alerts from their file.
    """
    from rnnbench.history import Alerts, History
    from rnnbench.results import Store, StoreError
    from rnnbench.site import write_site

    is_named = click.get_current_context().get_parameter_source("root") is not ParameterSource.DEFAULT
    if is_named and not root.is_dir():
        raise StoreError(f"{root} is not a folder; a history is made by: rnnbench history add RUN")
    history = History(root) if root.is_dir() else None
    named = runs or _newest(history, results)
    if not named:
        raise StoreError("the site needs the records of a run: rnnbench site RUN…, for example 'latest'")
    store = Store(results)
    page = write_site([store.read(name) for name in named], history, output, Alerts.read(file))
    for warning in history.warnings if history else ():
        tell(f"warning: {warning}", is_error=True)
    tell(page)


def _newest(history: History | None, results: Path) -> list[Path]:
    """Of each machine and its cases, the newest run of the history whose records are here; of shards, of each shard.

    A shard that was merged is shown with the merged run.
    """
    folders = _folders(results)
    newest: dict[tuple[object, ...], Path] = {}
    for entry in history.runs if history else ():
        if entry.run in folders:
            newest[entry.machine, entry.cases, entry.shard] = folders[entry.run]
    return list(dict.fromkeys(newest.values()))


def _folders(results: Path) -> dict[str, Path]:
    """By a run's name, the folder that has its records: its own, or that of the merged run that it is in."""
    from rnnbench.results import Store, StoreError, read_info, shard_folders

    folders = {path.name: path for path in results.glob("*") if (path / "run.json").is_file()}
    for path in Store(results).runs():
        try:
            shards = shard_folders(path)
            folders |= {read_info(shard)[0].run: path for shard in shards if shard != path}
        except StoreError:  # A folder that is damaged and not asked for is not shown.
            continue
    return folders
