"""What is asked of Ray and made of its answers, with a Ray of this file. `test_on_a_cluster.py` has a real one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rnnbench.fleet import FleetError, Place, cluster
from rnnbench.fleet.cluster import Cluster, Node


class ActorError(Exception):
    """The task is gone."""


@pytest.fixture(autouse=True)
def answers(monkeypatch):
    """The head is there."""
    monkeypatch.setattr(cluster, "_refusal", lambda host, port: "")


def make_cluster(*nodes):
    """Nodes by name, whether each is alive, and what it offers."""
    found = [
        {"NodeID": f"{place}23456789", "NodeName": name, "Alive": is_alive, "Resources": resources}
        for place, (name, is_alive, resources) in enumerate(nodes)
    ]
    exceptions = SimpleNamespace(RayActorError=ActorError)
    ray = SimpleNamespace(nodes=lambda: found, remote=lambda task: task, exceptions=exceptions)
    return Cluster(ray, Place("ray"), "127.0.0.1:6379")


def test_nodes_that_share_a_name_have_their_ids_and_a_lost_one_shares_none():
    nodes = make_cluster(("a", True, {}), ("a", True, {}), ("b", True, {}), ("b", False, {})).nodes()
    assert [node.name for node in nodes] == ["a-023456", "a-123456", "b", "b"]


def test_a_lost_node_offers_nothing():
    measure = {"measure": 1}
    assert [node.name for node in make_cluster(("a", False, measure), ("b", True, measure)).offering()] == ["b"]


@pytest.mark.parametrize("amount", [1.5, 2])
def test_a_node_that_would_measure_two_at_once_is_refused(amount):
    with pytest.raises(FleetError, match=f"node a offers measure: {amount:g}"):
        make_cluster(("a", True, {"measure": amount})).offering()


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ActorError("gone"), "the task on node a was killed"),
        (ActorError("OutOfMemory"), "the task on node a was killed, by Ray: the node's memory was full"),
        (ValueError("Traceback\n  line 1\n\nKeyError: 'x'\n"), "the task on node a failed: KeyError: 'x'"),
    ],
)
def test_the_cause_of_a_lost_reply_is_told(monkeypatch, error, cause):
    monkeypatch.setattr(cluster, "LOST_LOOK_S", 0.0)
    monkeypatch.setattr(cluster.time, "sleep", lambda seconds: None)
    joined = make_cluster(("a", True, {}))
    assert joined.cause(error, Node("023456789", "a", True, {})) == cause


def test_a_node_offers_what_it_has_enough_of():
    measure = {"measure": 1}
    nodes = make_cluster(("a", True, {"measure": 0.5}), ("b", True, measure), ("c", True, {"CPU": 4})).offering()
    assert [node.name for node in nodes] == ["b"]


def test_a_machine_class_is_asked_of_a_node_beside_its_turn():
    assert Place("ray").resources == {"measure": 1}
    assert Place("ray", "epyc").resources == {"measure": 1, "epyc": 1}


def test_a_task_takes_the_turn_of_its_node_and_no_processors_and_is_not_begun_again_by_ray():
    """What began twice would be measured twice."""
    joined, asked = make_cluster(), []
    begin = SimpleNamespace(remote=lambda work: f"the reply to {work.decode()}")
    task = SimpleNamespace(begin=begin)
    made = SimpleNamespace(remote=lambda: task)
    joined._task = SimpleNamespace(options=lambda **options: asked.append(options) or made)
    assert joined.start(b"work") == (task, "the reply to work")
    assert asked == [{"num_cpus": 0, "resources": {"measure": 1}, "max_restarts": 0}]


@pytest.mark.parametrize("name", ["CPU", "GPU", "memory", "object_store_memory", "measure"])
def test_a_resource_of_rays_own_is_no_machine_class(name):
    with pytest.raises(FleetError, match=f"--machine-class {name}: expected"):
        Place("ray", name).require_class()


@pytest.mark.parametrize("is_known", [True, False])
def test_a_reply_that_never_comes_of_a_node_that_died_names_the_node(is_known):
    joined = make_cluster(("a", False, {}))
    node = Node("023456789", "a", True, {}) if is_known else None
    assert joined.cause(ActorError("gone"), node) == ("node a was lost" if is_known else "the task was killed")
    assert joined.cause(ActorError("its node has died"), None) == "its node was lost"


def test_a_node_whose_end_ray_reports_after_that_of_its_task_is_named(monkeypatch):
    joined = make_cluster(("a", True, {}))
    monkeypatch.setattr(cluster.time, "sleep", lambda seconds: joined._ray.nodes()[0].update(Alive=False))
    assert joined.cause(ActorError("gone"), Node("023456789", "a", True, {})) == "node a was lost"


def test_a_node_without_the_suite_ends_the_run():
    joined = make_cluster(("a", True, {}))
    with pytest.raises(FleetError, match="a node of ray has no rnnbench, or an older one"):
        joined.cause(ValueError("ModuleNotFoundError: No module named 'rnnbench.fleet'"), None)


def test_what_is_missing_is_told_beside_what_nodes_have_of_their_own():
    own = {"measure": 1.0, "epyc": 1.0, "memory": 1e9, "node:1.2.3.4": 1.0, "accelerator_type:H100": 1.0}
    told = make_cluster(("a", True, own), ("b", False, own)).missing()
    assert 'It has 1 node (a: "epyc": 1, "measure": 1). Start a node with: ' in told
