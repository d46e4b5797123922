"""Lines through figures: planted ones are found, and an error is as wide as the figures scatter."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy
from scipy import stats

from rnnbench.results import fits
from rnnbench.results.fits import Estimate, calls_until_paid, fit_call, fit_growth, growth_word

CHUNKS = (1, 8, 16, 64, 128)
BUILDS = (8, 16, 32, 64, 128, 256, 512)


def test_a_planted_call_and_step_are_found() -> None:
    fit = fit_call({chunk: 12e-6 + 3e-6 * chunk for chunk in CHUNKS})
    assert fit is not None
    assert fit.per_call.value == pytest.approx(12e-6)
    assert fit.per_step.value == pytest.approx(3e-6)
    assert fit.error < 1e-6


def test_the_interval_holds_what_was_planted_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    held = 0
    for _ in range(200):
        noisy = {chunk: (12e-6 + 3e-6 * chunk) * float(np.exp(generator.normal(0, 0.02))) for chunk in CHUNKS}
        fit = fit_call(noisy)
        assert fit is not None
        low, high = fit.per_call.interval
        held += low <= 12e-6 <= high
    assert 180 <= held <= 199


def test_where_there_is_no_fit_a_report_imports_no_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    monkeypatch.delattr(scipy, "special", raising=False)
    assert fit_growth({1: 1.0, 2: 2.0}) is None


def test_two_points_are_no_fit() -> None:
    assert fit_call({1: 1e-6, 2: 2e-6}) is None
    assert fit_growth({1: 1e-6, 2: 2e-6}) is None


@pytest.mark.parametrize(("power", "word"), [(0, "constant"), (1, "linear"), (2, "quadratic"), (3, "cubic")])
def test_growth_is_named(power: int, word: str) -> None:
    growth = fit_growth({chunk: 0.3 * chunk**power for chunk in CHUNKS})
    assert growth is not None
    assert growth.exponent.value == pytest.approx(power)
    assert growth.fixed == 0.0
    assert growth_word(growth.exponent) == word


def test_a_fixed_part_does_not_hide_what_grows() -> None:
    growth = fit_growth({chunk: 1.5 + (chunk / 64) ** 2 for chunk in BUILDS})
    assert growth is not None
    assert growth.exponent.value == pytest.approx(2, abs=1e-3)
    assert growth.fixed == pytest.approx(1.5, rel=1e-3)


@pytest.mark.parametrize("fixed", [0.0, 1.0])
def test_a_word_from_noisy_builds_is_the_true_one_or_none(fixed: float) -> None:
    generator = np.random.default_rng(0)
    words = set()
    for _ in range(20):
        noisy = {chunk: (fixed + (chunk / 64) ** 2) * float(np.exp(generator.normal(0, 0.1))) for chunk in BUILDS}
        growth = fit_growth(noisy)
        assert growth is not None
        words.add(growth_word(growth.exponent))
    assert "quadratic" in words
    assert not words & {"constant", "linear", "cubic"}


def test_a_cost_that_looks_constant_may_grow_above_a_fixed_part() -> None:
    """The memory of six builds of one compiler, in two runs: a word for one must be the word for the other."""
    for megabytes in (
        (308.5, 324.1, 352.2, 407.5, 523.9, 757.4),
        (309.3, 324.6, 352.0, 407.3, 523.8, 757.2),
    ):
        growth = fit_growth(dict(zip(BUILDS, megabytes, strict=False)))
        assert growth is not None
        assert growth_word(growth.exponent) == "linear"
        assert growth.fixed == pytest.approx(293, rel=0.03)


@pytest.mark.proof
def test_a_constant_cost_stays_constant_whatever_its_noise() -> None:
    generator = np.random.default_rng(0)
    for noise in (0.003, 0.03, 0.1):
        words = []
        for _ in range(100):
            growth = fit_growth({chunk: float(np.exp(generator.normal(0, noise))) for chunk in BUILDS})
            assert growth is not None
            words.append((growth_word(growth.exponent), growth.fixed))
        assert words.count(("constant", 0.0)) >= 97


def test_four_points_are_too_few_to_tell_a_fixed_part() -> None:
    growth = fit_growth({chunk: 1.5 + (chunk / 64) ** 2 for chunk in BUILDS[:4]})
    assert growth is not None
    assert growth.fixed == 0.0


@pytest.mark.parametrize(
    ("value", "half", "word"),
    [
        (1.5, 0.05, "between linear and quadratic"),
        (1.4, 0.5, "undecided"),
        (-0.8, 0.1, "falling"),
        (3.6, 0.1, "beyond cubic"),
        (1.9, 0.3, "quadratic"),
        (0.35, 0.16, "between constant and linear"),
    ],
)
def test_words_go_no_further_than_the_interval(value: float, half: float, word: str) -> None:
    assert growth_word(Estimate(value, half)) == word


def test_a_compile_pays_off_after_as_many_calls_as_make_up_for_it() -> None:
    assert calls_until_paid(start=11.0, call=1e-3, other_start=1.0, other_call=2e-3) == pytest.approx(10_000)
    assert calls_until_paid(start=11.0, call=2e-3, other_start=1.0, other_call=2e-3) is None


def test_each_chunk_weighs_by_its_own_latency() -> None:
    """A call of 100 steps that is off by a half has most of the seconds, and does not decide alone."""
    fit = fit_call({1: 2.0, 2: 3.0, 4: 5.0, 100: 150.0})
    assert fit is not None
    assert fit.per_call.value == pytest.approx(0.56, abs=0.1)


def test_the_error_of_a_fit_is_relative_to_the_point_that_is_off_most() -> None:
    seconds = {chunk: 12e-6 + 3e-6 * chunk for chunk in CHUNKS}
    fit = fit_call({**seconds, 64: 1.1 * seconds[64]})
    assert fit is not None
    assert 0.02 < fit.error < 0.1


def test_differences_weigh_by_the_figures_that_they_come_from() -> None:
    """A small difference of two large latencies has the error of these."""
    differences = {1: 1.0, 2: 2.0, 4: 4.0, 8: 16.0}
    by_themselves, by_figures = fit_call(differences), fit_call(differences, dict.fromkeys(differences, 100.0))
    assert by_themselves is not None
    assert by_figures is not None
    assert by_figures.per_step.value > 1.5 * by_themselves.per_step.value


def test_figures_of_zero_are_no_points_of_a_growth() -> None:
    growth = fit_growth({1: 0.0, 2: 0.0, **{chunk: 0.3 * chunk for chunk in (4, 8, 16)}})
    assert growth is not None
    assert growth.exponent.value == pytest.approx(1.0)
    assert fit_growth({1: 0.0, 2: 1.0, 4: 2.0}) is None


def test_a_later_start_that_costs_nothing_has_paid_off_at_once() -> None:
    assert calls_until_paid(start=1.0, call=1e-3, other_start=11.0, other_call=2e-3) == 0.0


NOISY = {1: 1.02, 2: 1.97, 4: 4.1, 8: 7.8, 16: 16.3}


def test_the_intervals_of_a_call_and_of_a_step_are_those_of_a_line() -> None:
    """With equal weights: Student's t with two degrees of freedom less than there are points."""
    fit = fit_call(NOISY, dict.fromkeys(NOISY, 1.0))
    assert fit is not None
    line, quantile = stats.linregress(list(NOISY), list(NOISY.values())), stats.t.ppf(0.975, len(NOISY) - 2)
    assert fit.per_call.half_width == pytest.approx(quantile * line.intercept_stderr)
    assert fit.per_step.half_width == pytest.approx(quantile * line.stderr)


