"""Which group is tried again and what is refused: the logic alone, on a scripted cluster of no machines."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import fake_records as fake
import pytest
from harness_trials import SilentObserver, make_trial

from rnnbench.fleet import dispatch as dispatch_module
from rnnbench.fleet.cluster import FleetError, Node
from rnnbench.fleet.dispatch import ATTEMPTS, PLACEMENTS, Dispatch, Group
from rnnbench.fleet.journal import FleetJournal
from rnnbench.fleet.messages import GroupDone, GroupFailed, NodeFacts, StageBegun, TrialDone, encode
from rnnbench.fleet.same_suite import SuiteFacts
from rnnbench.plan import begin_run
from rnnbench.results import Conditions, Store, read_run
from rnnbench.worker import called_while_waiting

SUITE = SuiteFacts("digest", "3.11", {"fake": {"rnnbench-fake": "1.0"}})
MACHINE = {"cpu": "a processor of this test", "cores": 4}
FACTS = NodeFacts(SUITE, MACHINE, niceness=0)
DONE = GroupDone({"total": 2.0}, Conditions(steal=0.1, load=(0.0, 1.0)))
NODE = Node("id", "node-a", True, {"measure": 1})


class Lost(Exception):
    """The task is gone."""


class ScriptedReply:
    def __init__(self, value):
        self.value = value


class ScriptedTask:
    def __init__(self, replies):
        self._replies = iter(replies)
        self.measure = self.messages = self
        self.was_ended = False

    def remote(self, *arguments):
        return ScriptedReply(next(self._replies)) if arguments else None


class ScriptedCluster:
    """Each task has a script: the reply to each question, or what asking raises."""

    def __init__(self, *scripts, nodes=(NODE,)):
        self._scripts = iter(scripts)
        self._nodes = list(nodes)
        self.tasks = []

    def offering(self):
        return self._nodes

    def node(self, node_id):
        return next((node for node in self._nodes if node.id == node_id), None)

    def start(self, work):
        task = ScriptedTask(next(self._scripts))
        self.tasks.append(task)
        return task, task.remote(work)

    def ready(self, replies, timeout_s):
        return replies[:1]

    def get(self, reply):
        if isinstance(reply.value, BaseException):
            raise reply.value
        return reply.value

    def cause(self, error, node):
        return f"node {node.name} was lost" if node else "the task was killed"

    def end(self, task):
        task.was_ended = True

    def missing(self):
        return "no node offers it"


def begun(facts=FACTS):
    return "id", encode(facts)


def lines(*messages):
    return [encode(message) for message in messages]


def done(trial, *, measured=True):
    """The record of a trial, with or without a latency."""
    record = (
        fake.record("fakelib", "ops", bound=1e-4) if measured else fake.record("fakelib", "ops", outcome="unsupported")
    )
    return TrialDone(record.model_copy(update={"trial": trial.id}))


@pytest.fixture
def trials():
    return [make_trial(chunk=2), make_trial(chunk=4)]


@pytest.fixture
def plan(trials, tmp_path):
    return begin_run(trials, Store(tmp_path))


@pytest.fixture
def dispatch(plan):
    """Runs the plan's trials as one group on a scripted cluster: what was left, what was told."""

    def dispatched(cluster, *, timed=True):
        told = []
        journal = FleetJournal(plan, SilentObserver(), timed=timed)
        whole = Dispatch(cluster, journal, SUITE, SilentObserver(), told.append)
        left = whole.run([Group(plan.trials)], lambda group: b"work", patience_s=0.2)
        assert all(task.was_ended for task in cluster.tasks)
        return left, told

    return dispatched


def recorded(plan):
    return [(record.trial, record.node) for record in read_run(plan.folder).records]


def test_records_name_their_node_and_the_run_has_the_nodes_machine(dispatch, plan, trials):
    script = [begun(), lines(StageBegun(trials[0].id, "build")), lines(*map(done, trials), DONE)]
    assert dispatch(ScriptedCluster(script)) == ([], [])
    assert recorded(plan) == [(trial.id, "node-a") for trial in trials]
    info = read_run(plan.folder).info
    assert info.machine == info.nodes["node-a"].machine == MACHINE
    assert info.nodes["node-a"].conditions == DONE.conditions


