"""The schedule of a function of several blocks."""

from __future__ import annotations

from typing import Any

import pytest

tvm_ffi = pytest.importorskip("tvm_ffi")
pytest.importorskip("tvm")
from tvm import s_tir, te  # noqa: E402

from rnnbench.backends.tvm.schedule import scheduled  # noqa: E402


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
