"""A trial as a pytest item: a test function of its own, so that marks, fixtures, -k and reports work as ever."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from rnnbench.cases import ExpectedFailure, Trial
from rnnbench.plan import examine
from rnnbench.pytest_plugin.trial_test import check_trial
from rnnbench.stages import Examined

if TYPE_CHECKING:
    from rnnbench.pytest_plugin.collect import CaseCollector

SKIPPED = ("unsupported", "unavailable")
"""Outcomes of trials that nothing is wrong with: they cannot be run."""


class TrialItem(pytest.Function):
    """Checks its trial; with --benchmark-only, times it through pytest-benchmark's fixture."""

    def __init__(self, *, trial: Trial, expected_failures: Sequence[ExpectedFailure], **given: Any) -> None:
        super().__init__(callobj=_function(given["parent"].config), **given)
        self.trial = trial
        self.expected_failures = expected_failures
        """The expected failures of its case."""
        examined = examine(trial)
        self.add_marker(_described(trial))
        failure = examined.failure
        if failure is not None and failure.outcome in SKIPPED:
            self.add_marker(pytest.mark.skip(reason=_why_skipped(examined)))

    @property
    def case_path(self) -> str:
        return cast("CaseCollector", self.parent).relative_path

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


def _function(config: pytest.Config) -> Any:
    """With --benchmark-only, which pytest-benchmark brings, the test that asks for its fixture."""
    if not config.getoption("benchmark_only", False):
        return check_trial
    from rnnbench.pytest_plugin.benchmark import CLOCK, time_trial

    return pytest.mark.benchmark(timer=CLOCK)(time_trial)


def _described(trial: Trial) -> pytest.MarkDecorator:
    """The mark that says what the trial is, for -m."""
    params = {key: value for key, value in trial.params.items() if key != "model"}
    model = trial.model.case_keys
    where = {"backend": trial.target.backend, "route": trial.target.route}
    return pytest.mark.rnnbench(case=trial.case, **where, **model, **params)


def _why_skipped(examined: Examined) -> str:
    assert examined.failure is not None, "a trial that can be run is not skipped"
    upstream = f" ({examined.support.upstream})" if examined.support.upstream else ""
    target = examined.trial.target
    return f"{examined.failure.outcome} by {target}: {examined.failure.reason}{upstream}"
