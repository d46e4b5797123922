"""A check with a time of its own says how far it came, and too short a check has not passed."""

from __future__ import annotations

import pytest

from rnnbench.cases import Limits
from rnnbench.conformance.budget import FIRST, Budget, planned_turns
from rnnbench.results import CheckResult


def run(planned, least, seconds):
    budget = Budget("calls", planned, least, seconds)
    turns = list(budget)
    assert turns == list(range(budget.done))
    return budget


def test_all_that_is_planned_is_done_where_there_is_time():
    budget = run(planned=30, least=20, seconds=3600)
    assert budget.done == 30
    result = budget.result(CheckResult(verdict="pass"))
    assert (result.verdict, result.detail) == ("pass", "30 calls")


def test_without_time_the_first_turns_are_made_and_that_is_no_pass():
    result = run(planned=10_000, least=200, seconds=0).result(CheckResult(verdict="pass"))
    assert result.verdict == "too-short"
    assert result.figures == {"done": FIRST, "planned": 10_000, "least": 200}
    assert f"{FIRST} of 10,000 calls in its 0 s; below 200 a pass means nothing" in result.detail


@pytest.mark.parametrize("verdict", ["fail", "chaotic", "not-applicable"])
def test_what_is_no_pass_stays_what_it_is(verdict):
    result = run(planned=10_000, least=200, seconds=0).result(CheckResult(verdict=verdict, detail="wrong"))
    assert (result.verdict, result.detail) == (verdict, "wrong")


def test_enough_turns_are_a_pass_that_says_how_far_it_came():
    budget = run(planned=100, least=5, seconds=0)
    result = budget.result(CheckResult(verdict="pass"))
    assert (result.verdict, result.detail) == ("pass", f"{FIRST} of 100 calls in its 0 s")


@pytest.mark.parametrize(("done", "verdict"), [(29, "too-short"), (30, "pass")])
def test_one_turn_below_the_least_is_no_pass(done, verdict):
    budget = Budget("calls", 10_000, 30, 3600, done=done)
    assert budget.result(CheckResult(verdict="pass")).verdict == verdict


def test_once_it_has_its_least_it_ends_when_there_was_enough_time():
    budget = Budget("calls", 10_000, 30, 3600, enough=0)
    assert len(list(budget)) == 30
    assert budget.result(CheckResult(verdict="pass")).detail == "30 of 10,000 calls in its 0 s"


def test_with_less_than_its_least_it_has_all_of_its_time():
    budget = Budget("calls", 10_000, 30, 0, enough=0)
    assert len(list(budget)) == FIRST
    assert budget.result(CheckResult(verdict="pass")).verdict == "too-short"


def test_where_a_case_says_what_is_enough_no_more_turns_are_planned_than_faults_need():
    assert planned_turns(Limits(), 4_000, 160) == 4_000
    assert planned_turns(Limits(enough=0.05), 4_000, 160) == 160
    assert planned_turns(Limits(enough=0.05), 100, 160) == 100
