"""Which threads are seen to work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import join

from rnnbench.measure import ThreadTimes, threads
from rnnbench.measure.threads import cpu_seconds, scheduler_seconds

Watched = Callable[..., ThreadTimes]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """watched(before, after, …): what is said of stretches at whose ends the kernel gave these accounts."""

    def watch(*accounts: dict[int, float]) -> ThreadTimes:
        given = iter(accounts)
        monkeypatch.setattr(threads, "cpu_seconds", lambda: next(given))
        times = ThreadTimes()
        for _ in range(len(accounts) // 2):
            with times.watched():
                pass
        return times

    return watch


def test_threads_that_wait_are_not_busy(watched: Watched) -> None:
    assert watched({1: 5.0, 2: 1.0, 3: 0.0}, {1: 6.0, 2: 1.0, 3: 0.0}).busy == 1


def test_every_thread_that_works_is_busy_and_one_that_began_meanwhile_too(watched: Watched) -> None:
    assert watched({1: 5.0, 2: 1.0}, {1: 6.0, 2: 1.9, 3: 0.5}).busy == 3


def test_housekeeping_is_no_work(watched: Watched) -> None:
    assert watched({1: 0.0, 2: 0.0}, {1: 1.0, 2: 0.04}).busy == 1


def test_stretches_add_up_and_what_was_not_watched_does_not_count(watched: Watched) -> None:
    assert watched({1: 0.0, 2: 0.0}, {1: 1.0, 2: 0.04}, {1: 1.0, 2: 7.0}, {1: 1.1, 2: 7.1}).busy == 2


def test_where_no_thread_was_seen_to_run_nothing_is_known(watched: Watched) -> None:
    """As where the kernel counts in ticks of 10 ms and the calls were shorter."""
    assert watched({1: 5.0, 2: 1.0}, {1: 5.0, 2: 1.0}).busy is None
    assert ThreadTimes().busy is None


@pytest.fixture
def waiting() -> Iterator[list[int]]:
    """Numbers of three more threads, which wait."""
    done = threading.Event()
    others = [threading.Thread(target=done.wait) for _ in range(3)]
    for other in others:
        other.start()
    yield [other.native_id for other in others if other.native_id is not None]
    done.set()
    join(*others)


def test_the_kernel_counts_what_each_thread_works(waiting: list[int]) -> None:
    before, until = cpu_seconds(), time.thread_time() + 0.1
    while time.thread_time() < until:
        pass
    after, mine = cpu_seconds(), threading.get_native_id()
    assert {mine, *waiting} <= after.keys()
    assert after[mine] - before[mine] > 0.05  # the account may be a tick of 10 ms behind at either end
    assert all(after[other] < 0.05 for other in waiting)


@pytest.mark.parametrize("schedstat", [None, "0 0 0\n"])
def test_without_scheduler_statistics_ticks_are_counted(
    schedstat: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text("7 (a (b) c) R 1 1 1 0 -1 0 0 0 0 0 30 12 0 0 20 0 1 0\n")
    if schedstat is not None:
        (tmp_path / "7" / "schedstat").write_text(schedstat)
    monkeypatch.setattr(threads, "_TASKS", tmp_path)
    monkeypatch.setattr(threads, "_TICK_S", 0.01)
    assert cpu_seconds() == {7: pytest.approx(0.42)}
    assert scheduler_seconds(tmp_path / "7" / "schedstat") is None


def test_a_thread_that_ended_meanwhile_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "7").mkdir()
    monkeypatch.setattr(threads, "_TASKS", tmp_path)
    assert cpu_seconds() == {}