def test_a_record_that_is_sent_twice_is_written_once(dispatch, plan, trials):
    first, second = map(done, trials)
    assert dispatch(ScriptedCluster([begun(), lines(first, first, second, DONE)])) == ([], [])
    assert len((plan.folder / "records.jsonl").read_text().splitlines()) == len(trials)


def test_a_group_that_is_tried_again_is_begun_before_those_that_wait(plan, trials):
    trials.append(make_trial(chunk=3))
    groups = [Group((trial,)) for trial in trials]
    ended = [[begun(), lines(done(trial), DONE)] for trial in trials]
    cluster, begins = ScriptedCluster([begun(), Lost()], ended[1], ended[0], ended[2]), []
    journal = FleetJournal(plan, SilentObserver(), timed=True)
    whole = Dispatch(cluster, journal, SUITE, SilentObserver(), lambda said: None)
    assert whole.run(groups, lambda group: begins.append(group.trials[0]) or b"work") == []
    assert begins == [trials[0], trials[1], trials[0], trials[2]]


class Leaving(ScriptedCluster):
    """All nodes but the first are lost at the first look."""

    def ready(self, replies, timeout_s):
        del self._nodes[1:]
        return super().ready(replies, timeout_s)


def test_a_lost_node_is_named_with_those_that_are_left(dispatch, trials):
    other = replace(NODE, id="b", name="node-b")
    cluster = Leaving([begun(), lines(done(trials[0]), done(trials[1]), DONE)], nodes=(NODE, other))
    assert dispatch(cluster) == ([], ["node node-b was lost; left: node-a"])


class Slow(ScriptedCluster):
    """No reply comes for some looks after the first ones, and then an interrupt."""

    def __init__(self, *scripts, replies=0, looks=10):
        super().__init__(*scripts)
        self._replies, self._looks = replies, looks

    def ready(self, replies, timeout_s):
        self._looks -= 1
        if self._looks < 0:
            raise KeyboardInterrupt
        self._replies -= 1
        return replies[:1] if self._replies >= 0 else []


