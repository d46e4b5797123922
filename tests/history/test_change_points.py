"""Steps are found where they are, and nowhere else; missing nights and constants do no harm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rnnbench.history.change_points import (
    HAMPEL_NIGHTS,
    LEAST_BEFORE,
    PUBLISH,
    SCREEN,
    clip,
    find_cuts,
    find_steps,
    is_unusual,
    noise,
    step_of,
)

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


@pytest.mark.parametrize(("nights", "clipped"), [(HAMPEL_NIGHTS - 1, False), (HAMPEL_NIGHTS, True)])
def test_an_outlier_needs_as_many_nights_as_the_filter_looks_at(nights: int, clipped: bool) -> None:
    values = np.zeros(nights)
    values[nights // 2] = 1.0
    assert clip(values, 0.01)[nights // 2] == (0.0 if clipped else 1.0)


def test_an_outlier_is_one_by_the_noise_of_its_series() -> None:
    for deviation in (0.001, 0.1):
        values = scatter(5, deviation)
        values[20] += 10 * deviation
        assert abs(clip(values, noise(values))[20]) < 4 * deviation


def test_nights_of_a_noise_that_has_grown_are_no_outliers() -> None:
    """Clipped, they would look like a quiet new level."""
    quiet, noisy = scatter(1, 0.001, 40), scatter(2, 0.01, 40)
    values = np.concatenate([quiet, noisy])
    changed = np.flatnonzero(clip(values, noise(quiet)) != values)
    assert np.count_nonzero(changed >= 40) <= 5, "of 40: with the noise of the quiet nights it is half of them"


@pytest.mark.parametrize(("night", "most"), [(45, 15), (70, 5)])
def test_a_noise_that_grows_is_hardly_told(night: int, most: int) -> None:
    nights = np.arange(90)
    series = [scatter(seed, 1, 90) * np.where(nights < night, 0.005, 0.03) for seed in range(100)]
    assert sum(map(len, find_steps(series, PUBLISH))) <= most


def test_the_last_two_nights_may_be_a_step_and_are_not_clipped() -> None:
    values = scatter(6)
    values[-2] += 0.2
    assert clip(values, noise(values))[-2] == values[-2]


@pytest.mark.parametrize(("before", "found"), [(LEAST_BEFORE - 1, False), (LEAST_BEFORE, True)])
def test_a_level_is_known_after_five_nights(before: int, found: bool) -> None:
    values = np.array([1.0] * before + [1.1] * 10)
    assert bool(find_steps([values], SCREEN)[0]) == found


@pytest.mark.parametrize(("after", "found"), [(2, []), (3, [20]), (4, [20])])
def test_a_step_is_screened_after_three_nights_and_dated_on_the_first(after: int, found: list[int]) -> None:
    values = np.array([1.0] * 20 + [1.1] * after)
    assert [step.index for step in find_steps([values], SCREEN)[0]] == found


@pytest.mark.parametrize(("deviation", "nights"), [(0.001, 0.0), (0.01, 2.0)])
def test_the_nights_on_which_a_step_may_have_begun_are_few_and_have_the_right_one(
    deviation: float, nights: float
) -> None:
    """Of noisy nights the likeliest first one is another one in one of seven series."""
    series = [scatter(seed, deviation, 40) + np.where(np.arange(40) < 30, 0.0, 0.03) for seed in range(200)]
    found = [step for steps in find_steps(series, SCREEN) for step in steps if abs(step.index - 30) <= 5]
    assert len(found) > 180
    assert all(step.between[0] <= step.index <= step.between[1] for step in found)
    assert np.mean([step.between[0] <= 30 <= step.between[1] for step in found]) > 0.97
    assert np.mean([step.between[1] - step.between[0] for step in found]) <= nights


def test_the_nights_on_which_a_step_may_have_begun_are_those_that_have_a_value() -> None:
    values = scatter(4, 0.004, 32) + np.where(np.arange(32) < 22, 0.0, 0.03)
    values[20:22] = 0.015, np.nan
    assert [step.between for step in find_steps([values], SCREEN)[0]] == [(20, 22)]


@pytest.mark.parametrize(("after", "found"), [(6, False), (7, True)])
def test_a_new_level_is_told_after_a_week(after: int, found: bool) -> None:
    values = np.array([1.0] * 20 + [1.1] * after)
    assert bool(find_steps([values], PUBLISH)[0]) == found
    assert find_steps([values], SCREEN)[0], "it is worth a measurement before"


@pytest.mark.parametrize("slow", [5, 6])
@pytest.mark.parametrize("since", [2, 3, 5])
def test_a_step_that_is_over_is_not_told_while_the_nights_since_are_few(slow: int, since: int) -> None:
    values = scatter(3, nights=60 + slow + since)
    values[60 : 60 + slow] += 0.05
    assert find_steps([values], PUBLISH) == [()]
    assert find_steps([values[:-since]], SCREEN)[0], "it was worth a measurement while it was there"


def steps_told(values: np.ndarray) -> int:
    return sum(map(len, find_steps(list(values), PUBLISH)))


def test_a_level_that_wanders_is_hardly_told() -> None:
    chance = np.random.default_rng(0)
    wandering = chance.normal(0, 0.005, (40, 90)) + np.cumsum(chance.normal(0, 0.004, (40, 90)), axis=1)
    assert sum(map(len, find_steps(list(wandering), SCREEN))) > 40, "the t-test alone takes it for steps"
    assert steps_told(wandering) <= 20
    wandering[:, 60:] += 0.1
    assert steps_told(wandering) >= 35


@pytest.mark.parametrize("cut", [7, 14])
def test_a_step_between_the_first_or_the_last_weeks_is_compared_with_that_of_the_week_beside_them(cut: int) -> None:
    values = np.repeat([0.0, 1.0, 2.0], 7)
    assert not is_unusual(values, (cut - 7, cut, cut + 7))
    values[14:] += 10 if cut == 14 else -1
    assert is_unusual(values, (cut - 7, cut, cut + 7))


def test_nights_of_two_levels_are_hardly_told() -> None:
    chance = np.random.default_rng(0)
    values = chance.normal(0, 0.005, (40, 90)) + 0.04 * (chance.random((40, 90)) < 0.5)
    assert steps_told(values) <= 4
    values[:, 60:] += 0.1
    assert steps_told(values) >= 35


@pytest.mark.parametrize("nights", [3, 6])
@pytest.mark.parametrize("other", [0.02, -0.02])
def test_a_smaller_step_some_nights_away_does_not_date_a_step(nights: int, other: float) -> None:
    values = scatter(8, 0.002)
    values[30:] += 0.1
    before, after = values.copy(), values.copy()
    before[30 - nights :] += other
    after[30 + nights :] += other
    for values in (before, after):
        assert 30 in [step.index for step in find_steps([values], SCREEN)[0]]
        assert [step.index for step in find_steps([values], PUBLISH)[0]] == [30]


@pytest.mark.parametrize(("size", "screened", "published"), [(0.008, 0, 0), (0.012, 1, 0), (0.02, 1, 1)])
def test_a_step_that_is_sure_and_too_small_to_matter_is_none(size: float, screened: int, published: int) -> None:
    values = scatter(7, 1e-4)
    values[30:] += size
    assert [len(find_steps([values], settings)[0]) for settings in (SCREEN, PUBLISH)] == [screened, published]


def test_a_step_is_as_certain_as_the_noise_of_its_series_and_the_scatter_of_its_old_level_allow() -> None:
    """Nights that move slowly up and down have small differences, and scatter all the same."""
    calm, slow = np.zeros(28), np.repeat([0.02, -0.02, 0.02, -0.02], 7)
    new = np.full(28, 0.05)
    p = {
        (name, deviation): step_of(np.concatenate([old, new]), (0, 28, 56), deviation).p
        for name, old in (("calm", calm), ("slow", slow))
        for deviation in (0.001, 0.04)
    }
    assert p["calm", 0.001] < 1e-12 < p["slow", 0.001]
    assert p["calm", 0.001] < p["calm", 0.04]
    assert p["slow", 0.001] < p["slow", 0.04]


def test_only_the_nights_near_a_change_are_its_levels() -> None:
    """A drift of a year before it is not its old level, nor what comes a year after it its new one."""
    far = np.concatenate([np.full(200, -1.0), np.full(28, 0.0), np.full(28, 0.1), np.full(200, 0.1)])
    drifting = far + scatter(9, 0.001, len(far))
    drifting[256:] += np.linspace(0, 0.02, 200)
    steps = find_steps([drifting], PUBLISH)[0]
    (step,) = [step for step in steps if abs(step.index - 228) <= 2]
    assert step.size == pytest.approx(0.1, abs=0.003)
    one_piece = np.concatenate([np.full(200, -1.0), np.full(28, 0.0), np.full(28, 0.1), np.full(200, 0.2)])
    assert step_of(one_piece, (0, 228, 456), 0.001).size == pytest.approx(0.1)


def test_the_interval_of_a_step_is_one_of_ninety_five_per_cent() -> None:
    """For nights without a value between; of many series some miss the truth."""
    steps = [find_steps([stepped(seed, 30, 0.1)], PUBLISH)[0][0] for seed in range(200)]
    held = sum(step.low <= 0.1 <= step.high for step in steps)
    assert 180 <= held <= 199


def test_the_least_certain_cut_goes_first() -> None:
    """A bump of two nights beside a step: without its cut the step is whole again."""
    values = scatter(10)
    values[30:] += 0.1
    values[24:27] += 0.03
    (step,) = find_steps([values], PUBLISH)[0]
    assert abs(step.index - 30) <= 1


def test_the_p_and_the_interval_of_a_step_are_those_of_a_two_sided_t_test_of_two_medians() -> None:
    step = step_of(np.repeat([0.0, 0.05], [28, 14]), (0, 28, 42), 0.02)
    error = np.sqrt(np.pi / 2) * 0.02 * np.sqrt(1 / 28 + 1 / 14)
    assert step.p == pytest.approx(2 * stats.t.sf(0.05 / error, 40))
    assert (step.low, step.high) == pytest.approx(stats.t.interval(0.95, 40, 0.05, error))


def test_a_cut_is_paid_for_by_the_length_of_its_own_series() -> None:
    """A year of nights in the same batch makes no cut of a fortnight dearer."""
    fortnight = (np.tile([0.001, -0.001], 7) + np.repeat([0.0, 0.003], 7)) / 0.002
    assert find_cuts([fortnight], 2) == [[7]]
    assert find_cuts([fortnight, np.zeros(2000)], 2) == [[7], []]


def test_a_candidate_costs_less_than_what_is_told_without_a_measurement() -> None:
    """Three nights of a new level after a thousand: surely a step, and hardly worth the price of a cut."""
    values = scatter(0, nights=1000)
    values[-3:] = np.median(values) + 2.6 * noise(values)
    assert [step.index for step in find_steps([values], SCREEN)[0]] == [997]
    assert find_steps([values], replace(SCREEN, penalty=PUBLISH.penalty)) == [()]
