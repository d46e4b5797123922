"""A case file as a pytest collector: its trials on the backends that are asked for, each of them a test."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest

from rnnbench.backends import BackendError
from rnnbench.cases import CaseError, ExpectedFailure, Target, Trial
from rnnbench.cli.selection import Selection
from rnnbench.disk import read_plain
from rnnbench.plan import expected_failures, probe_or_stand_in
from rnnbench.pytest_plugin import requested_backends
from rnnbench.pytest_plugin.item import TrialItem

_KEYS = re.compile(rb"^(schema|name|model|workload|strategy|target|matrix|limits|measure)[ \t]*:", re.MULTILINE)
"""Keys of a case, where they begin a line."""
ENOUGH_KEYS = 3
"""Different ones that make YAML a case, if perhaps a faulty one: a case needs five, and other formats share two."""


def looks_like_case(path: Path) -> bool:
    """Whether a YAML file is meant to be a case. One that is so faulty as not to be YAML still is."""
    try:
        return len(set(_KEYS.findall(read_plain(path)))) >= ENOUGH_KEYS
    except OSError:
        return False


def check_backends(config: pytest.Config) -> None:
    """Raises pytest.UsageError where --rnnbench-backend names what is not there, or not installed."""
    try:
        _selection(config).targets()
    except (BackendError, click.UsageError) as error:
        raise pytest.UsageError(f"rnnbench: {_text(error)}") from None


def header(config: pytest.Config) -> list[str]:
    """What the trials run on, with versions: for the head of pytest's report, a line each."""
    try:
        targets = _selection(config).targets()
    except (BackendError, click.UsageError) as error:
        return [f"rnnbench: {_text(error)}"]
    return [f"rnnbench: {target} with {_versions(target)}" for target in targets]


def _versions(target: Target) -> str:
    versions = probe_or_stand_in(target.backend).versions
    return ", ".join(f"{name} {version}" for name, version in versions.items())


class CaseCollector(pytest.File):
    """One case file. What is wrong with it is told as `rnnbench` tells it, with file, line and column."""

    def collect(self) -> Iterator[TrialItem]:
        trials, expected = self._trials()
        for trial in trials:
            yield TrialItem.from_parent(self, name=trial.id.partition("/")[2], trial=trial, expected_failures=expected)

    @property
    def relative_path(self) -> str:
        """Its path from where pytest was started, for commands."""
        return os.path.relpath(self.path, self.config.invocation_params.dir)

    def _trials(self) -> tuple[list[Trial], Sequence[ExpectedFailure]]:
        """The trials of the case, and its expected failures."""
        selection = _selection(self.config, Path(self.relative_path))
        try:
            cases = selection.load_cases()
            trials = selection.select(cases, selection.targets(cases), _endurance(self.config))
            (expected,) = expected_failures(cases, trials).values()
        except (BackendError, CaseError, click.UsageError) as error:
            raise self.CollectError(_text(error)) from None
        return trials, expected


def _selection(config: pytest.Config, *cases: Path) -> Selection:
    return Selection(
        cases=cases,
        backends=tuple(requested_backends(config)),
        overrides=tuple(config.getoption("rnnbench_set")),
    )


def _endurance(config: pytest.Config) -> float | None:
    """Seconds for each long check: none where trials are timed, as in `rnnbench run`; None for what the case says."""
    seconds: float | None = config.getoption("rnnbench_endurance")
    return 0.0 if seconds is None and config.getoption("benchmark_only", False) else seconds


def _text(error: Exception) -> str:
    return error.format_message() if isinstance(error, click.UsageError) else str(error)
