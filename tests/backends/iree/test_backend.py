"""What the backend says of itself without importing anything, and what it refuses, with the reason."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_S

from rnnbench.backends.base import BuildError
from rnnbench.backends.iree import IreeBackend, backend


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"time": "fused"}, "no RNN operator"),
        ({"dtype": "float16"}, "float32"),
    ],
)
def test_what_cannot_be_done_has_a_reason(request_of: Any, change: dict[str, Any], reason: str, tmp_path: Path) -> None:
    support = IreeBackend().support(request_of(**change))
    assert support.level == "unsupported"
    assert reason in support.reason
    with pytest.raises(BuildError, match=reason):
        IreeBackend().build(request_of(**change), tmp_path)


@pytest.mark.parametrize("state", ["none", "stitched", "stateful"])
@pytest.mark.parametrize("time", ["looped", "unrolled", "unrolled:2"])
def test_streams_are_native(request_of: Any, time: str, state: str) -> None:
    assert IreeBackend().support(request_of(time=time, state=state)).level == "native"


def test_threads_reach_the_workers_environment(request_of: Any) -> None:
    support = IreeBackend().support(replace(request_of(), threads=2))
    assert support.environment == {"IREE_PY_RUNTIME_FLAGS": "--task_topology_group_count=2"}


@pytest.mark.proof
def test_a_build_without_that_environment_is_refused(
    request_of: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IREE_PY_RUNTIME_FLAGS", raising=False)
    with pytest.raises(BuildError, match="IREE_PY_RUNTIME_FLAGS"):
        IreeBackend().build(replace(request_of(), threads=2), folder)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "PACKAGES", ("iree-base-nothing",))
    probe = IreeBackend().probe()
    assert not probe.available
    assert "iree-base-nothing" in probe.reason
    assert probe.install.startswith("pip install")


def test_probing_and_asking_import_no_framework() -> None:
    code = """
import sys
from rnnbench.backends.base import Request
from rnnbench.backends.iree import IreeBackend
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights
request = Request("linalg", Model(cell="lstm", input=2, hidden=2), Weights(()), Strategy("looped", "none", 2), 1,
                  Precision.of("float32"))
IreeBackend().probe(), IreeBackend().support(request)
print([name for name in sys.modules if name.startswith("iree")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == "[]"
