"""A latency path is sampled until its interval is as narrow as the case asks, or its budget is spent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rnnbench.cases import Measure
from rnnbench.measure.blocks import Block, process_medians
from rnnbench.measure.clocks import Clock
from rnnbench.measure.interval import half_width, interval_of
from rnnbench.measure.paths import PATHS
from rnnbench.measure.warmup import WarmUp
from rnnbench.sampling.path_sampling import LEAST_ROUNDS, ROUNDS, PathBlocks, PathSampling

CALL_S = 1e-3


def block(seconds, per_call=CALL_S, scatter=0.0, seed=0):
    """A block of about `seconds` whose calls take `per_call`, give or take."""
    calls = max(3, round(seconds / per_call))
    times = per_call * np.exp(np.random.default_rng(seed).normal(0, scatter, calls))
    return Block(float(seed), 1, times, elapsed=seconds)


def sampling_of(measure, path="bound"):
    return PathSampling(measure, PATHS[path])


def sample_to_the_end(sampling, process_scatter=0.0, block_scatter=0.0, seed=0):
    """Sample to the end, with noise between processes and between blocks as given."""
    generator = np.random.default_rng(seed)
    number = 0
    while sampling.stopped_by is None:
        warmup = sampling.begin()
        base = CALL_S * np.exp(generator.normal(0, process_scatter))
        while not warmup.is_over:
            warmup.windows.append(block(warmup.window_s, base))
        while not sampling.process_is_done:
            number += 1
            level = base * np.exp(generator.normal(0, block_scatter))
            sampling.add(block(sampling.block_s, level, 1e-4, seed=number))
        sampling.end_process()
    return sampling


def test_a_calm_latency_stops_at_its_precision_and_saves_half_its_time():
    sampling = sample_to_the_end(sampling_of(Measure(budget=2.0, processes=3, precision=0.01)), process_scatter=0.001)
    assert sampling.stopped_by == "precision"
    assert [len(blocks) for blocks in sampling.processes] == [LEAST_ROUNDS] * 3
    medians = process_medians(sampling.processes)
    assert half_width(interval_of(medians)) <= 0.01


def test_processes_that_differ_are_answered_with_more_processes_and_at_most_twice_as_many():
    sampling = sample_to_the_end(sampling_of(Measure(budget=2.0, processes=3, precision=0.01)), process_scatter=0.1)
    assert sampling.stopped_by == "budget"
    assert 4 <= len(sampling.processes) <= 6


def test_a_further_process_can_bring_the_precision():
    measure = Measure(budget=2.0, processes=3, precision=0.01)
    samplings = [sample_to_the_end(sampling_of(measure), process_scatter=0.008, seed=seed) for seed in range(20)]
    later = [sampling for sampling in samplings if sampling.stopped_by == "precision" and len(sampling.processes) > 3]
    assert later
    for medians in (process_medians(sampling.processes) for sampling in later):
        assert half_width(interval_of(medians)) <= 0.01 < half_width(interval_of(medians[:-1])), "not before"


def test_noise_within_a_process_is_answered_with_all_its_rounds():
    sampling = sample_to_the_end(sampling_of(Measure(budget=2.0, processes=3, precision=0.01)), block_scatter=0.2)
    assert sampling.stopped_by == "budget"
    spent = sum(block.elapsed for blocks in sampling.processes for block in blocks)
    spent += sum(warmup.seconds for warmup in sampling.warmups)
    assert spent == pytest.approx(1.0, rel=0.15)  # half of the budget: the other half is the public latency's


def test_one_process_alone_has_no_precision_and_spends_its_budget():
    sampling = sample_to_the_end(sampling_of(Measure(budget=0.4, processes=1), "public"))
    assert (sampling.stopped_by, len(sampling.processes)) == ("budget", 1)
    assert len(sampling.processes[0]) > ROUNDS / 2


def test_the_paths_that_a_case_asks_for_share_the_budget():
    two, four = Measure(budget=2.4), Measure(budget=2.4, settings={"cold": 1.0, "period": 0.01})
    assert sampling_of(two).process_s == pytest.approx(0.4)
    assert sampling_of(four, "cold").process_s == pytest.approx(0.2)


def test_warm_up_is_part_of_a_process_s_time():
    sampling = sampling_of(Measure(budget=2.0, processes=1))
    warmup = sampling.begin()
    assert warmup.window_s == pytest.approx(sampling.process_s / 20)
    warmup.windows.append(block(0.9 * sampling.process_s))
    sampling.add(block(0.1 * sampling.process_s))
    assert sampling.process_is_done


@pytest.mark.parametrize("path", ["cold", "paced"])
def test_a_path_without_warm_ups_begins_with_its_blocks(path):
    sampling = sampling_of(Measure(settings={"cold": 1.0, "period": 0.001}), path)
    assert sampling.begin() is None
    sampling.add(block(0.01))
    assert sampling.samples().warmup is None


def test_a_paced_path_has_blocks_of_its_period_and_more():
    sampling = sampling_of(Measure(budget=0.1, settings={"period": 0.2}), "paced")
    assert (sampling.setting, sampling.block_s) == (0.2, pytest.approx(0.3))
    sampling.begin()
    plan = sampling.plan(sampling.block_s)
    assert (plan.setting, plan.calls_per_sample, plan.seconds) == (0.2, 1, sampling.block_s)


def test_samples_have_the_blocks_and_the_warm_ups_of_all_processes():
    blocks = PathBlocks(PATHS["bound"])
    for number in range(2):
        warmup = WarmUp(1.0, 0.01)
        blocks.begin_process(warmup)
        warmup.windows += [block(0.1, seed=1), block(0.1, seed=2)]
        blocks.add(block(0.01, seed=number))
    samples = blocks.samples()
    assert [len(of_process) for of_process in samples.processes] == [1, 1]
    assert (samples.warmup.calls, samples.warmup.stationary) == (4 * 101, 2)
    assert samples.warmup.seconds == pytest.approx(0.4)
    assert samples.stopped_by is None


def test_calls_near_the_clock_s_cost_are_timed_several_at_once(monkeypatch):
    monkeypatch.setattr("rnnbench.measure.warmup.measure_clock", lambda: Clock(resolution=1e-9, cost=5e-8))
    sampling = sampling_of(Measure())
    sampling.begin().windows.append(block(0.01, per_call=5e-8))
    assert sampling.calls_per_sample == 50
    sampling.begin().windows.append(block(0.01, per_call=1e-3))
    assert sampling.calls_per_sample == 50, "as the first process measured it"
    slow = sampling_of(Measure())
    slow.begin().windows.append(block(0.01, per_call=1e-3))
    assert slow.calls_per_sample == 1


def test_what_warm_ups_took_is_spent():
    """Less than half of a process's time is left then: no further one begins."""
    sampling = sampling_of(Measure(budget=2.0, processes=2, precision=0.001))
    for level in (1.0, 1.2):
        warmup = sampling.begin()
        warmup.windows.append(block(0.25 * sampling.process_s))
        sampling.add(block(0.6 * sampling.process_s, level * CALL_S))
        sampling.end_process()
    assert sampling.stopped_by == "budget"


