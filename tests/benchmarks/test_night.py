"""A planted slowdown is found, confirmed, listed and closed by nights of real backends (minutes, pip; no figures).

They are NumPy and ONNX Runtime, through pip and real environments. Only the releases are fake: the second night has one
into which a slowdown is planted, the third one without it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness_command import run_command
from real_releases import Index

from rnnbench.history import Alerts, History

CASE = """\
schema: 1
name: night
model: {cell: gru, input: 16, hidden: 64}
workload: {steps: 8, chunk: 1}
strategy: {time: looped, state: stitched}
limits: {endurance: 10ms}
measure: {budget: 100ms, processes: 2}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "night.yaml").write_text(CASE)
    return tmp_path


def night(folder: Path, *options: str, status: int = 0) -> str:
    where = ("--environments", str(folder / "environments"))
    # The index has no package of the anchors' environments.
    arguments = ("night", "night.yaml", "--backend=onnxruntime", "--anchors=none", "--budget=60s", *where, *options)
    page = run_command(folder, *arguments, status=status).stdout
    print(page)
    return page


def test_a_planted_slowdown_is_found_confirmed_listed_and_closed_when_it_is_taken_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index(folder / "index", monkeypatch)
    index.release("1.31.1")
    assert "**Nothing to tell**" in night(folder)
    index.release("1.31.2", slowdown=2.0)
    assert "1.31.1 → 1.31.2" in night(folder, "--same-trials=0", status=1)
    alerts = Alerts.read(folder / "results" / "alerts.yaml").all
    confirmed = [alert for alert in alerts if alert.state == "confirmed"]
    assert {alert.found.what for alert in confirmed} == {"bound", "public"}
    for alert in confirmed:
        assert alert.ab.interval[0] > 1
        assert alert.id in (folder / "reports" / "night" / "site" / "alerts.html").read_text()
    index.release("1.31.3")
    assert "## Closed tonight" in night(folder, "--same-trials=0")
    states = {alert.id: alert.state for alert in Alerts.read(folder / "results" / "alerts.yaml").all}
    assert {states[alert.id] for alert in confirmed} == {"mended"}
    data = json.loads((folder / "reports" / "night" / "night.json").read_text())
    assert set(data["closed"]) >= {alert.id for alert in confirmed}
    history = History(folder / "results" / "history")
    assert [entry.same for entry in history.comparisons] == [True, False, False]
    versions = [run.versions["onnxruntime"]["onnxruntime"] for run in history.nights]
    assert versions == ["1.31.1", "1.31.2", "1.31.3"]
