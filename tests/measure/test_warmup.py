"""Warm-up goes on while calls become faster, and ends when two windows show one distribution."""

from __future__ import annotations

import numpy as np

from rnnbench.measure.sampling import Block
from rnnbench.measure.warmup import WINDOWS, WarmUp, at_rest

TOLERANCE = 0.01


def windows(*medians, scatter=0.001, calls=50):
    generator = np.random.default_rng(1)
    return [Block(0.0, 0, median * np.exp(generator.normal(0, scatter, calls))) for median in medians]


def test_it_lasts_until_calls_are_at_rest():
    warmup = WarmUp(1e9, TOLERANCE)
    for window in windows(3.0, 2.0, 1.0, 1.0):
        assert not warmup.is_over
        warmup.windows.append(window)
    assert warmup.is_over
    assert warmup.at_rest
    assert warmup.calls == 4 * 50


def test_that_never_come_to_rest_is_cut_short():
    warmup = WarmUp(1.0, TOLERANCE)
    for median in (1.0, 0.5, 0.25, 0.125, 0.0625):
        assert not warmup.is_over
        warmup.windows.append(Block(0.0, 0, np.full(50, median), elapsed=warmup.window_s))
    assert len(warmup.windows) == WINDOWS
    assert warmup.is_over
    assert not warmup.at_rest


def test_of_calls_longer_than_a_window_it_takes_no_more_than_its_time():
    warmup = WarmUp(1.0, TOLERANCE)
    for seconds in (0.9, 0.5):
        assert not warmup.is_over
        warmup.windows.append(Block(0.0, 0, np.array([seconds]), elapsed=seconds))
    assert warmup.is_over


def test_one_window_says_nothing():
    assert not at_rest(windows(1.0), TOLERANCE)


def test_calls_that_still_become_faster_are_not_at_rest():
    assert not at_rest(windows(1.0, 0.9), TOLERANCE)


def test_calls_that_agree_within_the_tolerance_are_at_rest():
    assert at_rest(windows(1.0, 0.995), TOLERANCE)


def test_only_the_last_two_windows_count():
    assert at_rest(windows(3.0, 2.0, 1.0, 1.0), TOLERANCE)
    assert not at_rest(windows(1.0, 1.0, 0.9), TOLERANCE)


def test_noise_that_hides_any_difference_is_no_warm_up():
    noisy = windows(1.0, 1.0, scatter=0.5, calls=40)
    assert abs(np.median(noisy[0].seconds) / np.median(noisy[1].seconds) - 1) > TOLERANCE
    assert at_rest(noisy, TOLERANCE)


def test_of_a_few_calls_only_their_medians_are_believed():
    assert not at_rest(windows(1.0, 0.9, scatter=0.2, calls=3), TOLERANCE)
