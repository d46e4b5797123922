"""A latency is sampled until its interval is as narrow as was asked, or its budget is spent, and it says which."""

from __future__ import annotations

import numpy as np
import pytest

from rnnbench.cases.trial import Measure
from rnnbench.measure.course import LEAST_ROUNDS, ROUNDS, Course
from rnnbench.measure.interval import half_width, interval_of
from rnnbench.measure.latency import summarise
from rnnbench.measure.sampling import Block, Clock

CALL_S = 1e-3


def block(seconds, per_call=CALL_S, scatter=0.0, seed=0):
    """A block of about `seconds` whose calls take `per_call`, give or take."""
    calls = max(3, round(seconds / per_call))
    times = per_call * np.exp(np.random.default_rng(seed).normal(0, scatter, calls))
    return Block(float(seed), 1, times, elapsed=seconds)


def go(course, process_scatter=0.0, block_scatter=0.0, seed=0):
    """Sample to the end, with noise between processes and between blocks as given."""
    generator = np.random.default_rng(seed)
    number = 0
    while course.stopped_by is None:
        warmup = course.begin_process()
        base = CALL_S * np.exp(generator.normal(0, process_scatter))
        while not warmup.is_over:
            warmup.windows.append(block(warmup.window_s, base))
        while not course.process_is_done:
            number += 1
            level = base * np.exp(generator.normal(0, block_scatter))
            course.add(block(course.block_s, level, 1e-4, seed=number))
        course.end_process()
    return course


def test_a_calm_latency_stops_at_its_precision_and_saves_half_its_time():
    course = go(Course(Measure(budget=2.0, processes=3, precision=0.01), "bound"), process_scatter=0.001)
    assert course.stopped_by == "precision"
    assert [len(blocks) for blocks in course.processes] == [LEAST_ROUNDS] * 3
    medians = summarise(course.processes, 1).process_medians
    assert half_width(interval_of(medians)) <= 0.01


def test_processes_that_differ_are_answered_with_more_processes_and_at_most_twice_as_many():
    course = go(Course(Measure(budget=2.0, processes=3, precision=0.01), "bound"), process_scatter=0.1)
    assert course.stopped_by == "budget"
    assert 4 <= len(course.processes) <= 6


def test_a_further_process_can_bring_the_precision():
    measure = Measure(budget=2.0, processes=3, precision=0.01)
    courses = [go(Course(measure, "bound"), process_scatter=0.008, seed=seed) for seed in range(20)]
    later = [course for course in courses if course.stopped_by == "precision" and len(course.processes) > 3]
    assert later


def test_noise_within_a_process_is_answered_with_all_its_rounds():
    course = go(Course(Measure(budget=2.0, processes=3, precision=0.01), "bound"), block_scatter=0.2)
    assert course.stopped_by == "budget"
    spent = sum(block.elapsed for blocks in course.processes for block in blocks)
    spent += sum(warmup.seconds for warmup in course.warmups)
    assert spent == pytest.approx(1.0, rel=0.15)  # half of the budget: the other half is the public latency's


def test_one_process_alone_has_no_precision_and_spends_its_budget():
    course = go(Course(Measure(budget=0.4, processes=1), "public"))
    assert (course.stopped_by, len(course.processes)) == ("budget", 1)
    assert len(course.processes[0]) > ROUNDS / 2


def test_the_latencies_that_are_asked_for_share_the_budget():
    two, four = Measure(budget=2.4), Measure(budget=2.4, settings={"cold": 1.0, "period": 0.01})
    assert Course(two, "bound").share == pytest.approx(0.4)
    assert Course(four, "cold").share == pytest.approx(0.2)


def test_warm_up_is_part_of_a_process_s_time():
    course = Course(Measure(budget=2.0, processes=1), "bound")
    warmup = course.begin_process()
    assert warmup.window_s == pytest.approx(course.share / 20)
    warmup.windows.append(block(0.9 * course.share))
    course.add(block(0.1 * course.share))
    assert course.process_is_done


@pytest.mark.parametrize("path", ["cold", "paced"])
def test_a_cold_call_has_no_warm_up_and_a_paced_one_had_another_s(path):
    assert Course(Measure(settings={"cold": 1.0, "period": 0.001}), path).begin_process() is None


def test_calls_near_the_clock_s_cost_are_timed_several_at_once(monkeypatch):
    monkeypatch.setattr("rnnbench.measure.warmup.measure_clock", lambda: Clock(resolution=1e-9, cost=5e-8))
    course = Course(Measure(), "bound")
    course.begin_process().windows.append(block(0.01, per_call=5e-8))
    assert course.calls_per_sample == 50
    course.begin_process().windows.append(block(0.01, per_call=1e-3))
    assert course.calls_per_sample == 50, "as the first process said"
    slow = Course(Measure(), "bound")
    slow.begin_process().windows.append(block(0.01, per_call=1e-3))
    assert slow.calls_per_sample == 1
