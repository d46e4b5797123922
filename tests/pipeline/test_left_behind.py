"""What a program leaves behind in its process stands in its record as what it is, and harms no other trial."""

from __future__ import annotations

import pytest
from harness_trials import check_trial, context_in, make_trial, run_trials

from rnnbench.cases import Measure
from rnnbench.results import FindingKind

pytestmark = pytest.mark.usefixtures("few_checks")

ROUTES = ("honest", "leaves-denormals-flushed", "sample-leaks-descriptors")


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    measure = Measure(budget=0.1, processes=1, precision=1e-6)
    trials = {route: make_trial(f"fake:{route}", measure=measure) for route in ROUTES}
    _, records = run_trials(list(trials.values()), tmp_path_factory.mktemp("results"))
    return {route: records[trial.id] for route, trial in trials.items()}


def details(record):
    assert all(finding.kind is FindingKind.PROCESS and not finding.disbelieved for finding in record.findings)
    return [finding.detail for finding in record.findings]


def test_a_program_that_leaves_nothing_has_no_finding(records):
    assert (records["honest"].outcome, details(records["honest"])) == ("ok", [])


def test_denormals_that_were_left_flushed_are_named_and_fail_nothing(records):
    record = records["leaves-denormals-flushed"]
    assert record.outcome == "ok"
    found = details(record)
    assert "the check 'values' left the floating-point environment changed: denormals flushed to zero" in found[0]
    assert any(detail.startswith("the sampled calls left the floating-point environment changed") for detail in found)
    assert len(found) == len(set(found))


def test_a_trial_that_leaks_descriptors_ends_with_its_process(records):
    record = records["sample-leaks-descriptors"]
    assert record.outcome == "run-failed"
    assert "left a process that no other trial can use: " in record.reason
    assert "more descriptors" in record.reason


def test_a_check_that_fails_because_of_a_setting_names_it(tmp_path):
    """The suite's own arithmetic raises where an adapter made NumPy raise."""
    checked = check_trial(make_trial("fake:leaves-errors-raised"), context_in(tmp_path))
    failed = {name: result.detail for name, result in checked.results.items() if result.verdict == "fail"}
    assert all("left NumPy's handling of errors changed: " in detail for detail in failed.values()), failed
    assert any("handling of errors" in finding.detail for finding in checked.findings)
