"""A job in which the Vulkan device was lost ends with the status by which the Makefile runs it once more."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from quick_tests import for_proof
from waiting import PATIENCE_S

TESTS = Path(__file__).parent
LOST = """
import atexit, os, signal


def test_a_call():
    atexit.register(lambda: os.kill(os.getpid(), signal.SIGSEGV))
    raise RuntimeError("VK_ERROR_DEVICE_LOST")


def test_another():
    pass
"""


@pytest.mark.parametrize("first", ["", *for_proof("def test_before():\n    assert False\n")])
def test_the_driver_may_die_at_the_end(tmp_path: Path, first: str) -> None:
    shutil.copy(TESTS / "backends" / "conftest.py", tmp_path)
    (tmp_path / "test_device.py").write_text(first + LOST)
    path = os.pathsep.join(map(str, (TESTS / "fake", TESTS)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
    assert "the Vulkan device was lost in test_device.py::test_a_call" in done.stdout
    assert (done.returncode == 75) == (not first), done.stdout + done.stderr
