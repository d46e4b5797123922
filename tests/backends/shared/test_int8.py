"""Bytes of int8 weights for processors whose products of signed bytes overflow."""

from __future__ import annotations

import numpy as np
import pytest

from rnnbench.backends.shared import int8


@pytest.mark.parametrize(
    ("features", "expected"),
    [("fma avx2 bmi2", True), ("avx2 avx512f avx512_vnni", False), ("avx2 avx_vnni", False), ("neon", False)],
)
def test_sums_of_16_bits_are_those_of_avx2_without_vnni(monkeypatch, features: str, expected: bool) -> None:
    monkeypatch.setattr(int8, "processor_features", lambda: frozenset(features.split()))
    assert int8.overflows() is expected


@pytest.mark.parametrize(("overflows", "kind"), [(True, np.uint8), (False, np.int8)])
def test_bytes_without_overflow_are_the_same_weights(monkeypatch, overflows: bool, kind: type) -> None:
    monkeypatch.setattr(int8, "overflows", lambda: overflows)
    q = np.arange(-127, 128).astype(np.int8)
    values, zero = int8.without_overflow(q)
    assert values.dtype == zero.dtype == kind
    np.testing.assert_array_equal(values.astype(int) - int(zero), q)
