"""Figures of a latency come from all calls, its interval from the medians of processes; samples are rows."""

from __future__ import annotations

import numpy as np
import pytest

from rnnbench.measure.blocks import Block
from rnnbench.measure.disturbance import Disturbance
from rnnbench.measure.interval import interval_of
from rnnbench.measure.paths import PATHS
from rnnbench.pipeline.latency import CallSize, sample_rows, side_latency, summarise
from rnnbench.results.samples import SAMPLE_COLUMNS, SAMPLES_CAP, samples_file, save_samples
from rnnbench.results.timing import Warmup
from rnnbench.stages import PathSamples


def blocks(*seconds):
    return [Block(100.0, 1, np.array(of_block)) for of_block in seconds]


def summary(processes, chunk=1, batch=1, path=None, **samples):
    return summarise(PathSamples(processes, **samples), CallSize(chunk, batch), path)


def test_figures_come_from_all_calls_and_medians_from_each_process():
    latency = summary([blocks([1.0, 2.0], [3.0]), blocks([5.0, 5.0])], chunk=2)
    assert (latency.count, latency.min, latency.median, latency.max) == (5, 1.0, 3.0, 5.0)
    assert latency.per_step == 1.5
    assert latency.process_medians == (2.0, 5.0)


def test_a_batch_has_its_steps_in_a_second_and_one_stream_has_not():
    processes = [blocks([0.5, 0.5])]
    assert summary(processes, chunk=8, batch=4).figures == {"steps_per_s": 64}
    assert summary(processes, chunk=8).figures == {}
    assert summary(processes, chunk=8, batch=4).per_step == 0.5 / 8, "all streams take a step together"


def test_the_figures_that_a_path_declares_come_from_its_setting():
    processes = [[Block(0.0, 1, np.array([0.005, 0.004, 0.006]), missed=1)]]
    paced = summary(processes, path=PATHS["paced"], setting=0.010)
    assert paced.figures == {"period": 0.010, "real_time_factor": pytest.approx(0.5), "deadline_misses": 1}


def test_why_sampling_stopped_and_its_warm_up_are_kept():
    warmup = Warmup(calls=10, seconds=0.5, stationary=1)
    sampling = summary([blocks([1.0])], warmup=warmup, stopped_by="precision").sampling
    assert (sampling.warmup, sampling.stopped_by) == (warmup, "precision")
    assert summary([blocks([1.0])]).sampling.warmup is None


def test_blocks_that_were_disturbed_are_counted_and_marked():
    calm, disturbed = Disturbance(0, 0.0, 0.0), Disturbance(2, 0.5, 0.0)
    processes = [
        [Block(float(n), 0, np.ones(2), elapsed=2.0, disturbance=one) for n, one in enumerate([calm, disturbed])]
    ]
    latency = summary(processes)
    assert (latency.sampling.blocks, latency.sampling.disturbed_blocks) == (2, 1)
    assert sample_rows(processes)[:, SAMPLE_COLUMNS.index("disturbed")].tolist() == [0, 0, 1, 1]


def test_where_a_disturbance_is_unknown_none_are_counted():
    assert summary([blocks([1.0, 2.0])]).sampling.disturbed_blocks is None


def test_a_row_has_the_numbers_of_process_and_block_and_the_end_of_its_sample():
    processes = [blocks([1.0, 2.0], [3.0]), [Block(200.0, 1, np.array([0.5, 0.5]), calls_per_sample=4)]]
    assert sample_rows(processes).tolist() == [
        [0, 0, 101.0, 1.0, 0],
        [0, 0, 103.0, 2.0, 0],
        [0, 1, 103.0, 3.0, 0],
        [1, 0, 202.0, 0.5, 0],
        [1, 0, 204.0, 0.5, 0],
    ]


def test_samples_are_kept_in_order_and_thinned_evenly(tmp_path):
    many = np.linspace(1, 2, SAMPLES_CAP * 2)
    processes = [blocks(many)]
    assert save_samples(tmp_path, "digest", "bound", sample_rows(processes)) == SAMPLES_CAP == summary(processes).kept
    rows = np.load(samples_file(tmp_path, "digest", "bound"))
    assert rows.shape == (SAMPLES_CAP, len(SAMPLE_COLUMNS))
    assert rows[0, 3] == many[0]
    assert rows[-1, 3] == many[-1]
    assert np.all(np.diff(rows[:, 2]) > 0)


def test_a_latency_timed_beside_a_trial_is_the_median_of_its_processes():
    side = side_latency([blocks([1.0, 1.0, 1.0]), blocks([2.0]), blocks([9.0])])
    assert (side.seconds, side.count) == (2.0, 5)
    assert side.interval[0] < side.seconds < side.interval[1]


def test_percentiles_are_those_of_all_calls_and_the_interval_that_of_processes():
    processes = [blocks(range(1, 51), range(51, 101)), blocks([60.0], [80.0]), blocks([75.0])]
    latency = summary(processes)
    everything = [*range(1, 101), 60, 80, 75]
    assert (latency.mean, latency.p90, latency.p99) == pytest.approx(
        (np.mean(everything), np.percentile(everything, 90), np.percentile(everything, 99))
    )
    assert latency.interval == interval_of(latency.process_medians) != interval_of([25.5, 75.5, 60.0, 80.0, 75.0])


def test_the_deadlines_that_all_blocks_missed_are_added_up():
    processes = [[Block(0.0, 1, np.array([0.005]), missed=missed) for missed in (1, 2)] for _ in range(2)]
    assert summary(processes, path=PATHS["paced"], setting=0.004).figures["deadline_misses"] == 6
