"""Steps are found where they are, and nowhere else; missing nights and constants do no harm."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnnbench.history.change_points import LEAST_BEFORE, PUBLISH, SCREEN, clip, find_steps, noise

NIGHTS = 60


def scatter(seed: int, deviation: float = 0.007, nights: int = NIGHTS) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, deviation, nights)


def stepped(seed: int, at: int, size: float) -> np.ndarray:
    values = scatter(seed)
    values[at:] += size
    return values


@given(seed=st.integers(0, 99), at=st.integers(20, 40), size=st.sampled_from([-0.05, 0.05, 0.1]))
def test_a_step_is_found_with_its_night_and_size(seed: int, at: int, size: float) -> None:
    ((step,),) = find_steps([stepped(seed, at, size)], PUBLISH)
    assert abs(step.index - at) <= 2
    assert step.low < step.size < step.high
    assert abs(step.size - size) < 0.015


@given(seed=st.integers(0, 999))
def test_scatter_alone_is_no_alarm(seed: int) -> None:
    assert find_steps([scatter(seed)], PUBLISH) == [()]


@pytest.mark.parametrize("nights", [1, 2, 6])
def test_bad_nights_are_no_alarm(nights: int) -> None:
    values = scatter(0)
    values[30 : 30 + nights] += 0.15
    assert find_steps([values], PUBLISH) == [()]


def test_the_series_of_a_batch_do_not_enter_each_other() -> None:
    series = [stepped(seed, 15 + seed, 0.05)[: 40 + seed] for seed in range(20)]
    assert find_steps(series) == [find_steps([values])[0] for values in series]


def test_nights_without_a_value_are_left_out() -> None:
    values = stepped(1, 30, 0.05)
    whole = find_steps([values], PUBLISH)[0][0]
    spread = np.full(2 * NIGHTS, np.nan)
    spread[::2] = values
    (step,) = find_steps([spread], PUBLISH)[0]
    assert (step.index, step.size) == (2 * whole.index, whole.size)


@pytest.mark.parametrize("values", [[], [0.0], [0.0, 1.0], [np.nan] * 9, [0.0] * 30, [1.0] * 4 + [2.0] * 30])
def test_few_nights_and_constants_have_no_step(values: list[float]) -> None:
    assert find_steps([np.array(values)], SCREEN) == [()]


def test_a_constant_that_changes_is_a_step() -> None:
    values = np.array([1.0] * LEAST_BEFORE + [1.1] * 10)
    (step,) = find_steps([values], PUBLISH)[0]
    assert (step.index, round(step.size, 9)) == (LEAST_BEFORE, 0.1)


def test_the_noise_is_hardly_that_of_a_step_or_of_drift() -> None:
    values = scatter(3, nights=300)
    assert noise(values) == pytest.approx(0.007, rel=0.2)
    drifting = values + np.linspace(0, 0.5, 300) + np.where(np.arange(300) > 150, 0.3, 0)
    assert noise(drifting) == pytest.approx(noise(values), rel=0.1)


def test_an_outlier_is_clipped_and_the_last_nights_are_not() -> None:
    values = scatter(4)
    values[[20, -1]] += 0.2
    clipped = clip(values, noise(values))
    assert abs(clipped[20]) < 0.02
    assert clipped[-1] == values[-1]
