"""Where each weight lies in the buffer that a kernel reads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples

from rnnbench.backends.tvm.packing import FORMATS, Blocking, Matrix, fewest_blocks, layout, pack, size
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_weights

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 70), st.integers(1, 9), st.sampled_from([4, 8, 16]))


@examples(20)
@given(SHAPES)
def test_every_weight_has_one_place_and_the_rest_is_zero(shape: tuple[int, int, int, int]) -> None:
    gates, units, k, lanes = shape
    matrix = Matrix(0, gates, units, k, lanes)
    weight = np.arange(1, gates * units * k + 1, dtype=np.float32).reshape(gates * units, k)
    packed = matrix.pack(weight)
    assert packed.size == matrix.size
    assert np.count_nonzero(packed) == weight.size
    packed = packed.reshape(matrix.blocks, k, gates, matrix.columns, lanes)
    for gate in range(gates):
        for unit in range(units):
            vector, lane = divmod(unit, lanes)
            block, column = divmod(vector, matrix.columns)
            np.testing.assert_array_equal(packed[block, :, gate, column, lane], weight[gate * units + unit])


@pytest.mark.parametrize(
    "model",
    [
        Model(cell="lstm", input=5, hidden=33, layers=2, direction="bidirectional"),
        Model(cell="lstm", input=5, hidden=17, projection=3),
        Model(cell="gru", input=5, hidden=17),
        Model(cell="gru", input=5, hidden=17, reset_after=False, bias=False),
        Model(cell="rnn", input=5, hidden=1),
    ],
    ids=str,
)
def test_parts_lie_one_after_the_other_and_are_all_filled(model: Model) -> None:
    layers = layout(model, 16)
    end = 0
    for part in (part for layer in layers for part in layer.parts):
        assert part.offset == end
        assert part.offset % 16 == 0
        end += part.size
    assert end == size(layers)
    buffer = np.full(end, np.nan, np.float32)
    pack(layers, model, draw_weights(model, 0), buffer)
    assert np.isfinite(buffer).all()


def test_biases_that_nothing_scales_are_added_up() -> None:
    model = Model(cell="gru", input=2, hidden=3)
    weights = draw_weights(model, 0)
    (layer,), (packed,) = weights.layers, layout(model, 4)
    *_, b_x, b_n = packed.arrays(layer, model.hidden)
    np.testing.assert_array_equal(b_x, np.concatenate([layer.b_ih[:6] + layer.b_hh[:6], layer.b_ih[6:]]))
    np.testing.assert_array_equal(b_n, layer.b_hh[6:])


@pytest.mark.parametrize(("dtype", "nbytes"), [("bfloat16", 2), ("int8_weights", 1)])
def test_weights_of_fewer_bits_take_fewer_bytes(dtype: str, nbytes: int) -> None:
    model = Model(cell="lstm", input=64, hidden=128, bias=False)
    whole, narrow = (size(layout(model, 16, name)) * 4 for name in ("float32", dtype))
    blocks = 128 // 16
    scales = 2 * blocks * 16 * 4 if dtype == "int8_weights" else 0
    assert narrow == whole * nbytes // 4 + scales


def test_a_bfloat16_has_the_upper_half_of_its_float32_and_stands_beside_the_next_one() -> None:
    matrix = Matrix(0, 1, 4, 3, 4, FORMATS["bfloat16"])
    weight = np.arange(12, dtype=np.float32).reshape(4, 3)
    halves = matrix.pack(weight).view(np.uint16)
    found = (halves.astype(np.uint32) << 16).view(np.float32).reshape(2, 4, 2)
    np.testing.assert_array_equal(found[0], weight[:, :2])
    np.testing.assert_array_equal(found[1], np.stack([weight[:, 2], np.zeros(4)], axis=1))


def test_a_block_of_int8_ends_with_the_scale() -> None:
    weight = np.array([[127, -5, 0], [1, 2, 3]], np.float32) * np.float32(0.25)
    matrix = Matrix(0, 1, 2, 3, 4, FORMATS["int8_weights"])
    (found,) = matrix.pack(weight)
    assert found.size == matrix.size
    np.testing.assert_array_equal(found[-4:], np.full(4, 0.25, np.float32))
    np.testing.assert_array_equal(found[:-4].view(np.int8).reshape(3, 4)[:, :2].T, weight * 4)


def test_a_block_of_bytes_has_four_steps_of_k_in_a_lane_and_ends_with_the_sums_of_its_weights() -> None:
    weight = np.array([[127, -5, 0, 7, 9], [1, 2, 3, 4, 5]], np.float32) * np.float32(0.25)
    matrix = Matrix(0, 1, 2, 5, 4, FORMATS["int8_dynamic"])
    (found,) = matrix.pack(weight)
    assert found.size == matrix.size
    words = found[: matrix.weights_size].view(np.int8).reshape(2, 4, 4)
    np.testing.assert_array_equal(words[:, :2].transpose(1, 0, 2).reshape(2, 8)[:, :5], weight * 4)
    assert not words[:, 2:].any()
    assert not words[1, :, 1:].any()
    np.testing.assert_array_equal(found[-8:-4], np.full(4, 0.25, np.float32))
    np.testing.assert_array_equal(found[-4:].view(np.int32), [138, 15, 0, 0])


@pytest.mark.parametrize("dtype", FORMATS)
def test_blocks_of_both_products_alternate_where_a_step_reads_both(dtype: str) -> None:
    model = Model(cell="lstm", input=6, hidden=40, bias=False)
    weights = draw_weights(model, 0, dtype)
    (alone,), (joint,) = layout(model, 8, dtype), layout(model, 8, dtype, Blocking(joint=True))
    assert size((joint,)) == size((alone,))
    buffer = np.full(size((joint,)), np.nan, np.float32)
    pack((joint,), model, weights, buffer)
    x, h = alone.w_ih.pack(weights.layers[0].w_ih), alone.w_hh.pack(weights.layers[0].w_hh)
    expected = np.concatenate([x, h], axis=1).ravel()
    np.testing.assert_array_equal(buffer.view(np.uint32), expected.view(np.uint32))


def test_products_with_other_gates_stay_apart() -> None:
    model = Model(cell="gru", input=6, hidden=40, reset_after=False)
    assert layout(model, 8, blocking=Blocking(joint=True)) == layout(model, 8)


def test_a_block_has_as_many_vectors_as_asked_for_where_they_divide_the_units() -> None:
    model = Model(cell="lstm", input=6, hidden=48)
    (layer,) = layout(model, 8, blocking=Blocking(input_vectors=4, state_vectors=8))
    assert (layer.w_ih.vectors, layer.w_hh.vectors) == (4, 8)
    (layer,) = layout(Model(cell="lstm", input=6, hidden=40), 8, blocking=Blocking(state_vectors=8))
    assert layer.w_hh.vectors == 4


@pytest.mark.parametrize(
    ("cell", "hidden", "dtype", "blocks"),
    [
        ("lstm", 64, "float32", 4),
        ("gru", 64, "float32", 2),
        ("rnn", 112, "float32", 2),
        ("counter", 8, "float32", 0),
        ("lstm", 64, "int8_dynamic", 2),
    ],
)
def test_threads_share_the_blocks_that_every_processor_has(cell: str, hidden: int, dtype: str, blocks: int) -> None:
    """112 units are 7 blocks of a vector of AVX-512, but 2 blocks of 7 vectors of AVX."""
    assert fewest_blocks(Model(cell=cell, input=8 if cell == "counter" else 5, hidden=hidden), dtype) == blocks
