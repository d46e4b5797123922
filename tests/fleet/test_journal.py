"""What the journal keeps of nodes: records with their samples, and what each node went through."""

from __future__ import annotations

import fake_records as fake
import numpy as np
import pytest
from harness_trials import SilentObserver, make_trial

from rnnbench.fleet.journal import FleetJournal, worker_seconds
from rnnbench.fleet.messages import GroupDone, NodeFacts, TrialDone, encode_samples
from rnnbench.fleet.same_suite import SuiteFacts
from rnnbench.plan import begin_run
from rnnbench.results import SAMPLE_COLUMNS, Conditions, NodeInfo, Store, read_samples

FACTS = NodeFacts(SuiteFacts("digest", "3.11", {}), {"cpu": "a processor of this test"}, niceness=0)


@pytest.fixture
def journal(tmp_path):
    journal = FleetJournal(begin_run([make_trial()], Store(tmp_path)), SilentObserver(), timed=True)
    journal.add_node("node-a", FACTS)
    return journal


def conditions_after(journal, *groups):
    """Those of the node once each of these groups has ended: seconds in total, and conditions."""
    for total, conditions in groups:
        journal.end_group("node-a", GroupDone({"total": total}, conditions))
    return journal.nodes["node-a"].conditions


def test_the_samples_of_a_record_are_found_by_its_trial(journal):
    record = fake.record()
    rows = np.arange(10.0).reshape(2, len(SAMPLE_COLUMNS))
    journal.write("node-a", TrialDone(record, {"bound": encode_samples(rows)}))
    np.testing.assert_array_equal(read_samples(journal._folder, record.trial, "bound"), rows)


def test_seconds_of_a_node_are_added_up_over_its_groups(journal):
    journal.end_group("node-a", GroupDone({"total": 2.0, "build": 1.0}, None))
    journal.end_group("node-a", GroupDone({"total": 6.0, "sample": 3.0}, None))
    assert journal.nodes["node-a"].seconds == {"total": 8.0, "build": 1.0, "sample": 3.0}


def test_conditions_of_groups_are_those_of_the_whole_time(journal):
    first = Conditions(steal=0.1, load=(0.0, 1.0), temperature=(40.0, 50.0))
    last = Conditions(steal=0.5, load=(2.0, 3.0), temperature=(45.0, 60.0))
    joined = conditions_after(journal, (3.0, first), (1.0, last))
    assert joined.steal == pytest.approx(0.2), "three quarters of the time is that of the first group"
    assert (joined.load, joined.temperature) == ((0.0, 3.0), (40.0, 60.0))


def test_a_group_without_conditions_leaves_those_before(journal):
    first = Conditions(steal=0.1, load=(0.0, 1.0))
    assert conditions_after(journal, (3.0, first), (1.0, None)) == first


def test_what_nodes_spent_is_that_since_the_beginning_without_their_wall_time():
    def node(**seconds):
        return NodeInfo(machine={}, versions={}, seconds=seconds)

    before = {"a": node(total=10.0, build=1.0)}
    after = {"a": node(total=15.0, build=3.0), "b": node(total=4.0, build=0.5, sample=2.0)}
    assert worker_seconds(before, after) == {"build": 2.5, "sample": 2.0}
