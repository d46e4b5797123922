"""Every test of the backends passes, also those that `make test` leaves out (an hour; no figures).

`tests/fake/quick_tests.py` says which these are. Each job of the Makefile has a process of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from quick_tests import VARIABLE
from waiting import LONG_S

ROOT = Path(__file__).parents[2]
JOBS = re.findall(r"^BACKENDS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split()


@pytest.mark.parametrize("job", JOBS)
def test_all_of_a_job_passes(job: str) -> None:
    command = ["make", "--no-print-directory", f"backend-{job}"]
    subprocess.run(command, cwd=ROOT, env={**os.environ, VARIABLE: "1"}, check=True, timeout=LONG_S)
