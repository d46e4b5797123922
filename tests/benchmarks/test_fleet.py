"""What a cluster of N nodes saves, by the durations of groups on one real Ray node (minutes; docs/fleet.md).

The figures of N nodes are a SIMULATION. It has no network, no noise and no two machines: only the durations of the
groups and of starting a task are measured. Needs the extra `fleet`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ray_nodes import LocalCluster

from rnnbench.cases import load_case
from rnnbench.fleet import Place
from rnnbench.fleet import run as fleet_run
from rnnbench.fleet.dispatch import Dispatch, Group
from rnnbench.pipeline import NoProgress
from rnnbench.plan import begin_run, targets_of
from rnnbench.results import Store, read_run

CASE = """\
schema: 1
name: fleet
model: {cell: lstm, input: 64, hidden: [32, 64, 96, 128, 160, 192, 224, 256], layers: [1, 2]}
workload: {steps: 64, chunk: [1, 16]}
strategy: {time: looped, state: stitched}
measure: {budget: 500ms, processes: 2}
"""
NODES = (1, 4, 16)


@dataclass
class Timed:
    """Seconds of each group on its node: until its task has begun there, and from then on to its end."""

    start: list[float] = field(default_factory=list)
    group: list[float] = field(default_factory=list)


def simulated(durations: Sequence[float], nodes: int) -> float:
    """Seconds until the last of the groups ends, each given to the node that is free first, in this order."""
    free_at = [0.0] * nodes
    for seconds in durations:
        first = free_at.index(min(free_at))
        free_at[first] += seconds
    return max(free_at)


def test_the_schedule_is_that_of_nodes_that_take_the_next_group():
    assert simulated([5, 3, 2, 2], 1) == 12
    assert simulated([5, 3, 2, 2], 2) == 7
    assert simulated([5, 3, 2, 2], 16) == 5


@pytest.fixture
def timed(monkeypatch) -> Timed:
    """Notes what each group takes, as the driver sees it."""
    timed, begun = Timed(), {}

    class Noting(Dispatch):
        def _begun(self, running: Any, node_id: str, line: bytes) -> str | None:
            now = time.monotonic()
            timed.start.append(now - begun.get("free", begun["run"]))
            begun[running.group] = now
            return super()._begun(running, node_id, line)

        def _settle(self, running: Any, reason: str) -> None:
            begun["free"] = time.monotonic()
            timed.group.append(begun["free"] - begun[running.group])
            super()._settle(running, reason)

        def run(self, groups: Sequence[Group], work_of: Any) -> Any:
            begun["run"] = time.monotonic()
            return super().run(groups, work_of)

    monkeypatch.setattr(fleet_run, "Dispatch", Noting)
    return timed


def test_how_far_nodes_help(tmp_path: Path, timed: Timed):
    pytest.importorskip("ray", reason="the extra `fleet` is not installed")
    (tmp_path / "fleet.yaml").write_text(CASE)
    trials = load_case(tmp_path / "fleet.yaml").trials(targets_of(["numpy"]))
    cluster = LocalCluster()
    try:
        cluster.add("node-a")
        plan = begin_run(trials, Store(tmp_path))
        place = Place(cluster.client_address)
        assert not fleet_run.run_on_cluster(plan, place, NoProgress(), print)
    finally:
        cluster.close()
    run = read_run(plan.folder)
    seconds = run.info.nodes["node-a"].seconds
    whole = [start + group for start, group in zip(timed.start, timed.group, strict=True)]
    print(f"\nmeasured on one Ray node: {len(run.records)} trials in {len(whole)} groups, {sum(whole):.0f} s")
    print(f"a group takes {min(timed.group):.1f} to {max(timed.group):.1f} s")
    print(f"a task starts within {max(timed.start):.1f} s")
    print(f"of the node's time, imports took {seconds['import'] / seconds['total']:.0%}")
    size = sum(file.stat().st_size for file in (plan.folder / "samples").iterdir())
    size += (plan.folder / "records.jsonl").stat().st_size
    print(f"records and samples that came back: {size / len(run.records) / 1e3:.0f} kB a trial")
    print("| nodes (simulated) | seconds | times as fast | at work |\n|---|---|---|---|")
    alone = simulated(whole, 1)
    for nodes in NODES:
        lasts = simulated(whole, nodes)
        print(f"| {nodes} | {lasts:.0f} | {alone / lasts:.1f} | {alone / lasts / nodes:.0%} |")
    assert len(whole) == 16
    assert simulated(whole, 16) >= max(whole)
