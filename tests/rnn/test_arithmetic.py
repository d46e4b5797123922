"""Random roundings are as large as the dtype's own, leave exact rows exact, and come again with their seed."""

from __future__ import annotations

import numpy as np
import pytest
from random_models import problem

from rnnbench.rnn import DTYPES, Arithmetic, Model, RandomRounding, Trajectory, rounded, run_in, run_reference
from rnnbench.rnn.arithmetic import ACTIVATION

MODEL = Model(cell="lstm", input=8, hidden=24)
DTYPE_NAMES = list(DTYPES)


def sampled(dtype: str, seed: int = 0, model: Model = MODEL) -> tuple[Trajectory, Trajectory]:
    """A run of one exact row and 32 others, all of the same inputs; and the float64 reference."""
    data = problem(model, 12, 1, dtype=dtype)
    x = np.repeat(data.x, 33, axis=1)
    return run_in(RandomRounding(dtype, seed, 1), model, data.weights, x), run_reference(model, data.weights, data.x)


@pytest.mark.parametrize("dtype", DTYPE_NAMES)
def test_the_first_rows_are_exact(dtype: str) -> None:
    run, exact = sampled(dtype)
    np.testing.assert_allclose(run.y[:, :1], exact.y, rtol=0, atol=1e-15)


@pytest.mark.parametrize("dtype", DTYPE_NAMES)
def test_samples_spread_as_the_dtype_rounds(dtype: str) -> None:
    run, exact = sampled(dtype)
    spread = np.abs(run.y[:, 1:] - exact.y).max()
    data = problem(MODEL, 12, 1, dtype=dtype)
    rounding = np.abs(run_reference(MODEL, data.weights, data.x, dtype=dtype, summation=1).y - exact.y).max()
    assert spread > DTYPES[dtype].unit / 8
    if dtype != "float64":  # the reference's own arithmetic, whose rounding is beside itself
        assert rounding / 4 < spread < 16 * rounding


def test_a_seed_gives_the_same_samples_and_another_others() -> None:
    (one, _), (again, _), (other, _) = sampled("float32"), sampled("float32"), sampled("float32", seed=1)
    np.testing.assert_array_equal(one.y, again.y)
    assert not np.array_equal(one.y, other.y)


@pytest.mark.parametrize("dtype", DTYPE_NAMES)
def test_every_value_of_a_run_in_a_dtype_is_one_of_the_dtype(dtype: str) -> None:
    data = problem(MODEL, 5, 2, dtype=dtype)
    run = run_in(Arithmetic(dtype), MODEL, data.weights, data.x, data.state)
    for array in (run.y, *run.final.values()):
        assert array.dtype == DTYPES[dtype].stored
        np.testing.assert_array_equal(rounded(array, dtype), array)


def test_what_is_too_small_to_be_normal_may_vanish() -> None:
    tiny = np.full((17, 1), DTYPES["float32"].tiny / 4)
    moved = RandomRounding("float32", 0, 1)(tiny.copy())
    assert moved[0] == tiny[0]
    assert np.all((moved[1:] >= 0) & (moved[1:] <= 2 * tiny[1:]))
    assert np.ptp(moved[1:]) > tiny[0, 0] / 2


def test_an_activation_near_zero_is_off_by_as_much_as_where_it_is_large() -> None:
    near_zero = RandomRounding("float32", seed=0, exact=1).activated(np.zeros((200, 3)))
    assert not near_zero[0].any()
    assert 0.9 * ACTIVATION < np.abs(near_zero[1:]).max() <= ACTIVATION


def test_a_product_is_off_by_the_roundings_of_its_partial_sums_and_no_more() -> None:
    """Of 64 ones the partial sums are 1 to 64. A tolerance that is too wide would accuse nobody."""
    terms, unit = 64, 2.0**-24
    sums = RandomRounding("float32", 0, 0).product(np.ones((1, terms)))(np.ones((20_000, terms)))
    expected = unit * np.sqrt(np.square(np.arange(1, terms + 1)).sum() / 3)
    assert (sums - terms).std() == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("dtype", DTYPE_NAMES)
def test_a_product_of_a_row_is_its_own_however_far_it_is_from_its_exact_one(dtype: str) -> None:
    """Only what a row is off by is summed in float32. Its digits count where the row has little else."""
    generator = np.random.default_rng(0)
    weight = generator.standard_normal((5, 7))
    x = np.concatenate([np.ones((2, 7)), generator.standard_normal((4, 7)) * [[1e-300], [1e-9], [1.0], [1e9]]])
    exact = Arithmetic().product(weight)(x)
    got = RandomRounding(dtype, 0, 2).product(weight)(x.copy())
    np.testing.assert_allclose(got[:2], exact[:2], rtol=1e-15)
    most = (np.abs(x) + 1) @ np.abs(weight).T
    if not DTYPES[dtype].activations:
        assert np.all(np.abs(got - exact)[2:] <= (8 * DTYPES[dtype].unit + 2.0**-22) * most[2:])


@pytest.mark.parametrize(("dtype", "of_part"), [("float32", "float16"), ("float16", "float32"), ("float32", "float64")])
def test_a_part_in_a_narrower_dtype_rounds_as_that_and_one_in_a_wider_dtype_as_the_network(dtype, of_part) -> None:
    unit = max(DTYPES[dtype].unit, DTYPES[of_part].unit)
    moved = RandomRounding(dtype, 0, 0).narrowed(of_part)(np.ones((65, 1)))
    assert unit / 2 < np.abs(moved - 1).max() <= unit
