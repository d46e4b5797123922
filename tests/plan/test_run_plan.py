"""A run's plan is in its folder, and what is left of it is what has no record."""

from __future__ import annotations

import json

import pytest
from harness_trials import make_trial

from rnnbench.results import Store, StoreError, read_run
from rnnbench.run.plan import TRIALS, begin, end, remaining


def test_a_new_run_has_all_of_its_trials_before_it(tmp_path):
    trials = [make_trial(chunk=1), make_trial(chunk=4)]
    run = begin(trials, Store(tmp_path))
    assert remaining(run) == trials
    info = read_run(run).info
    assert info.cases == ("harness",)
    assert info.versions == {"fake": {"rnnbench-fake": "1.0"}}
    assert info.finished is None


def test_seconds_add_up_over_the_sittings_of_a_run(tmp_path):
    run = begin([make_trial()], Store(tmp_path))
    end(run, {"total": 3.0, "build": 1.0})
    end(run, {"total": 4.0, "check": 2.0})
    info = read_run(run).info
    assert info.seconds == {"total": 7.0, "build": 1.0, "check": 2.0}
    assert info.finished is not None


@pytest.mark.parametrize(
    "damage", [lambda path: path.unlink(), lambda path: path.write_text(json.dumps([{"case": 1}]))]
)
def test_a_run_whose_plan_is_gone_cannot_go_on_and_says_so(tmp_path, damage):
    run = begin([make_trial()], Store(tmp_path))
    damage(run / TRIALS)
    with pytest.raises(StoreError, match=TRIALS):
        remaining(run)
