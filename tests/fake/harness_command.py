"""The command `rnnbench`, started as a user starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_command(folder: Path, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run it in a folder, in 160 columns: it ends with that status, and with no traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "rnnbench", *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "160"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr or done.stdout
    assert "Traceback" not in done.stderr
    return done
