"""The scatter of a core's speed, and the work that it is read from."""

from __future__ import annotations

import os

import pytest

from rnnbench.measure import steadiness
from rnnbench.measure.steadiness import measure_scatter, scatter_of


def test_nine_of_ten_readings_are_within_the_scatter() -> None:
    assert scatter_of([1.0] * 9 + [0.5]) == 0.0
    assert scatter_of([1.0] * 6 + [1.2] * 5) == pytest.approx(0.2)


def test_one_reading_has_no_scatter() -> None:
    assert scatter_of([3.0]) == 0.0


def test_a_core_has_a_scatter_for_arithmetic_and_for_each_cache_and_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("llvmlite")
    monkeypatch.setattr(steadiness, "cache_sizes", lambda: {"L1d": 32 << 10, "L2": 256 << 10, "L3": 1 << 20})
    cores = os.sched_getaffinity(0)
    scatter = measure_scatter(0.0)
    assert scatter == {"arithmetic": 0.0, "L2": 0.0, "L3": 0.0}
    assert os.sched_getaffinity(0) == cores


@pytest.mark.parametrize(
    ("caches", "sizes"),
    [
        ({"L2": 1 << 20, "L3": 32 << 20}, {"L2": 512 << 10, "L3": 8 << 20}),
        ({"L2": 2 << 20, "L3": 8 << 20}, {"L2": 1 << 20, "L3": 4 << 20}),
        ({"L2": 4 << 20}, {"L2": 2 << 20}),
        ({"L1d": 32 << 10}, {}),
    ],
)
def test_a_cache_is_read_by_what_the_smaller_one_does_not_hold(caches: dict[str, int], sizes: dict[str, int]) -> None:
    assert dict(steadiness._working_sets(caches)) == sizes
