"""Blocks time single calls, each completed before the next, and count every call they make."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import pytest

from rnnbench.measure import DeviceConditions, Disturbance
from rnnbench.measure import blocks as module
from rnnbench.measure.blocks import (
    SETTLED_WINDOWS,
    WARM_LIMIT_S,
    WARM_SHARE,
    Block,
    overall_median,
    process_medians,
    sample_block,
    sample_cold,
    sample_paced,
)
from rnnbench.measure.device_conditions import DeviceSpell
from rnnbench.measure.disturbance import DISTURBED_SHARE


class Time:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now = 0

    def perf_counter_ns(self):
        return self.now

    def time(self):
        return self.now * 1e-9

    def sleep(self, seconds):
        self.now += round(seconds * 1e9)


@pytest.fixture
def clock(monkeypatch):
    clock = Time()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_every_call_is_synced_and_counted():
    events = []
    block = sample_block(lambda: events.append("call"), lambda: events.append("sync"), 0.001)
    assert events == ["call", "sync"] * block.calls
    assert block.calls == block.warm_calls + len(block.seconds)
    assert block.warm_calls >= 1


def test_the_time_of_call_and_sync_is_recorded(clock):
    block = sample_block(lambda: clock.sleep(0.002), lambda: clock.sleep(0.001), 0.02)
    assert (block.warm_calls, len(block.seconds)) == (1 + SETTLED_WINDOWS, 4)
    assert block.seconds == pytest.approx(0.003)
    assert block.elapsed == pytest.approx(7 * 0.003)


def test_calls_that_still_get_faster_after_other_programs_ran_are_not_counted(clock):
    # An unrolled program of 7 MB, as it was measured when it came first in a turn: 12 ms until it has settled.
    cold = [2965, 2540, 2303, 1882, 1651, 1574]
    calls = iter([*cold, *[1100] * 1000])
    block = sample_block(lambda: clock.sleep(next(calls) * 1e-6), lambda: None, 0.006)
    assert block.seconds == pytest.approx(1100e-6)
    assert block.warm_calls == len(cold) + 1 + SETTLED_WINDOWS
    assert len(block.seconds) >= block.warm_calls, "a block that was long to warm is worth it"


def test_a_short_call_settles_by_windows_and_not_by_single_calls(clock):
    calls = iter([30, *[10] * 10_000])
    block = sample_block(lambda: clock.sleep(next(calls) * 1e-6), lambda: None, 0.006)
    assert block.elapsed == pytest.approx(0.006, rel=0.01)
    assert block.warm_calls * 10e-6 == pytest.approx(WARM_SHARE * 0.006, rel=0.1)


def test_warming_ends_where_calls_never_settle(clock):
    calls = iter(0.01 * 0.9**n for n in range(1000))
    block = sample_block(lambda: clock.sleep(next(calls)), lambda: None, 0.001)
    assert sum(0.01 * 0.9**n for n in range(block.warm_calls)) < WARM_LIMIT_S + 0.01


def test_a_call_longer_than_the_block_is_still_timed_once(clock):
    block = sample_block(lambda: clock.sleep(2 * WARM_LIMIT_S), lambda: None, 0.001)
    assert block.seconds == pytest.approx([2 * WARM_LIMIT_S])
    assert block.warm_calls == 1


def test_the_collector_is_off_during_a_block_and_on_again_after_one_that_raises():
    seen = []
    with pytest.raises(ZeroDivisionError):
        sample_block(lambda: seen.append(gc.isenabled()) or 1 / 0, lambda: None, 0.01)
    assert seen == [False]
    assert gc.isenabled()


def test_calls_timed_at_once_are_all_made_and_share_their_time(clock):
    events = []
    block = sample_block(lambda: events.append("call"), lambda: clock.sleep(0.001), 0.02, calls_per_sample=4)
    assert len(events) == block.calls == block.warm_calls + 4 * len(block.seconds)
    assert block.seconds == pytest.approx(0.001)
    assert block.elapsed == pytest.approx(block.calls * 0.001)


def test_a_window_counts_from_its_first_call(clock):
    block = sample_block(lambda: clock.sleep(0.002), lambda: None, 0.005, rewarm=False)
    assert block.warm_calls == 0
    assert block.calls == len(block.seconds)


def test_before_every_cold_call_the_caches_are_evicted():
    events = []
    block = sample_cold(
        lambda: events.append("call"), lambda: events.append("sync"), lambda: events.append("evict"), 0.001
    )
    assert events == ["evict", "call", "sync"] * block.calls
    assert block.warm_calls == 0


def test_the_time_of_evicting_is_no_part_of_a_cold_call(clock):
    block = sample_cold(lambda: clock.sleep(0.001), lambda: None, lambda: clock.sleep(0.01), 0.03)
    assert block.seconds == pytest.approx([0.001] * 3)
    assert block.elapsed == pytest.approx(0.033)


def test_paced_calls_begin_a_period_apart(clock):
    begun = []

    def call():
        begun.append(clock.now)
        clock.sleep(0.001)

    block = sample_paced(call, lambda: None, 0.005, 0.05)
    assert len(begun) == block.calls == 11
    assert np.diff(begun[1:]) == pytest.approx(5e6)
    assert (block.missed, block.seconds) == (0, pytest.approx(0.001))


def test_a_call_longer_than_its_period_misses_every_deadline_and_the_next_begins_at_once(clock):
    block = sample_paced(lambda: clock.sleep(0.004), lambda: None, 0.002, 0.03)
    assert block.missed == len(block.seconds)
    assert block.elapsed == pytest.approx(block.calls * 0.004 + 0.002)


def test_one_late_call_leaves_the_next_one_s_deadline_where_it_was(clock):
    takes = iter([0.001, 0.001, 0.007, 0.001, 0.001, 0.001, 0.001])
    begun = []

    def call():
        begun.append(clock.now)
        clock.sleep(next(takes))

    block = sample_paced(call, lambda: None, 0.005, 0.03)
    assert block.missed == 1
    assert np.diff(begun) / 1e6 == pytest.approx([6, 5, 7, 3, 5, 5])


def test_a_block_records_what_disturbed_it():
    block = sample_block(lambda: None, lambda: None, 0.001)
    assert block.disturbance.switches >= 0
    assert block.elapsed >= 0.001


def test_a_process_has_the_median_of_all_of_its_calls():
    first = [Block(0.0, 1, np.array([1.0, 2.0])), Block(1.0, 1, np.array([3.0]))]
    second = [Block(2.0, 1, np.array([5.0, 5.0]))]
    assert process_medians([first, second]) == [2.0, 5.0]
    assert overall_median([first, second]) == 3.0


def test_waiting_for_the_device_is_part_of_a_cold_and_of_a_paced_call(clock):
    cold = sample_cold(lambda: clock.sleep(0.001), lambda: clock.sleep(0.002), lambda: None, 0.02)
    paced = sample_paced(lambda: clock.sleep(0.001), lambda: clock.sleep(0.002), 0.005, 0.03)
    assert cold.seconds == pytest.approx(0.003)
    assert (paced.seconds, paced.missed) == (pytest.approx(0.003), 0)


def test_a_long_block_is_warmed_no_longer_than_a_short_one(clock):
    block = sample_block(lambda: clock.sleep(0.002), lambda: None, 0.4)
    assert block.warm_calls == 3, "5 ms of calls that get no faster"
    assert len(block.seconds) == 197


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        sample_block(lambda: None, lambda: None, 0.001)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_call_that_gets_a_little_faster_has_settled(clock):
    calls = iter(0.002 * 0.99**n for n in range(1000))
    assert sample_block(lambda: clock.sleep(next(calls)), lambda: None, 0.006).warm_calls == 3


def test_a_block_is_disturbed_by_what_was_taken_of_all_of_it_or_by_its_device():
    block = Block(0.0, 0, np.array([0.1]), elapsed=1.0, disturbance=Disturbance(0, 0.5 * DISTURBED_SHARE, None))
    moved = DeviceSpell(DeviceConditions(clock=2e9), DeviceConditions(clock=1e9))
    assert not block.disturbed
    assert replace(block, elapsed=0.1).disturbed
    assert replace(block, device=moved).disturbed
    assert not replace(block, disturbance=None).disturbed


def test_paced_calls_end_with_their_time(clock):
    block = sample_paced(lambda: clock.sleep(0.001), lambda: None, 0.005, 0.022)
    assert (len(block.seconds), block.elapsed) == (4, pytest.approx(0.022))


def test_a_block_begins_at_its_first_counted_call_by_the_wall_clock(clock):
    clock.sleep(100.0)
    warm = sample_block(lambda: clock.sleep(0.002), lambda: None, 0.005)
    assert warm.start == pytest.approx(100.0 + 0.002 * warm.warm_calls)
    began = clock.time()
    assert sample_cold(lambda: clock.sleep(0.002), lambda: None, lambda: None, 0.005).start == pytest.approx(began)
    began = clock.time()
    paced = sample_paced(lambda: clock.sleep(0.002), lambda: None, 0.005, 0.02)
    assert paced.start == pytest.approx(began + 0.002), "once its first call is made"


def test_a_clock_that_a_call_replaces_does_not_time_it(clock):
    def call():
        clock.sleep(0.001)
        clock.perf_counter_ns = lambda: 0

    block = sample_block(call, lambda: None, 0.01)
    assert block.seconds == pytest.approx(0.001)
