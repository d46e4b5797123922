"""Kernels of several threads give what a kernel of one thread gives, and run on as many threads as they should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S

pytest.importorskip("tvm")

SCRIPT = """
import os, sys, pathlib
sys.path.insert(0, sys.argv[2])
import numpy as np
from conftest import TvmBackend, requested
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs

threads, cell, time, chunk = int(os.environ["TVM_NUM_THREADS"]), *sys.argv[3:5], int(sys.argv[5])
options = {"reset_after": False} if cell == "gru" else {"projection": 24} if cell == "lstm" else {}
model = Model(cell=cell, input=5, hidden=81, layers=2, **options)
x = draw_inputs(model, 40, 3, 0)
found = []
for number in (1, threads):
    request = requested("tir", time, "stitched", chunk, 3, model, number)
    program = TvmBackend().build(request, pathlib.Path(sys.argv[1]))
    session = program.open()
    found.append(session.step({"x": x})["y"])
    for _ in range(3):
        session.reset()
        np.testing.assert_array_equal(session.step({"x": x})["y"], found[-1])
np.testing.assert_array_equal(*found)
print(len(os.listdir("/proc/self/task")), program.artifact.lowered)
"""


def _run(folder: Path, threads: int, cell: str, time: str = "looped", chunk: int = 10) -> tuple[int, str]:
    """Threads of a process that ran the kernels, and what the kernel of several threads was lowered to."""
    variables = {"TVM_NUM_THREADS": str(threads), "TVM_BIND_THREADS": "0", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT, str(folder), str(Path(__file__).parent), cell, time, str(chunk)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=os.environ | variables
    )
    assert done.returncode == 0, done.stderr
    seen, lowered = done.stdout.split(maxsplit=1)
    return int(seen), lowered.strip()


@pytest.mark.parametrize(("cell", "threads"), [("lstm", 3), ("gru", 2)])
def test_threads_change_no_bit_of_a_result(tmp_path: Path, cell: str, threads: int) -> None:
    """Units that the threads do not divide, two layers, three rows, and a second product in a step."""
    seen, _ = _run(tmp_path, threads, cell)
    assert seen == threads


def test_threads_share_each_copy_of_a_step(tmp_path: Path) -> None:
    assert _run(tmp_path, 2, "lstm", "unrolled:5")[1] == "looped 2 of 5"


def test_threads_share_the_one_pass_of_a_call_of_one_step(tmp_path: Path) -> None:
    assert _run(tmp_path, 2, "lstm", chunk=1)[0] == 2
