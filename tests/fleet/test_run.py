"""How a run becomes groups of a cluster, and when it has ended. The cluster and its dispatch are made up."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest
from harness_trials import SilentObserver, make_trial

from rnnbench.fleet import Place, run, run_on_cluster
from rnnbench.fleet.dispatch import Left
from rnnbench.plan import begin_run
from rnnbench.results import Store, read_run

SHORT = make_trial()
LONG = [replace(make_trial(chunk=chunk), batch=2) for chunk in (2, 4)]


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Runs the trials on a cluster that leaves these: the groups that it got, and the run."""
    monkeypatch.setattr(run, "join", nullcontext)

    def on_a_cluster(left):
        got = []

        class Dispatched:
            def __init__(self, *_):
                pass

            def run(self, groups, work_of):
                got.extend(groups)
                return left

        monkeypatch.setattr(run, "Dispatch", Dispatched)
        plan = begin_run([SHORT, *LONG], Store(tmp_path))
        assert run_on_cluster(plan, Place("ray"), SilentObserver(), print) == left
        return [group.trials for group in got], read_run(plan.folder)

    return on_a_cluster


def test_the_group_with_the_most_to_sample_is_first_and_a_whole_run_has_ended(groups):
    got, done = groups([])
    assert got == [tuple(LONG), (SHORT,)]
    assert done.info.finished


def test_a_run_with_trials_that_are_left_has_not_ended(groups):
    _, done = groups([Left((SHORT,), "node a was lost")])
    assert done.info.finished is None
