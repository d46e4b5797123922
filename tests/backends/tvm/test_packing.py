"""Where each weight lies in the buffer that a kernel reads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnbench.backends.tvm.packing import Matrix, layout, pack, size
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_weights

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 70), st.integers(1, 9), st.sampled_from([4, 8, 16]))


@settings(max_examples=20)
@given(SHAPES)
def test_every_weight_has_one_place_and_the_rest_is_zero(shape: tuple[int, int, int, int]) -> None:
    gates, units, k, lanes = shape
    matrix = Matrix(0, gates, units, k, lanes)
    weight = np.arange(1, gates * units * k + 1, dtype=np.float32).reshape(gates * units, k)
    packed = matrix.pack(weight)
    assert packed.size == matrix.size
    assert np.count_nonzero(packed) == weight.size
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
