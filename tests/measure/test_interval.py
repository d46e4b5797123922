"""The interval of a median has the truth in it as often as it says, and a drift is what was planted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import for_proof
from scipy import stats

from rnnbench.measure import drift_of, half_width, interval_of


@pytest.mark.parametrize("processes", [3, *for_proof(2, 6)])
def test_nineteen_intervals_in_twenty_have_the_truth_in_them(processes):
    generator = np.random.default_rng(processes)
    draws = 1e-5 * np.exp(generator.normal(0, 0.02, (800, processes)))
    intervals = [interval_of(medians) for medians in draws]
    covered = np.mean([low <= 1e-5 <= high for low, high in intervals])
    assert covered == pytest.approx(0.95, abs=0.023)  # three standard errors of 800 draws


def test_one_process_has_no_interval():
    assert interval_of([1.0]) is None


def test_medians_that_agree_leave_a_point():
    low, high = interval_of([2.0, 2.0, 2.0])
    assert (low, high) == (pytest.approx(2.0), pytest.approx(2.0))
    assert half_width((low, high)) == pytest.approx(0)


def test_two_medians_that_are_far_apart_reach_to_infinity():
    low, high = interval_of([1e-30, 1e30])
    assert (low, high, half_width((low, high))) == (0.0, math.inf, math.inf)


def test_the_half_width_is_relative_to_the_middle():
    assert half_width((1 / 1.01, 1.01)) == pytest.approx(0.01)


def test_a_planted_drift_is_found_and_outliers_do_not_move_it():
    times = np.arange(20.0)
    seconds = 1e-6 * 1.1 ** (times / 19)
    assert drift_of(times, seconds) == pytest.approx(0.1)
    seconds[[3, 11]] *= 5
    assert drift_of(times, seconds) == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("times", [[1.0, 2.0, 3.0], [5.0, 5.0, 5.0, 5.0]])
def test_a_few_blocks_or_no_time_show_no_drift(times):
    assert drift_of(times, np.arange(1.0, 1 + len(times))) is None


def test_four_blocks_show_a_drift():
    assert drift_of([0.0, 1.0, 2.0, 3.0], 1e-6 * 1.1 ** (np.arange(4) / 3)) == pytest.approx(0.1)


def test_a_drift_is_one_over_time_and_not_over_blocks():
    """Blocks come closer together towards the end."""
    times = np.sqrt(np.arange(20.0))
    assert drift_of(times, 1e-6 * 1.1 ** (times / times[-1])) == pytest.approx(0.1)


@given(st.lists(st.floats(1e-7, 1.0), min_size=2, max_size=9))
def test_an_interval_is_scipy_s(medians):
    logs = np.log(medians)
    if (error := stats.sem(logs)) > 1e-12:
        expected = stats.t.interval(0.95, len(logs) - 1, logs.mean(), error)
        assert np.log(interval_of(medians)) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(1e-7, 1.0)), min_size=4, max_size=30))
def test_a_drift_is_scipy_s_slope(blocks):
    times, medians = zip(*sorted(blocks), strict=True)
    if (drift := drift_of(times, medians)) is not None:
        slope = stats.theilslopes(np.log(medians), times).slope
        assert drift == pytest.approx(math.expm1(slope * (times[-1] - times[0])), rel=1e-6, abs=1e-9)
