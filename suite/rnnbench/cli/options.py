"""Options that several commands share, and the selection of trials that some of them make."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from rnnbench.cases import Case, Target, Trial

PIPE_WIDTH = 110
"""Columns of what is printed into a file or a pipe."""
EXIT_INTERRUPTED = 130
RESULTS = click.option(
    "--results",
    default=Path("results"),
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder of runs.",
)
REPORTS = click.option(
    "--reports",
    default=Path("reports"),
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder of reports.",
)
BACKEND = click.option(
    "--backend",
    "backends",
    multiple=True,
    metavar="NAME[:ROUTE],…",
    help="Backends to run on, by name, name:route or name:*. Without it, all that are installed.",
)
THRESHOLD = click.option(
    "--threshold",
    default=0.03,
    show_default=True,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Smallest change of latency that matters, as a share.",
)
_SELECTION = (
    click.argument("cases", nargs=-1, metavar="CASE…", type=click.Path(path_type=Path)),
    BACKEND,
    click.option(
        "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key of the cases: model.hidden=256."
    ),
    click.option("--only", multiple=True, metavar="ID", help="Only the trial of this id, or of its 8 hex digits."),
    click.option(
        "--filter", "filters", multiple=True, metavar="EXPR", help="Only trials that match: time=looped,chunk=1|16."
    ),
    click.option(
        "--max-trials", default=10_000, show_default=True, help="Refuse a matrix larger than this before anything runs."
    ),
)


@dataclass(frozen=True)
class Selection:
    """What the command line says of cases, backends and the trials wanted of them."""

    cases: tuple[Path, ...]
    backends: tuple[str, ...]
    overrides: tuple[str, ...]
    only: tuple[str, ...]
    filters: tuple[str, ...]
    max_trials: int

    def load(self) -> list[Case]:
        """The cases, each read once. Raises CaseError, and UsageError where two would name their trials alike."""
        from rnnbench.cases.folders import case_files
        from rnnbench.cases.load import load_case

        if not self.cases:
            raise click.UsageError("name at least one case file, or a folder of them; some are in cases/")
        loaded = [
            load_case(path, self.overrides, self.max_trials) for named in self.cases for path in case_files(named)
        ]
        by_name: dict[str, str] = {}
        for case in loaded:
            if (other := by_name.setdefault(case.name, case.path)) != case.path:
                raise click.UsageError(
                    f"{other} and {case.path} are both named '{case.name}': their trials would be, too"
                )
        return loaded

    def trials(self, *, baseline: bool, here: bool = True) -> list[Trial]:
        """The trials selected; with `baseline`, those of the baselines are added to those of the named backends.

        Unless they are to run `here`, in this interpreter's environment, a backend that is named need not be in it.
        """
        from rnnbench.cases.select import select

        loaded = self.load()
        chosen = self.targets(baseline=baseline, here=here)
        trials = [trial for case in loaded for trial in case.trials(chosen, self.max_trials)]
        return select(trials, self.only, self.filters)

    def enduring(self, trials: Sequence[Trial], seconds: float | None) -> list[Trial]:
        """The trials with what each check that goes on for long may take: `seconds`, or else what their case says."""
        own = {case.name: case.endurance for case in self.load()}
        return [
            replace(t, limits=replace(t.limits, endurance=own[t.case] if seconds is None else seconds)) for t in trials
        ]

    def targets(self, *, baseline: bool, here: bool = True) -> list[Target]:
        """Targets by name, each of them here; or, where none is named, the default route of all that are here."""
        from rnnbench.backends.registry import baselines, find, names, targets

        named = [part for text in self.backends for part in text.split(",") if part.strip()]
        if self.backends and not named:
            raise click.UsageError("--backend names no backend")
        if not named:
            return targets(name for name in names() if find(name).probe().available)
        chosen = targets(named)
        for target in chosen if here else ():
            if lack := find(target.backend).probe().lack(target.route):
                raise click.UsageError(f"{target}: {lack.reason}; install it with: {lack.install}")
        return list(dict.fromkeys([*(baselines() if baseline else []), *chosen]))


def selection(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that select trials, and pass them on as one `selection`."""

    @wraps(command)
    def with_selection(**given: Any) -> None:
        command(selection=Selection(**{field.name: given.pop(field.name) for field in fields(Selection)}), **given)

    decorated: Callable[..., None] = with_selection
    for option in reversed(_SELECTION):
        decorated = option(decorated)
    return decorated


def console() -> Console:
    """A terminal's own width; elsewhere one that the tables fit into."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() or "COLUMNS" in os.environ else Console(width=PIPE_WIDTH)


def paths_of(cases: Sequence[Case]) -> dict[str, Path]:
    """The file of each case by the case's name."""
    return {case.name: Path(case.path) for case in cases}
