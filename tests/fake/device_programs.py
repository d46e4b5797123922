"""A program on the device of its request, in a process of its own, held against the reference.

A GPU's driver does not outlive a fork, and tests fork. Where the device is not here, the test says what is missing, and
skips.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from waiting import PATIENCE_S

from rnnbench.backends.base import Allocated, Backend, CountsAllocations, Request
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.weights import draw_inputs

TOLERANCE = 2e-6
CUDNN_TOLERANCE = 1e-5
"""cuDNN's small LSTMs are less exact: off by 3e-6 on an H100 (docs/backends/torch.md)."""
_SCRIPT = """
import pickle, sys
from pathlib import Path
from rnnbench.backends import CountsAllocations, registry

name, request, folder, x = pickle.loads(sys.stdin.buffer.read())
backend = registry.find(name)
backend.load()
program = backend.build(request, Path(folder))
session = program.open()
chunk = request.strategy.chunk
bound = session.bind([{"x": x[:chunk]}, {"x": x[chunk:]}])
y = session.step({"x": x})["y"]
session.reset()
bound(), bound()
bound.sync()
count = backend.allocated(request.device) if isinstance(backend, CountsAllocations) else None
answer = program.cached, program.artifact.lowered, y, bound.output()["y"], count
sys.stdout.buffer.write(pickle.dumps(answer))
"""


class BuiltProgram(NamedTuple):
    """What a program says of itself."""

    cached: bool
    lowered: str
    allocated: Allocated | None
    """By the runtime's count, once it was called."""


def built_as_the_reference(
    backend: Backend, request: Request, folder: Path, tolerance: float = TOLERANCE
) -> BuiltProgram:
    """Build and call it, publicly and bound, over two chunks; its numbers are the reference's."""
    lack = backend.probe().device_lack(request.device)
    if lack is not None:
        pytest.skip(f"{backend.name} has no {request.device} here: {lack.reason}")
    chunk = request.strategy.chunk
    x = draw_inputs(request.model, 2 * chunk, request.batch, seed=1)
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        input=pickle.dumps((backend.name, request, str(folder), x)),
        capture_output=True,
        env={**os.environ, **backend.support(request).environment},
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    cached, lowered, y, last, allocated = pickle.loads(done.stdout)
    expected = run_reference(request.model, request.weights, x).y
    np.testing.assert_allclose(y, expected, atol=tolerance)
    np.testing.assert_allclose(last, expected[chunk:], atol=tolerance)
    if isinstance(backend, CountsAllocations):
        assert allocated is not None
        assert allocated.now > 0
    return BuiltProgram(cached, lowered, allocated)
