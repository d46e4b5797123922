"""Blocks time single calls, each completed before the next, and count every call they make."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

from rnnbench.cases.trial import Measure
from rnnbench.measure.course import Course
from rnnbench.measure.disturbance import Disturbance
from rnnbench.measure.latency import COLUMNS, SAMPLES_CAP, save_samples, summarise
from rnnbench.measure.sampling import (
    NEAR_CLOCK,
    Block,
    Clock,
    measure_clock,
    sample_block,
    sample_cold,
    sample_paced,
)


def test_every_call_is_synced_and_counted():
    events = []
    block = sample_block(lambda: events.append("call"), lambda: events.append("sync"), 0.001)
    assert events == ["call", "sync"] * block.calls
    assert block.calls == block.warm_calls + len(block.seconds)
    assert block.warm_calls >= 1


def test_what_a_call_takes_is_what_is_recorded():
    block = sample_block(lambda: time.sleep(0.002), lambda: time.sleep(0.001), 0.02)
    assert np.all(block.seconds >= 0.003)


def test_a_call_longer_than_the_block_is_still_timed_once():
    assert len(sample_block(lambda: time.sleep(0.01), lambda: None, 0.001).seconds) >= 1


def test_the_collector_rests_during_a_block_and_goes_on_after_one_that_raises():
    seen = []
    with pytest.raises(ZeroDivisionError):
        sample_block(lambda: seen.append(gc.isenabled()) or 1 / 0, lambda: None, 0.01)
    assert seen == [False]
    assert gc.isenabled()


def test_the_clock_says_what_it_can_tell_apart():
    clock = measure_clock()
    assert 0 < clock.resolution <= clock.cost < 1e-3


def test_a_call_is_timed_alone_unless_it_comes_near_the_clock():
    clock = Clock(resolution=1e-9, cost=1e-7)
    assert clock.calls_per_sample(NEAR_CLOCK * 1e-7) == 1
    assert clock.calls_per_sample(1e-6) == 5
    assert Clock(resolution=1e-6, cost=1e-7).calls_per_sample(1e-6) == NEAR_CLOCK


def test_calls_timed_at_once_are_all_made_and_share_their_time():
    events = []
    block = sample_block(lambda: events.append("call"), lambda: time.sleep(0.001), 0.02, calls_per_sample=4)
    assert len(events) == block.calls == block.warm_calls + 4 * len(block.seconds)
    assert np.all(block.seconds >= 0.001)
    assert block.elapsed >= block.calls * 0.001


def test_a_window_counts_from_its_first_call():
    block = sample_block(lambda: time.sleep(0.002), lambda: None, 0.005, rewarm=False)
    assert block.warm_calls == 0
    assert block.calls == len(block.seconds)


def test_before_every_cold_call_the_caches_are_evicted():
    events = []
    block = sample_cold(
        lambda: events.append("call"), lambda: events.append("sync"), lambda: events.append("evict"), 0.001
    )
    assert events == ["evict", "call", "sync"] * block.calls
    assert block.warm_calls == 0


def test_what_evicting_takes_is_no_part_of_a_cold_call():
    block = sample_cold(lambda: None, lambda: None, lambda: time.sleep(0.01), 0.03)
    assert block.seconds.sum() < block.elapsed / 2


def test_paced_calls_begin_a_period_apart():
    begun = []
    block = sample_paced(lambda: begun.append(time.perf_counter()), lambda: None, 0.005, 0.05)
    assert len(begun) == block.calls
    counted = np.array(begun[1:]) - begun[0]
    assert np.all(counted >= 0.005 * np.arange(1, len(counted) + 1))


def test_a_call_longer_than_its_period_misses_every_deadline_and_the_next_begins_at_once():
    block = sample_paced(lambda: time.sleep(0.004), lambda: None, 0.002, 0.03)
    assert block.missed == len(block.seconds)
    assert block.elapsed < (block.calls + 1) * 0.004 * 3


def test_a_block_knows_what_was_taken_of_its_core():
    block = sample_block(lambda: None, lambda: None, 0.001)
    assert block.disturbance.switches >= 0
    assert block.elapsed >= 0.001


def blocks(*seconds):
    return [Block(100.0, 1, np.array(part)) for part in seconds]


def test_figures_come_from_all_calls_and_medians_from_each_process():
    latency = summarise([blocks([1.0, 2.0], [3.0]), blocks([5.0, 5.0])], chunk=2)
    assert (latency.count, latency.min, latency.median, latency.max) == (5, 1.0, 3.0, 5.0)
    assert latency.per_step == 1.5
    assert latency.process_medians == (2.0, 5.0)


def test_a_batch_has_its_steps_in_a_second_and_one_stream_has_not():
    processes = [blocks([0.5, 0.5])]
    assert summarise(processes, chunk=8, batch=4).steps_per_s == 64
    assert summarise(processes, chunk=8).steps_per_s is None


def test_the_pace_of_a_stream_gives_its_factor_and_its_misses():
    course = Course(Measure(period=0.010), "paced")
    course.begin_process()
    course.add(Block(0.0, 1, np.array([0.005, 0.004, 0.006]), missed=1))
    paced = summarise(course.processes, chunk=1, course=course)
    assert (paced.period, paced.real_time_factor, paced.deadline_misses) == (0.010, pytest.approx(0.5), 1)


def test_blocks_that_were_disturbed_are_counted_and_marked(tmp_path):
    calm, shaken = Disturbance(0, 0.0, 0.0), Disturbance(2, 0.5, 0.0)
    processes = [
        [Block(float(n), 0, np.ones(2), elapsed=2.0, disturbance=found) for n, found in enumerate([calm, shaken])]
    ]
    latency = summarise(processes, chunk=1)
    assert (latency.blocks, latency.disturbed_blocks) == (2, 1)
    save_samples(tmp_path / "a.npy", processes)
    assert np.load(tmp_path / "a.npy")[:, COLUMNS.index("disturbed")].tolist() == [0, 0, 1, 1]


def test_samples_are_kept_in_order_and_thinned_evenly(tmp_path):
    many = np.linspace(1, 2, SAMPLES_CAP * 2)
    save_samples(tmp_path / "samples" / "a.npy", [blocks(many)])
    rows = np.load(tmp_path / "samples" / "a.npy")
    assert rows.shape == (SAMPLES_CAP, len(COLUMNS))
    assert rows[0, 3] == many[0]
    assert rows[-1, 3] == many[-1]
    assert np.all(np.diff(rows[:, 2]) > 0)
