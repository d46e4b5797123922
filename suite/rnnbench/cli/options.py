"""Options that several commands share, and the selection of trials."""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.types import StringParamType

from rnnbench.cli.output import tell

if TYPE_CHECKING:
    from rich.console import Console

    from rnnbench.cache import CacheFolder
    from rnnbench.cases import Case, Target, Trial
    from rnnbench.fleet import Place
    from rnnbench.plan import Shard

PIPE_WIDTH = 110
"""Width in columns of output to a file or a pipe."""


class GivenPath(click.Path):
    """A path. An empty text is none: a variable of a shell was not set, and the present folder was not meant."""

    def __init__(self, **how: Any) -> None:
        super().__init__(path_type=Path, **how)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("expected a path, got an empty text", param, ctx)
        return super().convert(value, param, ctx)


class GivenText(StringParamType):
    """A text. One without a letter is none, as for `GivenPath`: the command would take its default without a word."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(super().convert(value, param, ctx))
        if not text.strip():
            default = "; leave the option out for its default" if isinstance(param, click.Option) else ""
            self.fail(f"expected a text, got '{text}'{default}", param, ctx)
        return text


def _writable_folder(context: click.Context, option: click.Parameter, folder: Path) -> Path:
    """Refuses what cannot be written to. A report is written last, and a run may take hours; before the runs of a
    comparison its environments are made.
    """
    there = next((path for path in (folder, *folder.absolute().parents) if os.path.lexists(path)), folder)
    where = "" if there == folder else f"{folder} cannot be made: "
    if not there.is_dir():
        raise click.BadParameter(f"{where}{there} is not a folder; choose another folder", context, option)
    if not os.access(there, os.W_OK | os.X_OK):
        raise click.BadParameter(
            f"{where}{there} is not writable; make it writable, or choose another folder", context, option
        )
    return folder


RESULTS = click.option(
    "--results", default=Path("results"), show_default=True, type=GivenPath(), help="Folder for runs."
)
NEW_RESULTS = click.option(
    "--results",
    default=Path("results"),
    show_default=True,
    type=GivenPath(),
    callback=_writable_folder,
    help="Folder for runs.",
)
"""Of a command that makes runs."""
REPORTS = click.option(
    "--reports",
    default=Path("reports"),
    show_default=True,
    type=GivenPath(),
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


class ExistingPath(GivenPath):
    """A path at which something lies. Where nothing does, the name beside it that may be meant is told."""

    def __init__(self, **how: Any) -> None:
        super().__init__(exists=True, **how)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from rnnbench.spelling import near_path

        path = Path(value)
        if value and not os.path.lexists(path) and (near := near_path(path)):
            self.fail(f"'{path}' does not exist; {near}", param, ctx)
        return super().convert(value, param, ctx)


class WholeNumber(click.IntRange):
    """A whole number in a range. What is none is told in words, with the range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number: int = super().convert(value, param, ctx)
        except click.BadParameter:
            upto = "" if self.max is None else f" to {self.max:,}"
            beyond = " on" if self.max is None else ""
            self.fail(f"expected a whole number from {self.min:,}{upto}{beyond}, got '{value}'", param, ctx)
        return number


def require_replaceable(output: Path, option: str, *inputs: Path) -> None:
    """Refuse an output that would replace a file of a run, or of what the command reads: `inputs` are files or folders.

    Records cannot be made again, nor what people wrote.
    """
    if not os.path.lexists(output):
        return
    real = Path(os.path.realpath(output))
    for place in (*(Path(os.path.realpath(path)) for path in inputs), *_runs_around(real)):
        if real.is_relative_to(place):
            what = f"lies in {place}" if place.is_dir() else "is what the command reads"
            raise click.BadParameter(f"{output} {what}, and is not replaced; name another file", param_hint=option)


def _runs_around(path: Path) -> list[Path]:
    """The folders of runs that a path is in."""
    return [folder for folder in path.parents if os.path.isfile(folder / "run.json")]


class Number(click.FloatRange):
    """A number in a range. NaN is in none, though it is neither smaller nor larger."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number: float = super().convert(value, param, ctx)
        except click.BadParameter:
            number = math.nan
        if math.isnan(number):
            self.fail(f"expected a number from {self.min:,g} to {self.max:,g}, got '{value}'", param, ctx)
        return number


class Share(click.ParamType[float]):
    """A share such as 3% or 0.03 within bounds, which a command gets as a fraction."""

    name = "share"

    def __init__(self, low: float, high: float) -> None:
        self.low = low
        self.high = high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from rnnbench.cases import parse_share

        share = parse_share(value)
        if share is None or not self.low <= share <= self.high:
            bounds = f"{100 * self.low:g}% to {100 * self.high:g}%"
            self.fail(f"expected a share from {bounds}, such as 3% or 0.03, got '{value}'", param, ctx)
        return share


class Duration(click.ParamType[float]):
    """A time such as 90s or 5min, which a command gets in seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from rnnbench.cases import parse_duration

        seconds = parse_duration(value)
        if seconds is None or seconds <= 0:
            self.fail(f"expected a duration such as 60s or 5min, got '{value}'", param, ctx)
        return seconds


def _environments(_context: click.Context, _option: click.Parameter, folder: Path | None) -> Path:
    from rnnbench.pipeline import ENVIRONMENTS

    return folder or ENVIRONMENTS


