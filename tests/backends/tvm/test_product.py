"""How the rows of a batch are cut into tiles, and that products are right however they are cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from quick_tests import for_proof

from rnnbench.backends.shared import VNNI
from rnnbench.measure import processor_features
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs, draw_state

pytest.importorskip("tvm")

Built = Callable[..., Any]


@pytest.mark.parametrize(
    ("count", "limit", "vectors", "expected"),
    [
        (16, 6, 4, [(4, 4, 0)]),  # AVX-512: equal tiles with 16 sums.
        (8, 3, 4, [(2, 3, 0), (1, 2, 6)]),  # AVX: two rows would have 8 sums.
        (32, 3, 4, [(10, 3, 0), (1, 2, 30)]),
        (9, 3, 4, [(3, 3, 0)]),
        (1, 6, 4, [(1, 1, 0)]),
        (5, 2, 6, [(2, 2, 0), (1, 1, 4)]),
    ],
)
def test_tiles_are_equal_where_that_leaves_enough_sums(
    count: int, limit: int, vectors: int, expected: list[tuple[int, int, int]]
) -> None:
    from rnnbench.backends.tvm.product import Tiles, tiles_of

    assert tiles_of(count, limit, vectors) == [Tiles(*tiles) for tiles in expected]


@pytest.mark.parametrize("count", range(1, 40))
def test_each_row_is_in_one_tile(count: int) -> None:
    from rnnbench.backends.tvm.product import tiles_of

    for limit, vectors in ((1, 8), (2, 6), (3, 4), (6, 4), (10, 2)):
        tiles = tiles_of(count, limit, vectors)
        rows = [t.first + tile * t.size + i for t in tiles for tile in range(t.number) for i in range(t.size)]
        assert rows == list(range(count))
        assert max(t.size for t in tiles) <= limit


MODELS = {
    "lstm": Model(cell="lstm", input=5, hidden=33, layers=2),
    "projected": Model(cell="lstm", input=6, hidden=40, projection=7),
    "gru": Model(cell="gru", input=5, hidden=17, layers=2),
    "reset before": Model(cell="gru", input=5, hidden=24, reset_after=False),
    "rnn": Model(cell="rnn", input=3, hidden=18, bias=False),
}


OF_BYTES = [("projected", "int8_dynamic"), ("rnn", "int8_static")] if processor_features() & VNNI else []


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *(("reset before", "float32"), ("gru", "int8_weights")),
        *for_proof(("lstm", "bfloat16"), *((name, "float32") for name in MODELS if name != "reset before"), *OF_BYTES),
    ],
)
def test_one_pass_over_both_matrices_gives_what_two_give(built: Built, name: str, dtype: str) -> None:
    """One step a call reads both matrices in one pass, and three steps read them one after the other.

    Each cell in float32, and each narrower type with one cell. The kernel refuses int8 weights where the reset gate
    comes before the product.
    """
    model = MODELS[name]
    single, several = (built("tir", "looped", "stateful", chunk, 2, model, 1, dtype).open() for chunk in (1, 3))
    x, state = draw_inputs(model, 3, 2, 0, dtype), draw_state(model, 2, 0, dtype)
    for session in (single, several):
        session.set_state(state)
    rows = [single.step({"x": row[None]})["y"] for row in x]
    np.testing.assert_array_equal(np.concatenate(rows), several.step({"x": x})["y"])


def test_blocks_beyond_the_innermost_cache_are_right(built: Built) -> None:
    """A block of 272 steps of k is passed in two lengths or more, the last of them not whole."""
    model = Model(cell="lstm", input=5, hidden=272)
    program = built("tir", "looped", "stitched", 3, 7, model)
    x, state = draw_inputs(model, 3, 7, 0), draw_state(model, 7, 0)
    session = program.open()
    session.set_state(state)
    expected = run_reference(model, program.request.weights, x, state)
    np.testing.assert_allclose(session.step({"x": x})["y"], expected.y, atol=2e-6)
