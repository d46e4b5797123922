"""The index of `make bench-night`: what an environment has into which pip installs its packages."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from real_releases import Index
from waiting import PATIENCE_S


def test_an_environment_of_a_fake_release_has_the_suite_and_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pip would, the wheels are unpacked into a site folder. The interpreter is one that has neither by itself."""
    index = Index(tmp_path / "index", monkeypatch)
    index.release("1.99.0")
    for wheel in index.folder.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    program = (
        f"import site; site.addsitedir({str(tmp_path / 'site')!r}); import rnnbench.pipeline.environment_worker; "
        "import onnxruntime; print(onnxruntime.__version__)"
    )
    command = [os.path.realpath(sys.executable), "-I", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.stdout.split() == ["1.99.0"], done.stderr
