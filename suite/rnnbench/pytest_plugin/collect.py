"""A case file as a pytest collector: its trials on the backends that are asked for, each of them a test."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest

from rnnbench.backends.registry import BackendError, find
from rnnbench.cases import MAX_TRIALS, CaseError, ExpectedFailure, Target, Trial
from rnnbench.cli.known import known_failures
from rnnbench.cli.options import Selection
from rnnbench.pytest_plugin import backends_asked
from rnnbench.pytest_plugin.item import TrialItem

_KEYS = re.compile(rb"^(schema|name|model|workload|strategy|target|matrix|limits|measure)[ \t]*:", re.MULTILINE)
"""Keys of a case, where they begin a line."""
ENOUGH_KEYS = 3
"""Different ones that make YAML a case, if perhaps a faulty one: a case needs five, and other formats share two."""


def looks_like_case(path: Path) -> bool:
    """Whether a YAML file is meant to be a case. One that is so faulty as not to be YAML still is."""
    try:
        return len(set(_KEYS.findall(path.read_bytes()))) >= ENOUGH_KEYS
    except OSError:
        return False


def check_backends(config: pytest.Config) -> None:
    """Raises pytest.UsageError where --rnnbench-backend names what is not there, or not installed."""
    try:
        _selection(config).targets(baseline=False)
    except (BackendError, click.UsageError) as error:
        raise pytest.UsageError(f"rnnbench: {_text(error)}") from None


def header(config: pytest.Config) -> list[str]:
    """What the trials run on, with versions: for the head of pytest's report, a line each."""
    try:
        targets = _selection(config).targets(baseline=False)
    except (BackendError, click.UsageError) as error:
        return [f"rnnbench: {_text(error)}"]
    return [f"rnnbench: {target} with {_versions(target)}" for target in targets]


def _versions(target: Target) -> str:
    versions = find(target.backend).probe().versions
    return ", ".join(f"{name} {version}" for name, version in versions.items())


class CaseCollector(pytest.File):
    """One case file. What is wrong with it is told as `rnnbench` tells it, with file, line and column."""

    def collect(self) -> Iterator[TrialItem]:
        trials, known = self._trials()
        for trial in trials:
            yield TrialItem.from_parent(self, name=trial.id.partition("/")[2], trial=trial, known=known)

    @property
    def name_for_people(self) -> str:
        """Its path from where pytest was started: what a command can be given."""
        return os.path.relpath(self.path, self.config.invocation_params.dir)

    def _trials(self) -> tuple[list[Trial], Sequence[ExpectedFailure]]:
        """The trials of the case, and the failures that are known of it."""
        selection = _selection(self.config, Path(self.name_for_people))
        try:
            trials = selection.enduring(selection.trials(baseline=False), _endurance(self.config))
            (known,) = known_failures(selection.load(), (trial.target.backend for trial in trials), None).values()
        except (BackendError, CaseError, click.UsageError) as error:
            raise self.CollectError(_text(error)) from None
        return trials, known


def _selection(config: pytest.Config, *cases: Path) -> Selection:
    return Selection(
        cases=cases,
        backends=tuple(backends_asked(config)),
        overrides=tuple(config.getoption("rnnbench_set")),
        only=(),
        filters=(),
        max_trials=MAX_TRIALS,
    )


def _endurance(config: pytest.Config) -> float | None:
    """Seconds; none where trials are timed, as in `rnnbench run`; None for what each case says."""
    asked: float | None = config.getoption("rnnbench_endurance")
    return 0.0 if asked is None and config.getoption("benchmark_only", False) else asked


def _text(error: Exception) -> str:
    return error.format_message() if isinstance(error, click.UsageError) else str(error)
