"""A run on a cluster outlives a lost process, node, driver or client, and signals (minutes; docs/fleet.md).

The cluster has two nodes on this machine. RNNBENCH_INTERRUPTS=N sends N signals. Needs the extra `fleet`.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from ray_nodes import Command, LocalCluster, command_in, running_cluster
from waiting import PATIENCE_S, ended, wait_until

from rnnbench.results import read_run

NODE_PROCESS = "rnnbench.fleet.node_process"
SIGNALS = int(os.environ.get("RNNBENCH_INTERRUPTS", 32))
ALL_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
HONEST = ("--backend=fake:honest", "--no-baseline")


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """It ends with its module: other tests count the children of their process."""
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture
def command(tmp_path: Path, cluster: LocalCluster) -> Iterator[Command]:
    with command_in(tmp_path, cluster) as command:
        yield command


def lines_of(folder):
    file = folder / "records.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_a_group_whose_process_is_killed_is_tried_once_more(command, cluster):
    process = command.start("run", "tiny.yaml", *HONEST, "--set", "model.hidden=4")
    wait_until(lambda: cluster.processes(NODE_PROCESS), "a node measures", process)
    cluster.processes(NODE_PROCESS)[0].kill()
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    assert "killed by signal 9" in printed
    assert "tried once more" in printed
    assert [record["outcome"] for record in lines_of(command.run_folder())] == ["ok"]


def test_the_group_of_a_lost_node_is_measured_by_another_one(command, cluster):
    cluster.add("node-c")
    process = command.start("run", "tiny.yaml", *HONEST)
    wait_until(lambda: list(command.folder.glob("results/[!.]*/run.json")), "the run has begun", process)
    wait_until(lambda: "node-c" in read_run(command.run_folder()).info.nodes, "the node measures", process)
    cluster.remove("node-c")
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    # Ray may tell of the task's end long before it tells of the node's.
    assert "node node-c was lost" in printed or "the task on node node-c was killed" in printed
    assert "(raylet)" not in printed, "Ray's own account of a lost node is long"
    run = read_run(command.run_folder())
    assert [record.outcome for record in run.records] == ["ok"] * 3
    assert "node-c" not in {record.node for record in run.records}


def test_an_interrupted_driver_leaves_no_task_and_its_run_goes_on(command, cluster):
    process = command.start("run", "tiny.yaml", *HONEST)
    wait_until(lambda: list(command.folder.glob("results/[!.]*")), "the run has begun", process)
    wait_until(lambda: len(lines_of(command.run_folder())) >= 1, "one group is measured", process)
    measuring = cluster.processes(NODE_PROCESS)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 130, printed
    folder = command.run_folder()
    assert f"--resume results/{folder.name} --on {cluster.address}" in printed
    wait_until(lambda: ended(measuring), "tasks end with the driver")
    before = lines_of(folder)
    assert 1 <= len(before) < 3

    command("run", "--resume", "latest")
    after = lines_of(folder)
    assert after[: len(before)] == before, "what has a record is not run again"
    assert len({record["trial"] for record in after}) == len(after) == 3
    assert read_run(folder).info.finished


def test_where_the_head_goes_away_the_run_ends_with_a_sentence(tmp_path):
    with running_cluster() as cluster, command_in(tmp_path, cluster) as command:
        process = command.start("run", "tiny.yaml", *HONEST)
        wait_until(lambda: list(command.folder.glob("results/[!.]*")), "the run has begun", process)
        wait_until(lambda: len(lines_of(command.run_folder())) >= 1, "one group is measured", process)
        (head,) = cluster.processes("/gcs_server ")
        head.kill()
        printed, _ = process.communicate(timeout=300)
        assert process.returncode == 2, printed
        assert f"--on {cluster.address}: the cluster has gone away" in printed
        assert f"--resume results/{command.run_folder().name} --on {cluster.address}" in printed


def test_a_run_that_gets_signals_at_random_moments_goes_on(command, cluster):
    draw, wrong, sent, slowest = random.Random(0), [], 0, 0.0
    begun = time.monotonic()
    command("run", "tiny.yaml", *HONEST)
    took = time.monotonic() - begun
    while sent < SIGNALS:
        before = {folder: lines_of(folder) for folder in command.folder.glob("results/[!.]*")}
        open_runs = [folder for folder in before if not read_run(folder).info.finished]
        how = ("--resume", str(open_runs[0])) if open_runs else ("tiny.yaml", *HONEST)
        process = command.start("run", *how, preexec_fn=partial(signal.signal, signal.SIGHUP, signal.SIG_DFL))
        wait_until(lambda process=process: answers_signals(process), "the command begins", process)
        number = ALL_SIGNALS[sent % len(ALL_SIGNALS)]
        try:
            process.wait(draw.uniform(0, took))
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            sent += 1
        signalled = time.monotonic()
        printed, _ = process.communicate(timeout=PATIENCE_S)
        wait_until(lambda: not cluster.processes(NODE_PROCESS), "tasks end with the driver")
        slowest = max(slowest, time.monotonic() - signalled)
        expected = {0, -signal.SIGKILL if number == signal.SIGKILL else 130}
        if process.returncode not in expected or "Traceback" in printed:
            wrong.append(f"{number!r}: status {process.returncode}: {printed[-2000:]}")
        wrong += [
            f"{number!r}: {folder} lost records"
            for folder in before
            if lines_of(folder)[: len(before[folder])] != before[folder]
        ]
    print(f"\nrun --on: {sent} signals, {len(wrong)} wrong, the slowest end {slowest:.2f} s")
    assert not wrong, "\n".join(wrong)


def answers_signals(process):
    """Whether the command has begun: it has a handler for SIGTERM."""
    if process.poll() is not None:
        return True
    (mask,) = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text())
    return bool(int(mask, 16) >> (signal.SIGTERM - 1) & 1)


def test_a_check_goes_through_the_client_too(command, cluster):
    on = ["--on", cluster.client_address, "--machine-class", "only_node-b"]
    command("check", "tiny.yaml", "--backend=fake:wrong-third-step,fake:honest", on=on, status=1)
    run = read_run(command.run_folder())
    assert {(record.route, record.outcome) for record in run.records} == {
        ("honest", "ok"),
        ("wrong-third-step", "nonconforming"),
    }
    assert {record.node for record in run.records} == {"node-b"}
    assert not any(record.timing.latency for record in run.records)


def test_joining_is_tried_again_where_the_cluster_fails_to_start_its_side(command, cluster):
    """A cluster starts a process of its own for each client. Here the first one dies as it starts."""
    own = {process.pid for process in cluster.processes("specific-server")}
    process = command.start("check", "tiny.yaml", "--backend=fake:honest", on=["--on", cluster.client_address])

    def started():
        return [found for found in cluster.processes("specific-server") if found.pid not in own]

    wait_until(started, "the cluster starts a process for the client", process)
    started()[0].kill()
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed


def test_resources_that_no_node_offers_are_named(command, cluster):
    on = ["--on", cluster.address, "--machine-class", "nosuch"]
    printed = command("run", "tiny.yaml", *HONEST, on=on, status=2)
    assert 'offers "measure": 1, "nosuch": 1' in printed
    assert 'node-a: "measure": 1, "only_node-a": 1' in printed
    assert '--resources=\'{"measure": 1, "nosuch": 1}\'' in printed
    assert not list(command.folder.glob("results/*")), "no trial was begun, so there is no run"
