"""The exit status of a command that ran trials: a wrong number is worse than a trial that failed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rnnbench.cli.exit_status import FAILED, NONCONFORMING, OK, exit_status


def record(outcome, *, as_expected=False, passes=False):
    return SimpleNamespace(outcome=outcome, fails_as_expected=as_expected, passes_unexpectedly=passes)


@pytest.mark.parametrize(
    ("records", "status"),
    [
        ([], OK),
        ([record("ok"), record("unsupported"), record("unavailable")], OK),
        ([record("ok"), record("crashed")], FAILED),
        ([record("nonconforming"), record("crashed")], NONCONFORMING),
        ([record("nonconforming", as_expected=True), record("build-failed", as_expected=True)], OK),
        ([record("ok", passes=True)], NONCONFORMING),
    ],
)
def test_the_worst_outcome_decides(records, status):
    assert exit_status(records) == status
