"""The selection of trials by cases, backends and filters, for the commands that share these options."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnnbench.cases import MAX_TRIALS
from rnnbench.cli.option_types import GivenPath, WholeNumber
from rnnbench.cli.options import BACKEND

if TYPE_CHECKING:
    from rnnbench.cases import Case, Target, Trial

_SELECTION = (
    click.argument("cases", nargs=-1, metavar="CASE…", type=GivenPath()),
    BACKEND,
    click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Replace a value of the cases, for example model.hidden=256. May be repeated.",
    ),
    click.option(
        "--only",
        multiple=True,
        metavar="ID",
        help="Keep only the trial with this id, or with these last 8 hex digits. May be repeated.",
    ),
    click.option(
        "--filter",
        "filters",
        multiple=True,
        metavar="EXPR",
        help="Keep only trials that match, for example time=looped,chunk=1|16: looped, and 1 or 16 steps a call. "
        "May be repeated: all must match.",
    ),
    click.option(
        "--max-trials",
        type=WholeNumber(min=1),
        default=MAX_TRIALS,
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
    max_trials: int = MAX_TRIALS

    def load_cases(self) -> list[Case]:
        """The cases. A file that is named twice is read once. Raises CaseError."""
        from rnnbench.cases import case_files, check_case_names, load_case
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
        """The named targets; if none is named, the default route of every installed backend. Raises BackendError.

        `baseline`, `installed` and `everywhere` are those of `plan.targets_of`. If all `cases` run model files, a name
        alone means the backend's route that reads them.
        """
        from rnnbench.plan import targets_of

        names = [name for text in self.backends for name in text.split(",") if name.strip()]
        if self.backends and not names:
            raise click.UsageError("--backend is empty; give at least one backend, for example --backend=numpy")
        runs_files = bool(cases) and all(case.file_formats for case in cases)
        reading = frozenset[str]().union(*(case.file_formats for case in cases)) if runs_files else ()
        return targets_of(names, baseline=baseline, installed=installed, everywhere=everywhere, reading=reading)


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