@pytest.mark.parametrize(("replies", "times"), [(0, 2), (1, 0)], ids=["none has begun", "one has begun"])
def test_a_run_that_waits_for_a_task_to_begin_says_so_from_time_to_time(plan, monkeypatch, replies, times):
    seconds = count()
    monkeypatch.setattr(dispatch_module, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    told = []
    journal = FleetJournal(plan, SilentObserver(), timed=True)
    looks = []
    whole = Dispatch(Slow([begun(), []], replies=replies), journal, SUITE, SilentObserver(), told.append)
    with called_while_waiting(lambda: looks.append(1)), pytest.raises(KeyboardInterrupt):
        whole.run([Group(plan.trials)], lambda group: b"work", patience_s=5.0)
    assert len(looks) == 10, "a bar can say what goes on"
    assert [said.partition(":")[0] for said in told] == ["waiting for a task to begin"] * times


def test_a_group_of_which_nothing_was_measured_is_tried_again_without_what_has_a_record(dispatch, plan, trials):
    lost = [begun(), lines(done(trials[0], measured=False)), Lost()]
    again = [begun(), lines(done(trials[1]), DONE)]
    because = "node node-a was lost; nothing of the group was measured, so it is tried once more"
    left, told = dispatch(ScriptedCluster(lost, again))
    assert not left
    assert told == [f"{trials[1].id}: {because}"]
    assert recorded(plan) == [(trial.id, "node-a") for trial in trials]


def test_a_group_of_which_something_was_measured_is_left(dispatch, plan, trials):
    cluster = ScriptedCluster([begun(), lines(done(trials[0])), Lost()])
    (left,), told = dispatch(cluster)
    assert left.trials == (trials[1],)
    assert left.reason == "node node-a was lost"
    assert told == [f"{trials[1].id}: no record: node node-a was lost"]
    assert len(cluster.tasks) == 1
    assert [trial for trial, _ in recorded(plan)] == [trials[0].id]


def test_a_group_is_tried_no_more_than_twice(dispatch, plan, trials):
    cluster = ScriptedCluster([begun(), Lost()], [begun(GroupFailed("the disk is full"))])
    (left,), _ = dispatch(cluster)
    assert left.trials == tuple(trials)
    assert left.reason == "on node node-a: the disk is full"
    assert len(cluster.tasks) == 2


def test_a_task_that_is_lost_before_it_begins_is_no_try(dispatch, plan, trials, monkeypatch):
    """Ray places tasks on a node that has just died."""
    monkeypatch.setattr(dispatch_module, "LOOK_S", 0.0)
    scripts = [[Lost()] for _ in range(3)]
    left, told = dispatch(ScriptedCluster(*scripts, [begun(), lines(*map(done, trials), DONE)]))
    assert not left
    assert told == [f"{trials[0].id} and 1 more: the task was killed before it began, so it is begun again"] * 3
    assert recorded(plan) == [(trial.id, "node-a") for trial in trials]


def test_a_group_whose_tasks_never_begin_is_left(dispatch, trials, monkeypatch):
    monkeypatch.setattr(dispatch_module, "LOOK_S", 0.0)
    cluster = ScriptedCluster(*([Lost()] for _ in range(ATTEMPTS * PLACEMENTS)))
    (left,), _ = dispatch(cluster)
    assert left.trials == tuple(trials)
    assert len(cluster.tasks) == ATTEMPTS * PLACEMENTS


@pytest.mark.parametrize(
    "sent",
    [
        [b"no JSON"],
        [b'{"kind": "trial", "record": {}}'],
        [b'{"kind": "order", "what": "format the disk"}'],
        lines(FACTS),
        lines(StageBegun("another/trial", "build")),
        lines(done(make_trial("fake:build-fails"))),
    ],
)
def test_what_is_no_message_of_the_group_ends_its_task_and_is_not_written(dispatch, plan, sent):
    (left,), told = dispatch(ScriptedCluster([begun(), sent], [begun(), sent]))
    assert "it sent something that is no message" in left.reason
    assert len(told) == 2
    assert not recorded(plan)


def test_a_task_that_ends_without_every_record_is_not_done(dispatch, trials):
    (left,), _ = dispatch(ScriptedCluster([begun(), lines(done(trials[0]), DONE)]))
    assert left.trials == (trials[1],)
    assert left.reason == "node node-a sent no record of them"


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (replace(FACTS, suite=replace(SUITE, source="other")), "its source of rnnbench is another one"),
        (replace(FACTS, suite=replace(SUITE, python="3.12")), "its Python is 3.12, the driver's 3.11"),
        (replace(FACTS, suite=replace(SUITE, versions={})), "fake is none, the driver's"),
        (replace(FACTS, suite=replace(SUITE, source="other", python="3.12")), "is another one; its Python is 3.12"),
        (replace(FACTS, niceness=15), "RAY_worker_niceness=0"),
    ],
)
def test_a_node_that_is_not_the_drivers_equal_ends_the_run(dispatch, plan, facts, words):
    cluster = ScriptedCluster([begun(facts)])
    with pytest.raises(FleetError, match="node node-a") as refused:
        dispatch(cluster)
    assert words in str(refused.value)
    assert cluster.tasks[0].was_ended
    assert not recorded(plan)


def two_machines(trials):
    other = Node("other", "node-b", True, {"measure": 1})
    second = "other", encode(replace(FACTS, machine={**MACHINE, "cores": 8}))
    return ScriptedCluster(
        [begun(), lines(done(trials[0]), DONE)], [second, lines(done(trials[1]), DONE)], nodes=(NODE, other)
    )


def test_two_machines_are_not_mixed_in_one_run(plan, trials):
    cluster = two_machines(trials)
    journal = FleetJournal(plan, SilentObserver(), timed=True)
    whole = Dispatch(cluster, journal, SUITE, SilentObserver(), print)
    with pytest.raises(FleetError, match=r"node node-b is another machine .* \(cores: 8, and not 4\).*--machine-class"):
        whole.run([Group((trial,)) for trial in trials], lambda group: b"work")
    assert all(task.was_ended for task in cluster.tasks)


