"""How a run becomes groups of a cluster, and when it has ended. The cluster and its dispatch are made up."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest
from harness_trials import SilentObserver, expected_failure, make_trial

from rnnbench.fleet import Place, run, run_on_cluster
from rnnbench.fleet.dispatch import UnfinishedTrials
from rnnbench.fleet.messages import decode_work
from rnnbench.plan import RunPlan, begin_run
from rnnbench.results import NodeInfo, Store, read_run

SHORT = make_trial()
LONG = [replace(make_trial(chunk=chunk), batch=2) for chunk in (2, 4)]


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Runs the trials on a cluster that leaves these: the groups that it got, and the run."""
    monkeypatch.setattr(run, "join", nullcontext)

    def on_a_cluster(left, **options):
        got, work = [], []

        class Dispatched:
            def __init__(self, *_):
                pass

            def run(self, groups, work_of):
                work.extend(decode_work(work_of(group)) for group in groups)
                got.extend(groups)
                return left

        monkeypatch.setattr(run, "Dispatch", Dispatched)
        plan = begin_run([SHORT, *LONG], Store(tmp_path))
        assert run_on_cluster(plan, Place("ray"), SilentObserver(), print, **options) == left
        return [group.trials for group in got], read_run(plan.folder), work

    return on_a_cluster


def test_the_group_with_the_most_to_sample_is_first_and_a_whole_run_has_ended(groups):
    got, done, _ = groups([])
    assert got == [tuple(LONG), (SHORT,)]
    assert done.info.finished


def test_a_run_with_trials_that_are_left_has_not_ended(groups):
    _, done, _ = groups([UnfinishedTrials((SHORT,), "node a was lost")])
    assert done.info.finished is None


@pytest.mark.parametrize("options", [{}, {"timed": False, "jobs": 3, "rebuild": True}])
def test_a_node_is_told_all_that_the_command_said(groups, options):
    _, done, work = groups([], **options)
    assert {one.seed for one in work} == {done.info.seed}
    told = {"timed": True, "jobs": None, "rebuild": False, **options}
    assert [{name: getattr(one, name) for name in told} for one in work] == [told] * 2


def test_a_node_knows_the_expected_failures_of_its_trials(groups, monkeypatch):
    entry = expected_failure()
    monkeypatch.setattr(RunPlan, "expected_of", lambda self, trial: (entry,))
    _, _, work = groups([])
    assert [one.expected_failures for one in work] == [{"harness": (entry,)}] * 2


def test_a_resumed_run_counts_what_nodes_spent_in_this_sitting(groups, monkeypatch):
    asked = []
    nodes = {"node-a": NodeInfo(machine={}, versions={}, seconds={"build": 3.0})}
    monkeypatch.setattr(run.FleetJournal, "nodes", nodes)
    monkeypatch.setattr(run, "worker_seconds", lambda before, after: asked.append((before, after)) or {"build": 1.0})
    _, done, _ = groups([])
    assert done.info.seconds["build"] == 1.0
    ((before, after),) = asked
    assert before == after == nodes
    assert before is not after, "what there was at the beginning"
