"""Both forms of the rank test give SciPy's p."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from rnnbench.measure.rank_test import exact_rank_p, normal_rank_p

WITH_TIES = st.lists(st.integers(1, 12), min_size=4, max_size=40)


@given(seed=st.integers(0, 999), first=st.integers(1, 28), second=st.integers(1, 28))
def test_the_p_of_a_few_values_is_exact(seed: int, first: int, second: int) -> None:
    values = np.random.default_rng(seed).normal(0, 1, first + second)
    known = stats.mannwhitneyu(values[first:], values[:first], method="exact").pvalue
    assert exact_rank_p(values[:first], values[first:]) == pytest.approx(known)


@given(WITH_TIES, WITH_TIES)
def test_the_p_by_the_normal_distribution_is_corrected_for_ties(first: list[int], second: list[int]) -> None:
    assume(len({*first, *second}) > 1)
    known = stats.mannwhitneyu(first, second, method="asymptotic").pvalue
    assert normal_rank_p(np.array(first, float), np.array(second, float)) == pytest.approx(known)
