"""The proofs of `make bench`, which `make test` does not run, can at least be collected: their imports are there."""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

import pytest
from waiting import join

ROOT = Path(__file__).parents[1]


def _collect(printed: Path) -> None:
    file = os.open(printed, os.O_WRONLY | os.O_CREAT)
    for descriptor in (1, 2):
        os.dup2(file, descriptor)
    os.chdir(ROOT)
    status = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "tests/benchmarks"])
    sys.stdout.flush()
    os._exit(status)


def test_every_benchmark_can_be_collected(tmp_path: Path) -> None:
    """In a fork, which has most of what they import."""
    printed = tmp_path / "printed"
    process = multiprocessing.get_context("fork").Process(target=_collect, args=(printed,), daemon=True)
    process.start()
    join(process)
    assert process.exitcode == 0, printed.read_text()
