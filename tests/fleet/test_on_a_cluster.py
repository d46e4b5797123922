"""`--on`: a run on a real cluster of two nodes, in which a process is lost.

`tests/benchmarks/test_on_a_cluster.py` has what takes longer: a lost node, a lost driver, and `ray://`.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
from ray_nodes import NODES
from waiting import wait_until

from rnnbench.results import SAMPLE_COLUMNS, read_run, view_runs

NODE_PROCESS = "rnnbench.fleet.node_process"
HONEST = ("--backend=fake:honest", "--no-baseline")
END = SAMPLE_COLUMNS.index("end")


def nodes_of_workloads(run):
    """By hidden size, the nodes that measured its trials."""
    found = defaultdict(set)
    for record in run.records:
        found[record.params.model["hidden"]].add(record.node)
    return found


def test_each_workload_is_measured_by_one_node_and_each_node_measures_one_at_a_time(command, cluster):
    """Also where a process of a node is killed: its group is tried once more."""
    process = command.start("run", "tiny.yaml", *HONEST)
    wait_until(lambda: cluster.processes(NODE_PROCESS), "a node measures", process)
    cluster.processes(NODE_PROCESS)[0].kill()
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    assert "killed by signal 9" in printed
    assert "tried once more" in printed
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
