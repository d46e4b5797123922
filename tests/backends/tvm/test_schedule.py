"""The schedule of a function of several blocks."""

from __future__ import annotations

from typing import Any

import pytest

tvm_ffi = pytest.importorskip("tvm_ffi")
pytest.importorskip("tvm")
from tvm import s_tir, te  # noqa: E402

from rnnbench.backends.tvm.framework import registers  # noqa: E402
from rnnbench.backends.tvm.schedule import ROWS, scheduled  # noqa: E402


def blocks_of(schedule: Any) -> Any:
    return schedule.get_child_blocks(schedule.get_sblock("root"))


def test_moves_are_inlined_first_and_the_function_is_that_of_the_last_block_first() -> None:
    """TVM simplifies a whole block at each step. With slices last, Mamba-2's functions took twice as long."""
    x = te.placeholder((4, 16), name="x")
    left = te.compute((4, 8), lambda i, j: x[i, j], name="left")
    right = te.compute((4, 8), lambda i, j: x[i, j + 8], name="right")
    square = te.compute((4, 8), lambda i, j: left[i, j] * right[i, j], name="square")
    shifted = te.compute((4, 4), lambda i, j: square[i, j + 4], name="shifted")
    y = te.compute((4, 4), lambda i, j: shifted[i, j] + square[i, j], name="y")
    function = te.create_prim_func([x, y])

    last_first = s_tir.Schedule(function)
    for block in reversed(blocks_of(last_first)[:-1]):
        last_first.compute_inline(block)

    of_blocks = scheduled(function, 4)
    assert len(blocks_of(s_tir.Schedule(of_blocks))) == 1
    assert tvm_ffi.structural_equal(of_blocks, scheduled(last_first.mod["main"], 4))


def test_a_tile_of_weights_is_read_once_for_the_rows_of_a_tile() -> None:
    x, weights = te.placeholder((8, 24), name="x"), te.placeholder((24, 256), name="weights")
    k = te.reduce_axis((0, 24), name="k")
    y = te.compute((8, 256), lambda i, j: te.sum(x[i, k] * weights[k, j], axis=k), name="y")
    schedule = s_tir.Schedule(scheduled(te.create_prim_func([x, weights, y]), 8))
    update = schedule.get_sblock("y_update")
    extents = [int(schedule.get(loop).extent) for loop in schedule.get_loops(update)]
    columns, rows, terms, row, *vectors = extents
    assert (rows, terms, row) == (8 // ROWS, 24, ROWS)
    assert columns * vectors[0] * vectors[1] == 256
    assert ROWS * vectors[0] < registers(), "sums that registers do not hold"
