"""The package names what others may use, and a worker that needs a trial alone imports nothing that reads files."""

from __future__ import annotations

import subprocess
import sys

import pytest
from waiting import PATIENCE_S

import rnnbench.cases


def test_every_name_of_the_package_is_there():
    assert all(getattr(rnnbench.cases, name) is not None for name in rnnbench.cases.__all__)


def test_other_names_are_not():
    with pytest.raises(AttributeError, match=r"module 'rnnbench\.cases' has no attribute 'load_csae'"):
        _ = rnnbench.cases.load_csae


def test_a_trial_is_imported_without_what_reads_files():
    code = "import sys, rnnbench.cases.trial; print([name for name in ('yaml', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == "[]"
