"""Expected failures, compared with what happened."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness_trials import expected_failure

from rnnbench.conformance import TrialEnd, expected_failure_results
from rnnbench.model_files import FileArray, FileNetwork
from rnnbench.model_files.file_arrays import CarriedState
from rnnbench.results.record import CheckResult

ENTRY = expected_failure(also=("batch",))
ENDS = replace(ENTRY, check=(), also=(), outcome="build-failed")


def results(entries, outcome, **verdicts):
    figures = {name: CheckResult(verdict=verdict.replace("_", "-")) for name, verdict in verdicts.items()}
    return {figure.what: figure.verdict for figure in expected_failure_results(entries, TrialEnd(outcome), figures)}


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


def carried(name: str, size: int) -> CarriedState:
    before = FileArray(name=name, shape=(1, size))
    return CarriedState(before=before, after=before.model_copy(update={"name": f"{name}_next"}))


FILE = FileNetwork(
    file="my.pt2",
    path="my.pt2",
    sha256="0",
    inputs=(FileArray(name="x", shape=(1, 3), is_new=True),),
    results=(FileArray(name="y", shape=(1, 2), is_new=True), FileArray(name="other", shape=(1, 4), is_new=True)),
    states=(carried("position", 1), carried("h", 4)),
    constants=(),
    steps=1,
    rows=1,
    weights=1,
    spoiled=(("one-element-state", ("position", "position_next", "y")),),
)
"""A file whose y depends on its position, and whose `other` depends on h alone."""
OF_FILE = replace(ENTRY, check=(), also=("values", "batch"), contains=("one-element-state",))
DIES = replace(OF_FILE, also=(), outcome="crashed", stage=("load", "check"), says=("SIGSEGV",))


def results_of_file(entry, ended, **details):
    checked = {name: CheckResult(verdict="fail", detail=detail) for name, detail in details.items()}
    return {figure.what: figure.verdict for figure in expected_failure_results([entry], ended, checked)}


@pytest.mark.parametrize(
    ("detail", "known"),
    [
        ("state position at the end: off by 1 at [0, 0, 0], got 1, expected 2", True),
        ("y at step 2: off by 1 at [0, 1], got 1, expected 2", True),
        ("y at step 2: off by inf at [0, 1], got nan, expected 2; wrong: y, position", True),
        ("state h at the end: off by 1 at [0, 0, 3], got 1, expected 2", False),
        ("y at step 2: off by 1 at [0, 2], got 1, expected 2", False),
        ("y at step 2: off by 1 at [0, 1], got 1, expected 2; wrong: y, other, position", False),
        ("y at step 2: off by 1 at [0, 1], got 1, expected 2; wrong: y, h", False),
        ("two equal calls give the same y, in columns 0-1 too: no state goes from one to the next", True),
        ("two equal calls give the same y, in columns 0-4 too: no state goes from one to the next", False),
        ("with another session between the calls, y of call 1: 1 of 6 elements differ, in columns 1", True),
        ("with another session between the calls, y of call 1: 2 of 6 elements differ, in columns 1, 4", False),
        ("raised ValueError: y is no array", False),
        ("the worker's floating-point flags changed", False),
    ],
)
def test_a_known_fault_of_a_file_is_one_where_only_what_it_spoils_is_wrong(detail, known):
    told = results_of_file(OF_FILE, TrialEnd("nonconforming", "check", model=FILE), values=detail)
    assert told == ({"values": "failed"} if known else {})


@pytest.mark.parametrize(
    ("outcome", "stage", "reason", "known"),
    [
        ("crashed", "check", "died of SIGSEGV", True),
        ("crashed", "build", "died of SIGSEGV", False),
        ("crashed", "check", "died of SIGILL", False),
        ("timed-out", "check", "no answer within 9 s", False),
    ],
)
def test_a_known_death_of_a_file_has_its_stage_and_its_words(outcome, stage, reason, known):
    told = results_of_file(DIES, TrialEnd(outcome, stage, reason, FILE))
    assert told == ({"crashed": "failed"} if known else {})


@pytest.mark.parametrize("entry", [OF_FILE, DIES])
def test_a_file_may_pass_although_it_contains_what_a_fault_is_known_of(entry):
    checked = {"values": CheckResult(verdict="pass")}
    assert expected_failure_results([entry], TrialEnd("ok", model=FILE), checked) == ()
