"""Options that several commands share, and the functions that use their values."""

from __future__ import annotations

import os
import re
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rnnbench.cli.option_types import Duration, GivenPath, GivenText, Share
from rnnbench.cli.output import tell

if TYPE_CHECKING:
    from rich.console import Console

    from rnnbench.cache import CacheFolder
    from rnnbench.cases import Case
    from rnnbench.fleet import Place
    from rnnbench.plan import Shard

PIPE_WIDTH = 110
"""Width in columns of output to a file or a pipe."""


def _writable_folder(context: click.Context, option: click.Parameter, folder: Path) -> Path:
    """Refuse a folder that cannot be written, before a run that may take hours: its report is written last."""
    existing = next((path for path in (folder, *folder.absolute().parents) if os.path.lexists(path)), folder)
    where = "" if existing == folder else f"{folder} cannot be made: "
    if not existing.is_dir():
        raise click.BadParameter(f"{where}{existing} is not a folder; choose another folder", context, option)
    if not os.access(existing, os.W_OK | os.X_OK):
        raise click.BadParameter(
            f"{where}{existing} is not writable; make it writable, or choose another folder", context, option
        )
    return folder


_runs = partial(
    click.option,
    "--results",
    default=Path("results"),
    show_default=True,
    type=GivenPath(file_okay=False),
    help="Folder for runs.",
)
RESULTS = _runs()
NEW_RESULTS = _runs(callback=_writable_folder)
"""The option `--results` of a command that makes runs."""
REPORTS = click.option(
    "--reports",
    default=Path("reports"),
    show_default=True,
    type=GivenPath(file_okay=False),
    callback=_writable_folder,
    help="Folder for reports.",
)
HISTORY = click.option(
    "--history",
    "history_folder",
    type=GivenPath(file_okay=False),
    default=Path("results/history"),
    show_default=True,
    help="Folder of the history.",
)
ALERTS = click.option(
    "--alerts",
    "alerts_file",
    type=GivenPath(dir_okay=False),
    default=Path("results/alerts.yaml"),
    show_default=True,
    help="File of the alerts.",
)


def require_replaceable(output: Path, option: str, *inputs: Path) -> None:
    """Refuse an output that would replace a file of a run, or one of `inputs`, the files and folders that are read.

    Records and texts of people cannot be made again.
    """
    if not os.path.lexists(output):
        return
    real = Path(os.path.realpath(output))
    for place in (*(Path(os.path.realpath(path)) for path in inputs), *_runs_around(real)):
        if real.is_relative_to(place):
            what = f"lies in {place}" if place.is_dir() else "is what the command reads"
            raise click.BadParameter(f"{output} {what}, and is not replaced; name another file", param_hint=option)


def _runs_around(path: Path) -> list[Path]:
    """The folders of runs that contain a path."""
    return [folder for folder in path.parents if os.path.isfile(folder / "run.json")]


def _environments(_context: click.Context, _option: click.Parameter, folder: Path | None) -> Path:
    from rnnbench.pipeline import ENVIRONMENTS

    return folder or ENVIRONMENTS


ENVIRONMENT_FOLDER = click.option(
    "--environments",
    type=GivenPath(file_okay=False),
    callback=_environments,
    help="Folder for the environments that are made.  [default: ~/.cache/rnnbench]",
)
BUDGET = click.option(
    "--budget", default="120s", show_default=True, type=Duration(), help="The longest sampling time of one trial."
)
THRESHOLD = click.option(
    "--threshold",
    type=Share(0.001, 0.9),
    help="The smallest change of latency that matters, 3% or 0.03.  [default: compare.latency of the case, or 3%]",
)


