"""Pinned anchors run in environments of their own, and are divided by (minutes, pip; no figures)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from waiting import LONG_S

pytest.importorskip("duckdb")

from rnnbench.history import History, find_events, machines_without_anchors
from rnnbench.history.series import trials_of_machines
from rnnbench.results import read_run

CASE = """\
schema: 1
name: tiny
model: {cell: lstm, input: 3, hidden: [4, 6]}
workload: {steps: 8, chunk: 2}
strategy: {time: looped, state: stitched}
measure: {budget: 100ms, processes: 2}
"""
ANCHORS = """\
schema: 1
name: anchors
model: {cell: gru, input: 16, hidden: 16}
workload: {steps: 8, chunk: 1}
strategy: {time: looped, state: stitched}
measure: {budget: 200ms, processes: 2}
pinned:
  numpy:eager: numpy==2.2.6
  onnxruntime:onnx: onnxruntime==1.22.1 numpy==2.2.6
  openvino:onnx: openvino==0.0.1
"""
VERSIONS = {"numpy:eager": {"numpy": "2.2.6"}, "onnxruntime:onnx": {"onnxruntime": "1.22.1"}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a whole run and two shards, each with the anchors, in one history."""
    folder = tmp_path_factory.mktemp("anchors")
    (folder / "tiny.yaml").write_text(CASE)
    (folder / "own.yaml").write_text(ANCHORS)
    run = ("run", "tiny.yaml", "--backend=fake:honest", "--anchors=own.yaml", "--environments=environments")
    rnnbench(folder, *run, "--no-baseline")
    for number in (1, 2):
        rnnbench(folder, *run, "--no-baseline", "--shard", f"{number}/2")
    rnnbench(folder, "history", "add", *map(str, runs(folder)))
    return folder


def rnnbench(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "rnnbench", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONG_S)
    print(f"\n{done.stdout}{done.stderr}")
    assert done.returncode == 0


def runs(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob("results/[!.]*/run.json"))


def test_each_anchor_has_its_pinned_versions_and_the_other_trials_those_that_run(folder):
    for run in map(read_run, runs(folder)):
        anchors = {record.target: record for record in run.records if record.params.pinned}
        for target, versions in VERSIONS.items():
            assert anchors[target].outcome == "ok"
            assert versions.items() <= anchors[target].version.items()
            assert anchors[target].latency("bound").median > 0
        others = {record.target: record.outcome for record in run.records if not record.params.pinned}
        assert others == {"fake:honest": "ok"}


def test_a_version_that_is_not_there_is_told_and_ends_no_run(folder):
    for run in map(read_run, runs(folder)):
        (record,) = (record for record in run.records if record.backend == "openvino")
        assert record.outcome == "unavailable"
        assert "openvino==0.0.1" in record.reason


def test_the_environments_are_made_once(folder):
    ready = sorted((folder / "environments").glob("*/ready.json"))
    assert len({file.stat().st_mtime_ns for file in ready}) == len(ready)
    assert max(file.stat().st_mtime for file in ready) < runs(folder)[1].stat().st_mtime


def test_the_history_divides_by_them_and_sees_no_new_version_in_them(folder):
    history = History(folder / "results" / "history")
    assert machines_without_anchors(history) == ()
    ((_, trials),) = trials_of_machines(history)
    measured = {name.split("/")[1] for name, is_anchor in zip(trials.names, trials.is_anchor, strict=True) if is_anchor}
    assert measured == set(VERSIONS)
    assert not [event for event in find_events(history) if event.fact == "versions"]


def test_the_report_ranks_no_anchor_and_lists_them(folder):
    page = (folder / "reports" / runs(folder)[0].name / "report.md").read_text()
    ranked, _, listed = page.partition("### Anchors")
    assert "numpy==2.2.6" in listed
    assert (
        "numpy:eager" not in ranked.partition("## Findings")[0].partition("## Ranking")[2].partition("## Pictures")[0]
    )
