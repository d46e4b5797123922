"""A worker that needs a trial alone imports nothing that reads files."""

from __future__ import annotations

import subprocess
import sys

from waiting import PATIENCE_S


def test_a_trial_is_imported_without_what_reads_files():
    code = "import sys, rnnbench.cases.trial; print([name for name in ('yaml', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == "[]"
