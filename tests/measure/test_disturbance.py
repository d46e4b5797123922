"""The kernel's accounts of the core are read, and a block that was without it for long enough is marked."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from waiting import PATIENCE_S

from rnnbench.measure.disturbance import DISTURBED_SHARE, Disturbance, disturbance_since, disturbance_so_far


@pytest.mark.parametrize(
    ("disturbance", "disturbs"),
    [
        (Disturbance(0, 0.0, 0.0), False),
        (Disturbance(3, DISTURBED_SHARE / 2, None), False),
        (Disturbance(0, 2 * DISTURBED_SHARE, None), True),
        (Disturbance(0, 0.0, 0.01), True),
        (Disturbance(1, None, None), True),
        (Disturbance(0, None, None), False),
    ],
)
def test_a_second_is_disturbed_by_what_was_taken_of_it(disturbance, disturbs):
    assert disturbance.disturbs(1.0) is disturbs


def test_a_process_on_the_same_core_is_noticed():
    mine = os.sched_getaffinity(0)
    core = max(mine)
    os.sched_setaffinity(0, {core})
    spin = f"import os\nos.sched_setaffinity(0, {{{core}}})\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout.readline() == b"\n"
            before, begun = disturbance_so_far(), time.perf_counter()
            while disturbance_since(before).switches < 2:
                waited = time.perf_counter() - begun
                assert waited < PATIENCE_S, "two spinning processes shared one core without a switch"
            found, seconds = disturbance_since(before), time.perf_counter() - begun
        finally:
            other.kill()
            os.sched_setaffinity(0, mine)
    assert found.disturbs(seconds)
    assert found.waited is None or found.waited > 0
