"""The resident memory of a process and its descendants, whose list is not made anew at each reading."""

from __future__ import annotations

import os
import subprocess

import pytest
from waiting import PATIENCE_S

from rnnbench.worker import memory
from rnnbench.worker.memory import POLL_S, ResidentMemory


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that pass, as the test says."""
    now = [1000.0]
    monkeypatch.setattr(memory.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(memory, "_resident", lambda process: 1)
    return now


def test_descendants_are_looked_for_after_some_time_or_where_a_caller_asks(clock):
    held = ResidentMemory(os.getpid())
    before = held.read()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as first:
        assert held.read() == before, "the list is new enough"
        clock[0] += POLL_S
        assert held.read() == before + 1
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as second:
            assert held.read() == before + 1
            assert held.read(look=True) == before + 2
            second.communicate(timeout=PATIENCE_S)
        first.communicate(timeout=PATIENCE_S)


def test_a_process_that_has_ended_has_none():
    with subprocess.Popen(["true"]) as process:
        process.wait(PATIENCE_S)
    assert (ResidentMemory(process.pid).read(), ResidentMemory(process.pid).read_shared_once()) == (0, 0)