ENVIRONMENT_FOLDER = click.option(
    "--environments",
    type=GivenPath(),
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
    """As PEP 508 has the names of packages."""
    if name is not None and not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?", name):
        raise click.BadParameter(f"expected the name of a package, such as onnxruntime, got '{name}'", context, option)
    return name


PACKAGE = click.option(
    "--package", callback=_package, help="The package whose releases are meant.  [default: the backend's own]"
)
RELEASE_LIST = click.option(
    "--list",
    "listed",
    type=GivenPath(dir_okay=False),
    metavar="FILE",
    help="Take the releases from a file, a version a line, and ask no package index.",
)


def open_cache(*, rebuild: bool) -> CacheFolder | None:
    """The cache of a run; None, with a warning, where it cannot be written. Raises CacheError."""
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
    help="Case file of the anchors: programs of pinned versions, each in an environment of its own, which tell what "
    "the machine did. 'none' leaves them out.  [default: those that rnnbench brings, in a night and in a shard]",
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
_SELECTION = (
    click.argument("cases", nargs=-1, metavar="CASE…", type=GivenPath()),
    BACKEND,
    click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Replace a value of the cases, for example model.hidden=256.",
    ),
    click.option(
        "--only", multiple=True, metavar="ID", help="Keep only the trial with this id, or with these last 8 hex digits."
    ),
    click.option(
        "--filter",
        "filters",
        multiple=True,
        metavar="EXPR",
        help="Keep only trials that match, for example time=looped,chunk=1|16.",
    ),
    click.option(
        "--max-trials",
        type=WholeNumber(min=1),
        default=10_000,
        show_default=True,
        help="Refuse a matrix with more trials than this.",
    ),
)


@dataclass(frozen=True)
class Selection:
    """The cases, backends and trials that a command line selects."""

    cases: tuple[Path, ...]
    backends: tuple[str, ...]
    overrides: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    max_trials: int = 10_000

    def load_cases(self) -> list[Case]:
        """The cases, each file read once, also where it is named twice. Raises CaseError."""
        from rnnbench.cases import case_files, load_case
        from rnnbench.plan import check_case_names
        from rnnbench.worker import describe_file

        if not self.cases:
            raise click.UsageError(
                "give at least one case file or a folder of case files, for example cases/smoke.yaml"
            )
        named = [file for path in self.cases for file in case_files(path)]
        files = {os.path.realpath(file): file for file in named}
        loaded = [load_case(file, self.overrides, self.max_trials, describe_file) for file in files.values()]
        check_case_names(loaded)
        return loaded

    def select(self, cases: list[Case], targets: list[Target], endurance: float | None = 0.0) -> list[Trial]:
        """The selected trials of the cases on these targets. Raises CaseError.

        `endurance` is the time in seconds of each long check; None takes the time of each case.
        """
        from rnnbench.cases import select

        trials = [
            trial
            for case in cases
            for trial in case.trials(targets, self.max_trials, case.endurance if endurance is None else endurance)
        ]
        return select(trials, self.only, self.filters)

    def targets(
        self,
        cases: Sequence[Case] = (),
        *,
        baseline: bool = False,
        installed: bool = True,
        everywhere: bool = False,
    ) -> list[Target]:
        """The named targets; or, if none is named, the default route of every installed backend. Raises BackendError.

        With `baseline`, NumPy's are added. Unless `installed` is false, each must be installed in this environment.
        With `everywhere`, backends that are not installed are there too where none is named. Where all `cases` run
        model files, a name alone is the backend's route that reads them.
        """
        from rnnbench.plan import targets_of

        names = [name for text in self.backends for name in text.split(",") if name.strip()]
        if self.backends and not names:
            raise click.UsageError("--backend is empty; give at least one backend, for example --backend=numpy")
        runs_files = bool(cases) and all(case.file_formats for case in cases)
        reading = frozenset[str]().union(*(case.file_formats for case in cases)) if runs_files else ()
        return targets_of(names, baseline=baseline, installed=installed, everywhere=everywhere, reading=reading)


def load_anchors(text: str | None, *, wanted: bool) -> list[Case]:
    """The case that `--anchors` names. Without the option it is the suite's own where anchors are `wanted`.

    Raises CaseError.
    """
    from rnnbench.cases import ANCHORS, CaseError, Place, load_case

    if text == "none" or (text is None and not wanted):
        return []
    case = load_case(text or ANCHORS)
    if not case.pinned:
        raise CaseError.at(Place(case.path or case.name), "pins no versions; expected a case with the key 'pinned'")
    return [case]


def selection(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: adds the options that select trials, and passes them as one `selection`."""

    @wraps(command)
    def with_selection(**options: Any) -> None:
        selected = {field.name: options.pop(field.name) for field in fields(Selection)}
        command(selection=Selection(**selected), **options)

    decorated: Callable[..., None] = with_selection
    for option in reversed(_SELECTION):
        decorated = option(decorated)
    return decorated


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
    """The options that name the place again, at the end of a command line."""
    if place is None:
        return ""
    return f" --on {place.address}" + (f" --machine-class {place.machine_class}" if place.machine_class else "")


def console() -> Console:
    """A console with the terminal's width, or, in a file or a pipe, with a width that the tables need."""
    from rich.console import Console

    return Console(width=shutil.get_terminal_size((PIPE_WIDTH, 0)).columns)
