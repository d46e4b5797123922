"""`rnnbench ab` judges two versions of ONNX Runtime, and one version twice (minutes, pip; docs/verdicts.md).

It makes the environments itself; most of the time is spent installing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import LONG_S

from rnnbench.results import read_run

OLD, NEW = "onnxruntime==1.30.0", "onnxruntime==1.31.1"
CASE = Path(__file__).parents[2] / "cases" / "lstm_streaming.yaml"


@pytest.fixture(scope="module")
def environments(tmp_path_factory):
    return tmp_path_factory.mktemp("environments")


def ab(folder: Path, environments: Path, a: str, b: str) -> tuple[int, dict[str, object]]:
    selected = ["--backend=onnxruntime", "--filter", "time=fused,state=stitched,hidden=128"]
    sides = ["--a", a, "--b", b, "--environments", str(environments)]
    done = subprocess.run(
        [sys.executable, "-m", "rnnbench", "ab", str(CASE), *selected, *sides],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )
    print(f"\n{done.stdout}{done.stderr}")
    assert done.returncode in (0, 1), "it ended with verdicts"
    old, new = (read_run(run) for run in sorted((folder / "results").iterdir()))
    assert f"onnxruntime=={old.info.versions['onnxruntime']['onnxruntime']}" == a
    assert f"onnxruntime=={new.info.versions['onnxruntime']['onnxruntime']}" == b
    return done.returncode, json.loads((new.path / "verdicts.json").read_text())


def test_two_versions_are_judged_and_differ_in_nothing_else(tmp_path: Path, environments: Path) -> None:
    status, content = ab(tmp_path, environments, OLD, NEW)
    assert [line.split()[0] for line in content["differences"]] == ["onnxruntime"]
    verdicts = [entry["verdict"] for entry in content["verdicts"]]
    assert len(verdicts) == 2 * 3
    assert status == (1 if "SLOWER" in verdicts else 0)


def test_one_version_twice_is_never_found_to_differ(tmp_path: Path, environments: Path) -> None:
    status, content = ab(tmp_path, environments, NEW, NEW)
    assert content["differences"] == []
    assert not {entry["verdict"] for entry in content["verdicts"]} & {"SLOWER", "FASTER"}
    assert status == 0
