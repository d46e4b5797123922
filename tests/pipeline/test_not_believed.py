"""A program that changes the clock is found by the suite's own; its figures are in no ranking, or it has failed."""

from __future__ import annotations

import pytest
from harness_trials import make_trial, run_trials

from rnnbench.results import rank, read_run, view_runs

ROUTES = ("honest", "sample-slows-the-clock", "sample-turns-the-clock-back")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder, _ = run_trials([make_trial(f"fake:{route}") for route in ROUTES], tmp_path_factory.mktemp("run"))
    return read_run(folder)


def test_a_clock_that_is_slow_makes_the_figures_not_believed(run):
    honest, slow, _ = run.records
    assert (honest.outcome, honest.findings) == ("ok", ())
    assert slow.outcome == "ok"
    assert "replaced time.perf_counter_ns" in slow.not_believed


def test_a_clock_that_goes_back_is_a_failure_of_its_trial(run):
    back = run.records[2]
    assert (back.outcome, back.stage) == ("run-failed", "sample")
    assert back.reason.startswith("times that cannot be: ")


def test_what_is_not_believed_is_in_no_ranking(run):
    (ranking,) = rank(view_runs([run]).entries)
    assert [place.entry.record.route for place in ranking.places] == ["honest"]


def test_opening_binding_and_closing_are_in_the_record(run):
    timing = run.records[0].timing
    assert min(timing.open_s, timing.bind_s, timing.close_s) > 0
