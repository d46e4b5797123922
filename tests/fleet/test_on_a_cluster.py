"""`--on`: a run on a real cluster of two nodes. What happens where a process, a node or the driver is lost is in
tests/benchmarks/test_cluster.py."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from ray_nodes import NODES
from waiting import wait_until

from rnnbench.results import SAMPLE_COLUMNS, read_run, view_runs

NODE_PROCESS = "rnnbench.fleet.node_process"
HONEST = ("--backend=fake:honest", "--no-baseline")
END = SAMPLE_COLUMNS.index("end")


def lines_of(folder):
    file = folder / "records.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def nodes_of_workloads(run):
    """By hidden size, the nodes that measured its trials."""
    found = defaultdict(set)
    for record in run.records:
        found[record.params.model["hidden"]].add(record.node)
    return found


def test_each_workload_is_measured_by_one_node_and_each_node_measures_one_at_a_time(command):
    command("run", "tiny.yaml", *HONEST)
    run = read_run(command.run_folder())
    assert [record.outcome for record in run.records] == ["ok"] * 3
    of_workload = nodes_of_workloads(run)
    assert set.union(*of_workload.values()) == set(NODES)
    assert all(len(nodes) == 1 for nodes in of_workload.values())
    assert {(workload.hidden, workload.node) for workload in view_runs([run]).workloads} == {
        (hidden, node) for hidden, (node,) in of_workload.items()
    }

    spans = defaultdict(list)
    for hidden, (node,) in of_workload.items():
        of_group = [r.trial for r in run.records if r.params.model["hidden"] == hidden]
        times = np.concatenate([run.samples(trial, path)[:, END] for trial in of_group for path in ("bound", "public")])
        spans[node].append((times.min(), times.max()))
    for of_node in spans.values():
        of_node.sort()
        assert all(last < first for (_, last), (first, _) in pairwise(of_node))

    info = run.info
    assert set(info.nodes) == set(NODES)
    assert info.finished
    for node in info.nodes.values():
        assert node.machine["cores"] == info.machine["cores"]
        assert node.versions["fake"] == {"rnnbench-fake": "1.0"}
        assert node.conditions is not None
        assert node.seconds["total"] > 0
    assert {row["node"] for row in run.rows()} == set(NODES)
    assert (command.folder / "reports" / run.name / "report.md").is_file()


@pytest.mark.proof
def test_a_node_with_other_versions_is_refused(command, cluster, monkeypatch):
    """The driver's environment names another version of the fake backend than the nodes have."""
    monkeypatch.setitem(cluster.environment, "RNNBENCH_FAKE_VERSION", "2.0")
    printed = command("run", "tiny.yaml", *HONEST, status=2)
    assert "has another environment than the driver: rnnbench-fake is 1.0, the driver's 2.0" in printed
    wait_until(lambda: not cluster.processes(NODE_PROCESS), "a process of a node outlived the run")
    assert not list(command.folder.glob("results/*")), "nothing was measured, so there is no run"
