"""The intervals of all looks together miss the truth as rarely as they say."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples

from rnnbench.results.looks import LOOKS, critical_t, spent

stats = pytest.importorskip("scipy.stats")

SERIES = 20_000
LAST = LOOKS[0] + 8
"""Later looks are counted in tests/benchmarks/test_verdict_rules.py."""


def missing(rate: float, values: np.ndarray) -> float:
    """The share of the series [series, pairs] in which the interval of any look misses the truth, 0."""
    missed = np.zeros(len(values), bool)
    for pairs in range(LOOKS[0], LAST + 1):
        seen = values[:, :pairs]
        error = seen.std(axis=1, ddof=1) / np.sqrt(pairs)
        missed |= np.abs(seen.mean(axis=1)) > critical_t(pairs, rate) * error
    return float(missed.mean())


def test_what_looks_spend_is_the_error_rate_in_the_end_and_never_falls() -> None:
    parts = [spent(pairs, 0.01) for pairs in LOOKS]
    assert parts[-1] == 0.01
    assert all(part < after for part, after in pairwise(parts))


@given(st.integers(0, len(LOOKS) - 1), st.floats(1e-4, 0.5))
def test_spending_scales_with_the_error_rate(look: int, rate: float) -> None:
    assert spent(LOOKS[look], rate) == pytest.approx(rate * spent(LOOKS[look], 1.0))


def test_the_first_look_is_students_t() -> None:
    level = spent(LOOKS[0], 0.01)
    assert critical_t(LOOKS[0], 0.01) == pytest.approx(stats.t.ppf(1 - level / 2, LOOKS[0] - 1), rel=1e-6)
    for fewer in (2, 3):
        assert critical_t(fewer, 0.01) == pytest.approx(stats.t.ppf(1 - level / 2, fewer - 1), rel=1e-6)


@pytest.mark.parametrize("rate", [0.01, 0.02, 0.2])
def test_the_looks_together_miss_the_truth_as_often_as_they_have_spent(rate: float) -> None:
    share = missing(rate, np.random.default_rng(1).standard_normal((SERIES, LAST)))
    expected = spent(LAST, rate)
    assert abs(share - expected) < 4 * np.sqrt(expected / SERIES)


def test_a_smaller_error_rate_needs_wider_intervals_and_no_look_less_than_alone() -> None:
    for pairs in range(LOOKS[0], LAST + 1):
        assert critical_t(pairs, 0.01) > critical_t(pairs, 0.02)
        assert critical_t(pairs, 0.01) > stats.t.ppf(1 - 0.01 / 2, pairs - 1)


def test_more_pairs_than_the_last_look_has_are_judged_as_strictly() -> None:
    assert critical_t(LOOKS[-1] + 5, 0.5) == critical_t(LOOKS[-1], 0.5)


@given(st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6))
@examples(10)
def test_neither_the_scale_nor_the_sign_of_what_is_seen_matters(seed: int, scale: float) -> None:
    values = np.random.default_rng(seed).standard_normal((50, LAST))
    assert missing(0.2, values) == missing(0.2, -values) == missing(0.2, values * scale)