def test_a_check_may_use_two_machines_and_rows_tell_which(plan, trials):
    journal = FleetJournal(plan, SilentObserver(), timed=False)
    whole = Dispatch(two_machines(trials), journal, SUITE, SilentObserver(), print)
    assert whole.run([Group((trial,)) for trial in trials], lambda group: b"work") == []
    assert read_run(plan.folder).info.machine == MACHINE
    rows = read_run(plan.folder).rows()
    assert [(row["node"], row["machine_cores"]) for row in rows] == [("node-a", 4), ("node-b", 8)]
    assert len({row["machine"] for row in rows}) == 2


def test_a_run_that_no_node_can_measure_ends(dispatch):
    script = [Lost()], [Lost()]

    class Empty(ScriptedCluster):
        def ready(self, replies, timeout_s):
            return []

    cluster = Empty(*script, nodes=())
    with pytest.raises(FleetError, match="no node offers it"):
        dispatch(cluster)
    assert cluster.tasks[0].was_ended


def test_an_interrupt_ends_the_tasks(dispatch):
    class Interrupted(ScriptedCluster):
        def ready(self, replies, timeout_s):
            raise KeyboardInterrupt

    cluster = Interrupted([begun()])
    with pytest.raises(KeyboardInterrupt):
        dispatch(cluster)
    assert cluster.tasks[0].was_ended


def test_every_node_has_a_task_and_one_more_waits_for_the_next_that_is_free(plan, trials):
    """Also for a node that joins. A further one waits here, so that the longest groups are begun in their order."""
    trials += [make_trial(chunk=chunk) for chunk in (3, 6, 12)]
    other = Node("other", "node-b", True, {"measure": 1})

    class Waiting(ScriptedCluster):
        def ready(self, replies, timeout_s):
            raise KeyboardInterrupt

    cluster = Waiting(*([begun()] for _ in trials), nodes=(NODE, other))
    journal = FleetJournal(plan, SilentObserver(), timed=True)
    whole = Dispatch(cluster, journal, SUITE, SilentObserver(), print)
    with pytest.raises(KeyboardInterrupt):
        whole.run([Group((trial,)) for trial in trials], lambda group: b"work")
    assert len(cluster.tasks) == 3


def test_a_task_that_is_lost_once_every_trial_has_its_record_is_no_loss(dispatch, trials):
    cluster = ScriptedCluster([begun(), lines(done(trials[1]), done(trials[0], measured=False)), Lost()])
    assert dispatch(cluster) == ([], [])
    assert len(cluster.tasks) == 1


def test_a_try_after_one_that_began_may_be_placed_as_often_as_the_first(dispatch, trials, monkeypatch):
    monkeypatch.setattr(dispatch_module, "LOOK_S", 0.0)
    scripts = [
        *([Lost()] for _ in range(PLACEMENTS - 1)),
        [begun(), Lost()],
        *([Lost()] for _ in range(PLACEMENTS - 1)),
    ]
    left, _ = dispatch(ScriptedCluster(*scripts, [begun(), lines(*map(done, trials), DONE)]))
    assert not left


@pytest.mark.parametrize(("niceness", "is_refused"), [(0, False), (-5, False), (1, True)])
def test_a_node_may_not_be_nicer_than_the_driver(dispatch, trials, niceness, is_refused):
    cluster = ScriptedCluster([begun(replace(FACTS, niceness=niceness)), lines(*map(done, trials), DONE)])
    if is_refused:
        with pytest.raises(FleetError, match="RAY_worker_niceness=0"):
            dispatch(cluster)
    else:
        assert dispatch(cluster) == ([], [])


def test_a_task_is_ended_as_soon_as_its_group_is_done(plan, trials):
    """Its node is free for the next one then."""
    ended = []

    class Noting(ScriptedCluster):
        def start(self, work):
            ended.append([task.was_ended for task in self.tasks])
            return super().start(work)

    first, second, third = [*trials, make_trial(chunk=3)]
    cluster = Noting(*([begun(), lines(done(trial), DONE)] for trial in (first, second, third)))
    journal = FleetJournal(plan, SilentObserver(), timed=True)
    whole = Dispatch(cluster, journal, SUITE, SilentObserver(), print)
    assert whole.run([Group((trial,)) for trial in (first, second, third)], lambda group: b"work") == []
    assert ended == [[], [False], [True, False]]
