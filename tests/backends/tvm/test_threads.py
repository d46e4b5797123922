"""Kernels of several threads give what a kernel of one thread gives, and run on as many threads as they should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from quick_tests import for_proof
from waiting import PATIENCE_S

pytest.importorskip("tvm")

SCRIPT = """
import os, sys, pathlib
sys.path.insert(0, sys.argv[2])
import numpy as np
from conftest import TvmBackend, requested
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs

threads = int(os.environ["TVM_NUM_THREADS"])
layers, cell, time, chunk = sys.argv[3].split()
options = {"reset_after": False} if cell == "gru" else {"projection": 24}
model = Model(cell=cell, input=5, hidden=81, layers=int(layers), **options)
x = draw_inputs(model, 20, 3, 0)
found = []
for number in (1, threads):
    request = requested("tir", time, "stitched", int(chunk), 3, model, number)
    program = TvmBackend().build(request, pathlib.Path(sys.argv[1]))
    session = program.open()
    found.append(session.step({"x": x})["y"])
    for _ in range(2):
        session.reset()
        np.testing.assert_array_equal(session.step({"x": x})["y"], found[-1])
np.testing.assert_array_equal(*found)
print(len(os.listdir("/proc/self/task")), program.artifact.lowered)
"""


@pytest.mark.proof
@pytest.mark.parametrize(
    ("threads", "written", "lowered"),
    [
        (2, "1 gru looped 10", "looped 1"),
        *for_proof((3, "2 lstm looped 10", "looped 2"), (2, "1 lstm unrolled:2 10", "looped 1 of 2")),
        *for_proof((2, "1 lstm looped 1", "unrolled 1")),
    ],
)
def test_threads_change_no_bit_of_a_result(tmp_path: Path, threads: int, written: str, lowered: str) -> None:
    """Units that the threads do not divide, three rows, and a second product in a step.

    A cell with its gate before the product, two layers, each copy of a step, and the pass of a call of one step.
    """
    variables = {"TVM_NUM_THREADS": str(threads), "TVM_BIND_THREADS": "0", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), str(Path(__file__).parent), written]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=os.environ | variables
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(maxsplit=1) == [str(threads), f"{lowered}\n"]
