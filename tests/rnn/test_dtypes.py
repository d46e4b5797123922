"""Rounding to a dtype is rounding to nearest, ties to even, as the libraries that know the type do it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rnnbench.rnn import DTYPES, rounded

FLOATS = arrays.arrays(np.float32, 8, elements=st.floats(width=32, allow_nan=True, allow_infinity=True))


@given(FLOATS)
def test_bfloat16_is_torchs(array: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    expected = torch.tensor(array).to(torch.bfloat16).to(torch.float32).numpy()
    np.testing.assert_array_equal(rounded(array, "bfloat16"), expected)


@pytest.mark.parametrize("name", DTYPES)
def test_one_and_the_unit_roundoff_are_a_tie_and_more_is_the_next_number(name: str) -> None:
    unit = DTYPES[name].unit
    ones = np.array([1 + unit / 2, 1 + 1.5 * unit, 1 - unit]) if name != "float64" else np.array([1.0, 1 + 1.5 * unit])
    values = rounded(ones, name)
    assert values.dtype == DTYPES[name].stored
    assert list(values[:2]) == [1, 1 + 2 * unit]
    assert values[-1] != 1


@pytest.mark.parametrize("name", DTYPES)
def test_what_is_rounded_once_stays(name: str) -> None:
    values = rounded(np.random.default_rng(0).standard_normal(100) * 1e3, name)
    np.testing.assert_array_equal(rounded(values, name), values)


def test_beyond_the_range_is_infinite_and_the_smallest_normal_number_is_kept() -> None:
    assert list(rounded(np.array([7e4, -1e39]), "float16")) == [np.inf, -np.inf]
    assert list(rounded(np.array([3.4e38, 3.5e38]), "bfloat16")) == [np.inf, np.inf]
    for name, dtype in DTYPES.items():
        assert rounded(np.array([dtype.tiny]), name) == dtype.tiny
        if name != "float64":
            digits = np.array([1 + 2 * dtype.unit])
            assert rounded(dtype.tiny * digits, name) == dtype.tiny * digits
            assert rounded(dtype.tiny / 2 * digits, name) != dtype.tiny / 2 * digits  # It has fewer digits.
