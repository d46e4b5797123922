"""A run's plan is in its folder. The trials that are left are those without a record."""

from __future__ import annotations

import json

import pytest
from harness_trials import make_trial

from rnnbench.cases import ExpectedFailure
from rnnbench.pipeline import not_checked, not_sampled, record_of
from rnnbench.plan import begin_run, end_run, examine, resume_run
from rnnbench.plan.run_plan import EXPECTED_FAILURES, TRIALS
from rnnbench.results import Store, StoreError, read_run
from rnnbench.results.journal import append_record


def test_a_new_run_has_all_of_its_trials_left(tmp_path):
    trials = (make_trial(chunk=1), make_trial(chunk=4))
    plan = begin_run(trials, Store(tmp_path))
    assert plan.trials == trials
    assert resume_run(plan.folder) == plan
    info = read_run(plan.folder).info
    assert info.cases == ("harness",)
    assert info.seed == plan.seed
    assert info.versions == {"fake": {"rnnbench-fake": "1.0"}}
    assert info.finished is None


def test_a_resumed_run_leaves_out_trials_that_have_a_record(tmp_path):
    done, left = make_trial(chunk=1), make_trial(chunk=4)
    plan = begin_run([done, left], Store(tmp_path))
    append_record(plan.folder, record_of(not_sampled(not_checked(examine(done)))))
    assert resume_run(plan.folder).trials == (left,)


def test_expected_failures_are_part_of_the_plan(tmp_path):
    entry = ExpectedFailure(
        place="expectations.yaml:3:5",
        backend="fake",
        version={},
        route=("honest",),
        where={},
        check=("values",),
        also=(),
        outcome=None,
        reason="Known.",
        upstream="https://example.org/1",
    )
    trial = make_trial()
    plan = begin_run([trial], Store(tmp_path), {"harness": [entry]})
    assert list(plan.expected_of(trial)) == [entry]
    assert list(resume_run(plan.folder).expected_of(trial)) == [entry]


def test_seconds_add_up_over_the_sittings_of_a_run(tmp_path):
    folder = begin_run([make_trial()], Store(tmp_path)).folder
    end_run(folder, {"total": 3.0, "build": 1.0})
    end_run(folder, {"total": 4.0, "check": 2.0})
    info = read_run(folder).info
    assert info.seconds == {"total": 7.0, "build": 1.0, "check": 2.0}
    assert info.finished is not None


@pytest.mark.parametrize("name", [TRIALS, EXPECTED_FAILURES])
@pytest.mark.parametrize(
    "damage", [lambda path: path.unlink(), lambda path: path.write_text(json.dumps([{"case": 1}]))], ids=["gone", "bad"]
)
def test_a_run_whose_plan_cannot_be_read_is_not_resumed_and_the_message_names_the_file(tmp_path, damage, name):
    folder = begin_run([make_trial()], Store(tmp_path)).folder
    damage(folder / name)
    with pytest.raises(StoreError, match=name):
        resume_run(folder)
