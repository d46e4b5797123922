"""A program that fails in one of several threads fails the check, which does not wait for that thread for ever."""

from __future__ import annotations

import threading
from typing import ClassVar

import pytest
from harness_trials import make_trial
from honest_adapter import HonestSession
from verdicts import verdicts
from waiting import PATIENCE_S

from rnnbench.conformance import CHECKS, suite

BEFORE = 5
"""Threads that use sessions before the four do: that of the check, two at once, and two alone."""


class FailsInOneOfFourThreads(HonestSession):
    """Those before have made all of their calls. The other three have nobody to meet at their next one."""

    threads: ClassVar[list[threading.Thread]] = []

    def compute(self, x):
        thread = threading.current_thread()
        if thread not in self.threads:
            self.threads.append(thread)
        if self.threads.index(thread) == BEFORE:
            raise RuntimeError("no context in this thread")
        return super().compute(x)


@pytest.fixture
def only_threads(monkeypatch):
    monkeypatch.setattr(suite, "CHECKS", [check for check in CHECKS if check.name in ("values", "threads")])


def test_a_program_that_fails_in_one_of_several_threads_fails_the_check(only_threads, references):
    found = []
    check = threading.Thread(
        target=lambda: found.append(verdicts(make_trial(), FailsInOneOfFourThreads, references)), daemon=True
    )
    check.start()
    check.join(PATIENCE_S)
    assert not check.is_alive(), "the other threads still wait"
    assert found[0]["threads"].detail.startswith("raised RuntimeError: no context in this thread")
