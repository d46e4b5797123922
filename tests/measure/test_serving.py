"""Work that is due at given times: its latency begins when it is due, and the queue is part of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rnnbench.measure import serving as module
from rnnbench.measure.impossible import impossible_served
from rnnbench.measure.serving import (
    REQUESTS,
    SETTLE_S,
    WARM_CALLS,
    arrival_times,
    frame_times,
    longest_serving,
    serve,
)


class Time:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now

    time = perf_counter

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Time()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_a_frame_is_late_by_what_the_frames_before_it_took_too_long(clock):
    seconds = iter([0.001] * WARM_CALLS + [0.004, 0.013, 0.004])
    served = serve(lambda: clock.sleep(next(seconds)), frame_times(3, 0.010), deadline=0.010, most_missed=3)
    assert served.latencies == pytest.approx([0.004, 0.013, 0.007])
    assert (served.done, served.missed, served.calls) == (3, 1, 3 + WARM_CALLS)
    assert served.busy == pytest.approx(0.023)
    assert served.elapsed == pytest.approx(WARM_CALLS * 0.001 + SETTLE_S + 0.027)


def test_it_ends_with_the_first_miss_too_many(clock):
    served = serve(lambda: clock.sleep(0.011), frame_times(300, 0.010), deadline=0.010, most_missed=3)
    assert (served.done, served.due, served.missed) == (4, 300, 4)


def test_it_ends_when_its_time_is_spent(clock):
    served = serve(lambda: clock.sleep(1.0), frame_times(300, 0.010), longest=2.5)
    assert served.done == 3


@pytest.mark.parametrize("rate", [0.5, 200.0])
def test_serving_may_take_three_times_as_long_as_its_requests_take_to_come(rate):
    assert longest_serving(rate) == pytest.approx(3 * arrival_times(REQUESTS, rate, 0)[-1], rel=0.2)


def test_the_same_seed_gives_the_same_arrivals():
    arrivals = arrival_times(10_000, 200.0, 7)
    assert np.array_equal(arrivals, arrival_times(10_000, 200.0, 7))
    assert not np.array_equal(arrivals, arrival_times(10_000, 200.0, 8))
    gaps = np.diff(arrivals)
    assert gaps.mean() == pytest.approx(1 / 200, rel=0.05)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)  # as of exponential gaps


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"latencies": np.array([])}, "no counts"),
        ({"missed": 3}, "no counts"),
        ({"latencies": np.array([0.1, np.nan])}, "not a number of seconds above 0"),
        ({"busy": 5.0}, "take 5 s"),
    ],
)
def test_times_that_cannot_be_are_told(changes, told):
    fields = {
        "start": 1.0,
        "latencies": np.array([0.1, 0.2]),
        "due": 2,
        "missed": 0,
        "busy": 0.2,
        "elapsed": 0.5,
    }
    assert impossible_served(module.Served(**fields)) == ""
    assert told in impossible_served(module.Served(**{**fields, **changes}))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"due": 1}, "2 of 1 pieces of work"),
        ({"missed": -1}, "no counts"),
        ({"latencies": np.array([0.1, np.inf])}, "not a number of seconds above 0"),
        ({"latencies": np.array([0.1, 0.0])}, "not a number of seconds above 0"),
        ({"latencies": np.array([0.1, 0.9])}, "take 0.9 s"),
        ({"busy": float("nan")}, "busy is nan s"),
        ({"elapsed": -1.0}, "elapsed is -1 s"),
        ({"start": float("inf")}, "start is inf s"),
    ],
)
def test_each_figure_of_served_work_is_looked_at(changes, told):
    served = module.Served(1.0, np.array([0.1, 0.2]), 2, 0, 0.2, 0.5)
    assert told in impossible_served(replace(served, **changes))


def test_a_late_call_counts_from_when_it_was_due_and_the_limit_from_the_first_due_time(clock):
    seconds = iter([1.0] * WARM_CALLS + [0.02, 0.005, 0.005])
    served = serve(
        lambda: clock.sleep(next(seconds)), frame_times(3, 0.010), deadline=0.012, most_missed=9, longest=0.5
    )
    assert (served.done, served.missed) == (3, 2)
