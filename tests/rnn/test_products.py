"""Large products of the reference run on all cores of the machine, and leave the process as it was."""

from __future__ import annotations

import os
import threading
import warnings

import numpy as np
import pytest

from rnnbench.rnn import products
from rnnbench.rnn.products import on_cores, times_transposed

THREE = frozenset({*os.sched_getaffinity(0), 0, 1, 2})
"""Cores of a machine that has at least three, or a set with further cores, which the kernel leaves out."""


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The cores of each thread that multiplies. The product is large."""
    seen: list[set[int]] = []
    multiply = np.matmul

    def noted(*given: np.ndarray, out: np.ndarray) -> np.ndarray:
        seen.append(os.sched_getaffinity(0))
        assert threading.current_thread() is not threading.main_thread()
        return multiply(*given, out=out)

    monkeypatch.setattr(products, "LARGE", 1)
    monkeypatch.setattr(np, "matmul", noted)
    return seen


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(7,), (5, 7), (2, 5, 7)])
def test_a_shared_product_is_the_product(shape: tuple[int, ...], dtype: str, cores: list[set[int]]) -> None:
    generator = np.random.default_rng(0)
    x, weight = generator.standard_normal(shape).astype(dtype), generator.standard_normal((11, 7)).astype(dtype)
    with on_cores(THREE):
        got = times_transposed(x, weight)
    assert len(cores) == 3
    assert (got.dtype, got.shape) == (x.dtype, (*shape[:-1], 11))
    np.testing.assert_allclose(got, x @ weight.T, rtol=0, atol=1e-5 if dtype == "float32" else 1e-13)


def test_the_calling_thread_stays_on_its_cores_and_no_thread_is_left(cores: list[set[int]]) -> None:
    own, before = os.sched_getaffinity(0), threading.active_count()
    os.sched_setaffinity(0, {max(own)})
    try:
        with on_cores(THREE), on_cores(THREE):
            times_transposed(np.ones((2, 3)), np.ones((4, 3)))
        assert os.sched_getaffinity(0) == {max(own)}
    finally:
        os.sched_setaffinity(0, own)
    assert threading.active_count() == before
    assert all(cores)
    cores.clear()
    times_transposed(np.ones((2, 3)), np.ones((4, 3)))
    assert not cores, "outside of the block nothing is shared"


def test_small_products_are_not_shared(cores: list[set[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "LARGE", 25)
    with on_cores(THREE):
        times_transposed(np.ones((2, 3)), np.ones((4, 3)))
        assert not cores
        times_transposed(np.ones((3, 3)), np.ones((4, 3)))
    assert len(cores) == 3


def test_what_is_no_number_gives_no_warning(cores: list[set[int]]) -> None:
    with warnings.catch_warnings(), on_cores(THREE), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("error")
        assert np.isnan(times_transposed(np.array([[np.inf, -np.inf]]), np.ones((4, 2)))).all()
    assert cores
