"""Warm-up goes on while calls become faster, and ends when two windows show one distribution."""

from __future__ import annotations

import numpy as np

from rnnbench.measure.blocks import Block
from rnnbench.measure.clocks import Clock
from rnnbench.measure.warmup import WINDOWS, WarmUp, is_stationary

TOLERANCE = 0.01


def windows(*medians, scatter=0.001, calls=50):
    generator = np.random.default_rng(1)
    return [Block(0.0, 0, median * np.exp(generator.normal(0, scatter, calls))) for median in medians]


def test_it_lasts_until_calls_are_stationary():
    warmup = WarmUp(1e9, TOLERANCE)
    for window in windows(3.0, 2.0, 1.0, 1.0):
        assert not warmup.is_over
        warmup.windows.append(window)
    assert warmup.is_over
    assert warmup.is_stationary
    assert warmup.calls == 4 * 50


def test_it_ends_with_its_time_where_calls_never_become_stationary():
    warmup = WarmUp(1.0, TOLERANCE)
    for median in (1.0, 0.5, 0.25, 0.125, 0.0625):
        assert not warmup.is_over
        warmup.windows.append(Block(0.0, 0, np.full(50, median), elapsed=warmup.window_s))
    assert len(warmup.windows) == WINDOWS
    assert warmup.is_over
    assert not warmup.is_stationary


def test_calls_longer_than_a_window_end_with_the_time_too():
    warmup = WarmUp(1.0, TOLERANCE)
    for seconds in (0.9, 0.5):
        assert not warmup.is_over
        warmup.windows.append(Block(0.0, 0, np.array([seconds]), elapsed=seconds))
    assert warmup.is_over


def test_one_window_is_not_enough_to_be_stationary():
    assert not is_stationary(windows(1.0), TOLERANCE)


def test_calls_that_still_become_faster_are_not_stationary():
    assert not is_stationary(windows(1.0, 0.9), TOLERANCE)


def test_calls_that_agree_within_the_tolerance_are_stationary():
    assert is_stationary(windows(1.0, 0.995), TOLERANCE)


def test_only_the_last_two_windows_count():
    assert is_stationary(windows(3.0, 2.0, 1.0, 1.0), TOLERANCE)
    assert not is_stationary(windows(1.0, 1.0, 0.9), TOLERANCE)


def test_noise_that_hides_any_difference_counts_as_stationary():
    noisy = windows(1.0, 1.0, scatter=0.5, calls=40)
    assert abs(np.median(noisy[0].seconds) / np.median(noisy[1].seconds) - 1) > TOLERANCE
    assert is_stationary(noisy, TOLERANCE)


def test_few_calls_are_compared_by_their_medians_alone():
    assert not is_stationary(windows(1.0, 0.9, scatter=0.2, calls=3), TOLERANCE)


def test_how_many_calls_are_timed_at_once_is_by_the_first_window(monkeypatch):
    monkeypatch.setattr("rnnbench.measure.warmup.measure_clock", lambda: Clock(resolution=1e-9, cost=1e-7))
    warmup = WarmUp(1.0, TOLERANCE)
    assert warmup.calls_per_sample == 1
    warmup.windows += windows(1.1e-6, 1e-3)
    assert warmup.calls_per_sample == 5


def test_a_window_of_few_calls_is_compared_by_medians_whatever_the_other_has():
    many = Block(0.0, 0, np.linspace(0.8, 1.2, 50))
    few = Block(0.0, 0, np.array([0.9, 0.9, 0.9]))
    assert not is_stationary([many, few], TOLERANCE)
    assert not is_stationary([few, many], TOLERANCE)


def test_calls_that_differ_by_twice_the_tolerance_are_not_stationary():
    assert not is_stationary(windows(1.0, 1 - 1.8 * TOLERANCE, scatter=1e-4), TOLERANCE)


def test_the_time_of_a_window_is_all_of_it():
    warmup = WarmUp(1.0, TOLERANCE)
    warmup.windows.append(Block(0.0, 0, np.array([0.1]), elapsed=1.0))
    assert (warmup.seconds, warmup.is_over) == (1.0, True)
