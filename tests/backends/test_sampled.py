"""A trial of every backend comes through a whole run: built in a fork, checked, sampled beside its least program."""

from __future__ import annotations

from pathlib import Path

from harness_trials import make_trial, run_trials

from rnnbench.cases.trial import Measure, Target


def test_a_run_has_all_of_its_figures(default_target: Target, tmp_path: Path) -> None:
    trial = make_trial(str(default_target), state="stateful", measure=Measure(budget=0.1, processes=1))
    _, records = run_trials([trial], tmp_path)
    record = records[trial.id]
    assert (record.outcome, record.reason) == ("ok", "")
    timing = record.timing
    assert timing.build_s is not None
    assert timing.latency.get("bound") is not None
    assert timing.latency.get("public") is not None
    assert timing.state_copy is not None
    assert timing.dispatch_floor is not None
    assert timing.dispatch_floor.unmeasured == ""
    assert timing.dispatch_floor.seconds is not None
