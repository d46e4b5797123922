"""A trial as a pytest item: a test function of its own, so that marks, fixtures, -k and reports work as ever."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from rnnbench.cases import ExpectedFailure, Trial
from rnnbench.pytest_plugin.check import check_trial
from rnnbench.run.prepare import Findings, examine

if TYPE_CHECKING:
    from rnnbench.pytest_plugin.collect import CaseCollector

SKIPPED = ("unsupported", "unavailable")
"""Outcomes of trials that nothing is wrong with: they cannot be run."""


class TrialItem(pytest.Function):
    """Checks its trial; with --benchmark-only, times it through pytest-benchmark's fixture."""

    def __init__(self, *, trial: Trial, known: Sequence[ExpectedFailure], **given: Any) -> None:
        super().__init__(callobj=_function(given["parent"].config), **given)
        self.trial = trial
        self.known = known
        """The failures that its case expects."""
        self.findings: Findings = examine(trial)
        self.add_marker(_described(trial))
        failure = self.findings.failure
        if failure is not None and failure.outcome in SKIPPED:
            self.add_marker(pytest.mark.skip(reason=_why_skipped(self.findings)))

    @property
    def case_path(self) -> str:
        return cast("CaseCollector", self.parent).name_for_people

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
    model = trial.model.model_dump()
    where = {"backend": trial.target.backend, "route": trial.target.route}
    return pytest.mark.rnnbench(case=trial.case, **where, **model, **params)


def _why_skipped(findings: Findings) -> str:
    assert findings.failure is not None, "a trial that can be run is not skipped"
    upstream = f" ({findings.support.upstream})" if findings.support.upstream else ""
    target = findings.trial.target
    return f"{findings.failure.outcome} by {target}: {findings.failure.reason}{upstream}"
