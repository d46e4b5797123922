"""Int8 weights: symmetric, one scale for each matrix, exact in float32, and found again by whoever quantises them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rnnbench.rnn import DTYPES, INT8_FORMS, Arithmetic, Model, RandomRounding, draw_weights, in_int8, run_in
from rnnbench.rnn.quantised import LARGEST, STEPS, Range, quantised, scale_of
from rnnbench.rnn.weights import draw_inputs

LSTM = Model(cell="lstm", input=8, hidden=24, projection=5)


@given(st.integers(0, 2**31), st.floats(1e-6, 1e6))
def test_dequantised_weights_are_found_again_to_the_bit(seed: int, size: float) -> None:
    weight = np.random.default_rng(seed).uniform(-size, size, (7, 5))
    first = quantised(weight)
    again = in_int8(first.values)
    assert again.scale == first.scale
    np.testing.assert_array_equal(again.q, first.q)
    assert np.abs(first.q).max() == LARGEST
    assert np.abs(first.values - weight).max() <= 0.501 * first.scale


def test_a_scale_times_each_byte_is_exact_in_float32() -> None:
    scale = scale_of(0.123456789)
    products = np.arange(-LARGEST, LARGEST + 1) * scale
    np.testing.assert_array_equal(products.astype(np.float32).astype(np.float64), products)


@given(st.floats(1e-30, 1e30), st.floats(-1e6, 0.0), st.floats(1e-6, 1e6))
def test_a_scale_is_not_too_small_for_what_it_was_made_of(largest: float, low: float, high: float) -> None:
    assert LARGEST * scale_of(largest) >= largest
    assert STEPS * Range.of(low, high).scale >= high - low


def test_a_matrix_of_zeros_stays_one() -> None:
    assert not in_int8(np.zeros((3, 2), np.float32)).q.any()


def test_a_part_of_a_matrix_is_refused() -> None:
    whole = quantised(np.array([[1.0, 0.3], [0.2, 0.7]])).values
    with pytest.raises(ValueError, match="no whole matrix of int8 values"):
        in_int8(whole[1:])


@pytest.mark.parametrize("dtype", INT8_FORMS)
def test_matrices_are_drawn_in_int8_and_biases_in_float32(dtype: str) -> None:
    (layer,), (plain,) = (draw_weights(LSTM, 0, of).layers for of in (dtype, "float32"))
    for name in ("w_ih", "w_hh", "w_hr"):
        int8 = in_int8(getattr(layer, name))
        assert np.abs(getattr(layer, name) - getattr(plain, name)).max() <= 0.501 * int8.scale
    np.testing.assert_array_equal(layer.b_ih, plain.b_ih)
    assert (DTYPES[dtype].weight_itemsize, DTYPES[dtype].itemsize) == (1, 4)


def test_activations_are_off_by_the_step_of_8_bits_and_exact_rows_are_not() -> None:
    weights, x = draw_weights(LSTM, 0, "int8_dynamic"), np.repeat(draw_inputs(LSTM, 6, 1, 0), 33, axis=1)
    random = run_in(RandomRounding("int8_dynamic", 0, 1), LSTM, weights, x).y
    exact = run_in(Arithmetic(), LSTM, weights, x).y
    nearest = run_in(Arithmetic("int8_dynamic"), LSTM, weights, x).y
    np.testing.assert_allclose(random[:, :1], exact[:, :1], rtol=0, atol=1e-15)
    spread = np.abs(random[:, 1:] - exact[:, 1:]).max()
    assert 1e-4 < spread < 0.02
    assert np.abs(nearest - exact).max() < 2 * spread


@given(st.floats(-1e6, 0), st.floats(0, 1e6))
@example(0.0, 1e-45)
@example(-1e-36, 0.0)
def test_a_range_covers_its_values_to_half_a_step_and_has_zero(low: float, high: float) -> None:
    found = Range.of(low, high)
    assert 0 <= found.zero <= STEPS
    assert found.low <= low + 0.51 * found.scale
    assert found.high >= high - 0.51 * found.scale
    assert found.nearest(np.zeros(1)) == 0
    values = found.scale * (np.arange(STEPS + 1) - found.zero)
    np.testing.assert_array_equal(values.astype(np.float32), values)
    np.testing.assert_array_equal(found.nearest(values), values)


@pytest.mark.parametrize(("low", "high"), [(1.0, 3.0), (-3.0, -1.0)])
def test_a_range_has_zero_though_its_values_are_all_on_one_side_of_it(low: float, high: float) -> None:
    found = Range.of(low, high)
    assert found.nearest(np.zeros(1)) == 0
    assert found.nearest(np.array([low, high])) == pytest.approx([low, high], abs=0.51 * found.scale)


def test_beyond_its_ends_a_range_saturates() -> None:
    found = Range.of(-1.0, 3.0)
    far = np.array([-np.inf, -7.0, 7.0, 1e30, np.inf], np.float32)
    for got in (found.nearest(far), found.clamped(far)):
        np.testing.assert_allclose(got, [found.low] * 2 + [found.high] * 3, rtol=1e-6)
    assert np.isnan(found.nearest(np.array([np.nan]))).all()


def test_a_value_is_off_by_half_a_step_of_a_range_and_exact_rows_are_not() -> None:
    weights, x = draw_weights(LSTM, 0, "int8_static"), np.repeat(draw_inputs(LSTM, 6, 1, 0), 33, axis=1)
    random = run_in(RandomRounding("int8_static", 0, 1), LSTM, weights, x).y
    exact = run_in(Arithmetic(), LSTM, weights, x).y
    nearest = run_in(Arithmetic("int8_static"), LSTM, weights, x).y
    np.testing.assert_allclose(random[:, :1], exact[:, :1], rtol=0, atol=1e-15)
    spread = np.abs(random[:, 1:] - exact[:, 1:]).max()
    assert 1e-4 < spread < 0.02
    assert np.abs(nearest - exact).max() < 2 * spread


def test_the_reference_saturates_as_the_program_does() -> None:
    weights, x = draw_weights(LSTM, 0, "int8_static"), draw_inputs(LSTM, 6, 2, 0)
    unbounded = draw_weights(LSTM, 0, "int8_dynamic")
    for scale in (1, 1e4):
        y, nearest = (run_in(Arithmetic(kind), LSTM, weights, scale * x).y for kind in ("float64", "int8_static"))
        assert np.abs(nearest - y).max() < 0.02
    assert np.abs(run_in(Arithmetic(), LSTM, unbounded, 1e4 * x).y - y).max() > 0.1
