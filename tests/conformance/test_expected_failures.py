"""Expected failures, compared with what happened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rnnbench.cases import ExpectedFailure
from rnnbench.conformance import expected_failure_results
from rnnbench.results.record import CheckResult

ENTRY = ExpectedFailure(
    place="expectations.yaml:3:5",
    backend="fake",
    version={},
    route=(),
    where={},
    check=("values",),
    also=("batch",),
    outcome=None,
    reason="A known fault.",
    upstream="https://example.org/1",
)
ENDS = replace(ENTRY, check=(), also=(), outcome="build-failed")


def results(entries, outcome, **verdicts):
    figures = {name: CheckResult(verdict=verdict.replace("_", "-")) for name, verdict in verdicts.items()}
    return {figure.what: figure.verdict for figure in expected_failure_results(entries, outcome, figures)}


@pytest.mark.parametrize(
    ("outcome", "verdicts", "told"),
    [
        ("nonconforming", {"values": "fail"}, {"values": "failed"}),
        ("nonconforming", {"values": "fail", "batch": "fail"}, {"values": "failed", "batch": "failed"}),
        ("ok", {"values": "pass", "batch": "pass"}, {"values": "passed"}),
        ("nonconforming", {"values": "pass", "batch": "fail"}, {"values": "passed", "batch": "failed"}),
        ("ok", {"values": "not_applicable"}, {}),
        ("unsupported", {}, {}),
        ("build-failed", {}, {}),
    ],
)
def test_a_check_that_was_to_fail_fails_or_is_told(outcome, verdicts, told):
    assert results([ENTRY], outcome, **verdicts) == told


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        ("build-failed", {"build-failed": "failed"}),
        ("ok", {"build-failed": "passed"}),
        ("nonconforming", {"build-failed": "passed"}),
        ("crashed", {}),
        ("unavailable", {}),
    ],
)
def test_an_outcome_that_was_to_come_comes_or_is_told(outcome, told):
    assert results([ENDS], outcome) == told


def test_what_one_entry_only_allows_and_another_wants_is_wanted():
    wants = replace(ENTRY, check=("batch",), also=())
    assert results([ENTRY, wants], "ok", values="pass", batch="pass") == {"values": "passed", "batch": "passed"}


def test_nothing_is_told_where_nothing_was_expected():
    assert results([], "nonconforming", values="fail") == {}
