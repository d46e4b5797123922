"""The CPU time of a process and its descendants, seen from outside of it."""

from __future__ import annotations

import os
import subprocess
import sys

from waiting import PATIENCE_S, wait_until

from rnnbench.measure import family_cpu_seconds

BURN = "import time; end = time.process_time() + 0.05\nwhile time.process_time() < end: pass\n"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN + 'input()'!r}], start_new_session=True)"


def test_work_of_a_grandchild_in_a_session_of_its_own_is_counted():
    parent = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE)
    before = family_cpu_seconds(os.getpid())
    wait_until(lambda: family_cpu_seconds(parent.pid) >= 0.05, "the grandchild's work was not seen")
    assert family_cpu_seconds(os.getpid()) >= before
    parent.communicate(b"\n", timeout=PATIENCE_S)
    assert family_cpu_seconds(parent.pid) == 0.0


def test_a_child_that_has_ended_still_counts():
    before = family_cpu_seconds(os.getpid())
    subprocess.run([sys.executable, "-c", BURN], check=True, timeout=PATIENCE_S)
    assert family_cpu_seconds(os.getpid()) >= before + 0.04
