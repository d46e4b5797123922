"""What a task says of the process that it started, once that has died."""

from __future__ import annotations

import subprocess
import tempfile

import pytest

from rnnbench.fleet.group_task import GroupTask
from rnnbench.fleet.messages import decode
from rnnbench.worker import ChannelClosedError


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("kill -9 $$", "was killed by signal 9"),
        ("exit 0", "exited with status 0"),
        (r"printf '1\n2\n\n3\n4\n'; exit 3", "exited with status 3; its log ends: 2 | 3 | 4"),
    ],
)
def test_a_death_has_its_status_and_the_end_of_its_log(script, reason):
    task = GroupTask.__new__(GroupTask)
    with tempfile.TemporaryFile() as task._log:
        task._process = subprocess.Popen(["sh", "-c", script], stdout=task._log)
        assert decode(task._failed()).reason == f"the process that measures {reason}"


@pytest.mark.parametrize("sent", [[b"1", b"2"], []])
def test_what_a_process_sent_before_it_died_is_taken_first(sent, monkeypatch):
    """And then, in place of nothing, what it died of: a driver that gets nothing asks again without end."""
    lines = iter(sent)

    class Channel:
        def receive(self, wait_s):
            try:
                return next(lines)
            except StopIteration:
                raise ChannelClosedError from None

    monkeypatch.setattr(GroupTask, "_failed", lambda self: b"died")
    task = GroupTask.__new__(GroupTask)
    task._channel = Channel()
    assert task.messages(1.0) == (sent or [b"died"])
    assert task.messages(1.0) == [b"died"]
