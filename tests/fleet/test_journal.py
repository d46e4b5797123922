"""What the journal keeps of nodes: records with their samples, and what each node went through."""

from __future__ import annotations

from dataclasses import replace

import fake_records as fake
import numpy as np
import pytest
from harness_trials import SilentObserver, make_trial

from rnnbench.fleet import FleetError
from rnnbench.fleet.journal import FleetJournal, worker_seconds
from rnnbench.fleet.messages import GroupDone, MessageError, NodeFacts, TrialDone, encode_samples
from rnnbench.fleet.same_suite import SuiteFacts
from rnnbench.plan import begin_run
from rnnbench.results import SAMPLE_COLUMNS, Conditions, NodeInfo, Store, append_record, read_run, read_samples

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


def test_a_record_has_its_node_and_the_seed_of_its_run(journal):
    journal.write("node-a", TrialDone(fake.record()))
    (record,) = read_run(journal._folder).records
    assert (record.node, record.run_seed) == ("node-a", read_run(journal._folder).info.seed)
    assert (journal.recorded, journal.measured) == ({record.trial}, {record.trial})


def test_a_record_without_a_latency_is_not_measured(journal):
    journal.write("node-a", TrialDone(fake.record(outcome="unsupported")))
    assert (len(journal.recorded), journal.measured) == (1, set())


def test_samples_that_cannot_be_read_leave_no_record(journal):
    with pytest.raises(MessageError):
        journal.write("node-a", TrialDone(fake.record(), {"bound": "no base64"}))
    assert read_run(journal._folder).records == ()
    assert journal.recorded == set()


def test_each_record_is_told(tmp_path):
    observer = SilentObserver()
    journal = FleetJournal(begin_run([make_trial()], Store(tmp_path)), observer, timed=True)
    journal.add_node("node-a", FACTS)
    journal.write("node-a", TrialDone(fake.record()))
    assert [record.node for record in observer.records] == ["node-a"]


@pytest.mark.parametrize("what", ["records", "nodes"])
@pytest.mark.parametrize("timed", [True, False])
def test_a_run_that_goes_on_has_the_machine_that_it_was_begun_on(tmp_path, what, timed):
    plan = begin_run([make_trial()], Store(tmp_path))
    if what == "records":
        append_record(plan.folder, fake.record())
    else:
        FleetJournal(plan, SilentObserver(), timed=True).add_node("node-a", FACTS)
    before = read_run(plan.folder).info.machine
    journal = FleetJournal(plan, SilentObserver(), timed=timed)
    other = replace(FACTS, machine={"cpu": "another processor"})
    if timed:
        with pytest.raises(FleetError, match="node node-b is another machine than the one that this run was begun on"):
            journal.add_node("node-b", other)
    else:
        journal.add_node("node-b", other)
        assert journal.nodes["node-b"].machine == other.machine
    assert read_run(plan.folder).info.machine == before


def test_a_node_that_measures_again_keeps_what_it_spent_before(journal):
    journal.end_group("node-a", GroupDone({"total": 2.0}, None))
    journal.add_node("node-a", FACTS)
    assert journal.nodes["node-a"].seconds == {"total": 2.0}


def test_conditions_of_groups_that_took_no_time_have_no_share(journal):
    first, last = (Conditions(steal=steal, load=(0.0, 1.0)) for steal in (0.1, 0.5))
    assert conditions_after(journal, (0.0, first), (0.0, last)).steal is None
