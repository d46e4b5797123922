"""The proofs of `make bench`, which `make test` does not run, can at least be collected: their imports are there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from waiting import PATIENCE_S

ROOT = Path(__file__).parents[1]


def test_every_benchmark_can_be_collected() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/benchmarks"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout
