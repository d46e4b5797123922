"""What a task says of the process that it started, once that has died."""

from __future__ import annotations

import subprocess
import tempfile

import pytest

from rnnbench.fleet.group_task import GroupTask
from rnnbench.fleet.messages import decode


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("kill -9 $$", "was killed by signal 9"),
        (r"printf '1\n2\n\n3\n4\n'; exit 3", "exited with status 3; its log ends: 2 | 3 | 4"),
    ],
)
def test_a_death_has_its_status_and_the_end_of_its_log(script, reason):
    task = GroupTask.__new__(GroupTask)
    with tempfile.TemporaryFile() as task._log:
        task._process = subprocess.Popen(["sh", "-c", script], stdout=task._log)
        assert decode(task._failed()).reason == f"the process that measures {reason}"
