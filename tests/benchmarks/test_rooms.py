"""Every test that `make test` leaves out, as a quicker one shows its class, passes (half an hour; no figures).

Such a test is marked `proof`. Each room has a process of its own, and the backends a proof of their own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
MARKED = [path for path in sorted(TESTS.rglob("*.py")) if re.search(r"mark\.proof|for_proof\(", path.read_text())]
ROOMS = [*dict.fromkeys(path.relative_to(TESTS).parts[0] for path in MARKED)]
AT_MOST_S = 3600


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in ("backends", "benchmarks", "fake")])
def test_the_tests_that_a_room_leaves_out_pass(room: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "proof", str(TESTS / room)]
    everything = {**os.environ, "RNNBENCH_TEST_ALL": "1"}
    assert subprocess.run(command, cwd=TESTS.parent, env=everything, timeout=AT_MOST_S).returncode == 0
