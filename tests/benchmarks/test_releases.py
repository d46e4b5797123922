"""A backfill of two releases of ONNX Runtime, and a bisection over them (minutes, pip; docs/releases.md).

The environments are made by pip; most of the time is spent installing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from waiting import LONG_S

pytest.importorskip("duckdb")

from rnnbench.history import History, release_series

CASE = Path(__file__).parents[2] / "cases" / "backfill_gru_step.yaml"
FILTER = "hidden=96,time=fused"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("releases")


def rnnbench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rnnbench", *arguments, "--environments", str(folder / "environments")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=LONG_S)
    print(f"\n{done.stdout}{done.stderr}")
    return done


def test_a_backfill_measures_each_release_in_its_own_environment_and_the_reference_is_like_itself(folder) -> None:
    # The default of 15 minutes would end it between the releases where the machine is busy.
    options = ("--versions=1.20.1,1.31.1", "--within=2h", "--filter", FILTER)
    done = rnnbench(folder, "history", "backfill", "onnxruntime", str(CASE), *options)
    assert done.returncode == 0
    history = History(folder / "results" / "history")
    versions = {entry.release.version: entry.versions["onnxruntime"]["onnxruntime"] for entry in history.runs}
    assert versions == {"1.20.1": "1.20.1", "1.31.1": "1.31.1"}
    for series in release_series(history):
        assert [len(point.ratios) for point in series.points] == [8, 8]
        assert series.points[1].judged.verdict not in ("SLOWER", "FASTER")


def test_a_bisection_of_releases_that_do_not_differ_in_outcome_says_so(folder) -> None:
    trial = ("--backend=onnxruntime", "--filter", FILTER)
    done = rnnbench(folder, "bisect", str(CASE), *trial, "--on=outcome", "--good=1.20.1", "--bad=1.31.1")
    assert done.returncode == 2
    assert "have the same outcome: ok" in done.stderr