def _package(context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Refuse a text that is no name of a package (PEP 508)."""
    if name is not None and not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?", name):
        raise click.BadParameter(f"expected the name of a package, such as onnxruntime, got '{name}'", context, option)
    return name


PACKAGE = click.option(
    "--package",
    callback=_package,
    metavar="NAME",
    help="The package whose releases are used.  [default: the backend's own]",
)
RELEASE_LIST = click.option(
    "--list",
    "listed",
    type=GivenPath(dir_okay=False),
    metavar="FILE",
    help="Take the releases from a file, a version a line, and ask no package index.",
)


def open_cache(*, rebuild: bool) -> CacheFolder | None:
    """The cache of a run; None, with a warning, if it cannot be written. Raises CacheError."""
    from rnnbench.pipeline import usable_cache

    return usable_cache(lambda text: tell(f"warning: {text}", is_error=True), reads=not rebuild)


def _shard(context: click.Context, parameter: click.Parameter, text: str | None) -> Shard | None:
    from rnnbench.plan import Shard

    try:
        return None if text is None else Shard.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from error


SHARD = click.option(
    "--shard",
    callback=_shard,
    metavar="K/N",
    help="Only part K of N of the trials, for example 2/8. Each machine runs one part; `rnnbench merge` joins them.",
)
ANCHORS = click.option(
    "--anchors",
    metavar="FILE",
    type=GivenText(),
    help="Case file of the anchors: programs of pinned versions, each in an environment of its own, which show "
    "changes of the machine. 'none' leaves them out.  [default: those that rnnbench brings, in a night and in a shard]",
)
NO_BASELINE = click.option("--no-baseline", is_flag=True, help="Do not add NumPy's trials as the baseline.")
EXPECTATIONS = click.option(
    "--expectations",
    metavar="FILE",
    type=GivenPath(),
    help="File of expected failures.  [default: the nearest expectations.yaml, beside each case or in a folder above "
    "it; else the suite's own]",
)
ON = click.option(
    "--on",
    "address",
    metavar="ADDRESS",
    type=GivenText(),
    help="Measure on the nodes of a Ray cluster: 'ray' (the cluster of this machine), HOST:PORT or ray://HOST:PORT.",
)
REBUILD = click.option(
    "--rebuild",
    is_flag=True,
    help="Build and check every program in this run, also where an earlier run has done so (see `rnnbench cache`).",
)
MACHINE_CLASS = click.option(
    "--machine-class",
    metavar="NAME",
    type=GivenText(),
    help="With --on: only on nodes that were started with the resource NAME.",
)
BACKEND = click.option(
    "--backend",
    "backends",
    multiple=True,
    metavar="NAME[:ROUTE],…",
    help="Backends to use: name (its default route), name:route, or name:* (all routes). "
    " [default: every installed backend]",
)


def load_anchors(text: str | None, *, wanted: bool) -> list[Case]:
    """The case that `--anchors` names. Without the option it is the suite's own case, if anchors are `wanted`.

    Raises CaseError.
    """
    from rnnbench.cases import ANCHORS, CaseError, Place, load_case

    if text == "none" or (text is None and not wanted):
        return []
    case = load_case(text or ANCHORS)
    if not case.pinned:
        raise CaseError.at(Place(case.path or case.name), "pins no versions; expected a case with the key 'pinned'")
    return [case]


def place_of(address: str | None, machine_class: str | None) -> Place | None:
    """The cluster that `--on` and `--machine-class` name; None for this machine. Raises FleetError."""
    if address is None:
        if machine_class is not None:
            raise click.UsageError("--machine-class chooses nodes of a cluster; give the cluster with --on")
        return None
    from rnnbench.fleet import Place, require_cluster

    place = Place(address, machine_class or "")
    require_cluster(place)
    return place


def on_again(place: Place | None) -> str:
    """The options of a command line that name this place again."""
    if place is None:
        return ""
    return f" --on {place.address}" + (f" --machine-class {place.machine_class}" if place.machine_class else "")


def console() -> Console:
    """A console with the terminal's width, or, in a file or a pipe, with a width that the tables need."""
    from rich.console import Console

    class CommandConsole(Console):
        """Ends a command whose reader has gone with the sentence of its ending. Rich would exit without a word, and so
        does click where the error has its number.
        """

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError("nobody reads the output")

    return CommandConsole(width=shutil.get_terminal_size((PIPE_WIDTH, 0)).columns)