def test_the_interval_of_an_exponent_is_that_of_a_line_through_logarithms() -> None:
    few = {chunk: NOISY[chunk] for chunk in list(NOISY)[:4]}
    growth = fit_growth(few)
    assert growth is not None
    line = stats.linregress(np.log(list(few)), np.log(list(few.values())))
    assert growth.exponent.half_width == pytest.approx(stats.t.ppf(0.975, 2) * line.stderr)


def test_a_fixed_part_takes_a_degree_of_freedom(monkeypatch: pytest.MonkeyPatch) -> None:
    freedoms = []
    monkeypatch.setattr(fits, "_students_t", lambda freedom: freedoms.append(freedom) or 1.0)
    growth = fit_growth({chunk: 1.5 + (chunk / 64) ** 2 * (1.01 if chunk > 64 else 1) for chunk in BUILDS})
    assert growth is not None
    assert growth.fixed > 0
    assert freedoms[-1] == len(BUILDS) - 3


def test_five_points_tell_a_fixed_part() -> None:
    growth = fit_growth({chunk: 1.5 + (chunk / 64) ** 2 for chunk in BUILDS[:5]})
    assert growth is not None
    assert growth.fixed == pytest.approx(1.5, rel=1e-3)


@pytest.mark.proof
def test_a_fixed_part_is_taken_for_one_by_chance_in_a_fifth_of_fits() -> None:
    generator = np.random.default_rng(0)
    taken = 0
    for _ in range(100):
        growth = fit_growth({chunk: chunk / 64 * float(np.exp(generator.normal(0, 0.05))) for chunk in BUILDS})
        assert growth is not None
        taken += growth.fixed > 0
    assert 0 < taken <= 30


@pytest.mark.parametrize("power", [0.5, 1.0, 1.5, 2.0, 2.5])
def test_what_a_plain_power_leaves_is_rounding_and_no_fixed_part(power: float) -> None:
    for scale in (1e-6, 0.3, 7.0):
        growth = fit_growth({chunk: scale * chunk**power for chunk in BUILDS})
        assert growth is not None
        assert growth.fixed == 0.0


def test_a_fit_that_leaves_less_than_rounding_explains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    above = fits.Growth(fits.Estimate(1.5, 0.1), 1e-9)
    monkeypatch.setattr(fits, "_fit_above", lambda chunks, logs: (above, 0.0))
    assert fit_growth({chunk: 0.3 * chunk**1.5 for chunk in BUILDS}) != above
    assert fit_growth({chunk: 0.3 * chunk**1.5 * (1 + chunk % 3 / 1000) for chunk in BUILDS}) == above