@pytest.mark.parametrize(("spent", "stopped_by"), [(0.70, None), (0.80, "budget")])
def test_a_further_process_begins_where_half_of_its_time_is_left(spent, stopped_by):
    sampling = sampling_of(Measure(budget=2.0, processes=2, precision=0.001))
    for level in (1.0, 1.2):
        sampling.begin()
        sampling.add(block(spent * sampling.process_s, level * CALL_S))
        sampling.end_process()
    assert sampling.stopped_by == stopped_by


def test_the_blocks_of_one_process_must_be_twice_as_precise_as_the_latency():
    sampling = sampling_of(Measure(budget=80.0, processes=3, precision=0.02))
    sampling.begin()
    for number in range(LEAST_ROUNDS):
        sampling.add(block(0.01, CALL_S * (1.009 if number % 2 else 1 / 1.009)))
        assert not sampling.process_is_done
    sampling = sampling_of(Measure(budget=80.0, processes=3, precision=0.04))
    sampling.begin()
    for number in range(LEAST_ROUNDS):
        sampling.add(block(0.01, CALL_S * (1.009 if number % 2 else 1 / 1.009)))
    assert sampling.process_is_done


def test_a_process_has_no_more_than_its_rounds():
    sampling = sampling_of(Measure(budget=1e6, processes=3, precision=1e-6))
    sampling.begin()
    for number in range(ROUNDS):
        assert not sampling.process_is_done
        sampling.add(block(0.01, CALL_S * (1 + 0.1 * number)))
    assert sampling.process_is_done


def test_a_warm_up_that_ran_out_of_time_was_not_stationary():
    blocks = PathBlocks(PATHS["bound"])
    warmup = WarmUp(0.1, 0.01)
    blocks.begin_process(warmup)
    warmup.windows.append(block(0.2))
    blocks.add(block(0.01))
    assert warmup.is_over
    assert blocks.samples().warmup.stationary == 0


def test_a_worker_whose_blocks_take_no_time_has_no_more_of_them_than_any_other():
    """A worker may say so. Its samples are as long as those of a calm latency, and scatter as much as they like."""
    sampling = sampling_of(Measure(budget=2.0, processes=3, precision=0.01))
    generator = np.random.default_rng(0)
    while sampling.stopped_by is None:
        warmup = sampling.begin()
        while not warmup.is_over:
            warmup.windows.append(replace(block(0.01, CALL_S * generator.uniform(1, 8)), elapsed=0.0))
        while not sampling.process_is_done:
            sampling.add(replace(block(0.01, CALL_S * generator.uniform(1, 8)), elapsed=0.0))
        sampling.end_process()
        assert len(sampling.processes) <= 6
    assert sampling.stopped_by == "budget"
