"""Which threads are seen to work."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from rnnbench.measure.threads import ThreadTimes, cpu_seconds

WORK_S = 0.05
"""CPU seconds: enough to show where the kernel counts in ticks of 10 ms."""


def work() -> None:
    until = time.thread_time() + WORK_S
    while time.thread_time() < until:
        pass


@pytest.fixture
def idle() -> Iterator[None]:
    """Three more threads, which wait."""
    done = threading.Event()
    threads = [threading.Thread(target=done.wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    yield
    done.set()
    for thread in threads:
        thread.join()


def test_threads_that_wait_are_not_busy(idle) -> None:
    times = ThreadTimes()
    with times.watched():
        work()
    assert len(cpu_seconds()) >= 4
    assert times.busy == 1


def test_every_thread_that_works_is_busy(idle) -> None:
    times, go, end = ThreadTimes(), threading.Event(), threading.Event()
    worked = threading.Barrier(2)

    def other() -> None:
        go.wait()
        work()
        worked.wait()
        end.wait()

    thread = threading.Thread(target=other)
    thread.start()
    with times.watched():
        go.set()
        work()
        worked.wait()
    end.set()
    thread.join()
    assert times.busy == 2


def test_what_was_not_watched_does_not_count() -> None:
    times = ThreadTimes()
    work()
    assert times.busy == 0
