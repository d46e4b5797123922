"""A schedule for the operators of a Relax module. TVM's default leaves scalar loops, which are 10 times slower.

A product keeps a few rows and vectors of columns in registers while it runs over k, and what follows is computed on
them there. The weights of a tile are read once for all of its rows.
Everything else is one loop over vectors. Nothing is tuned for an RNN: it would serve any dense model on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import s_tir, tirx
from tvm.ir.expr import TensorLoad
from tvm.ir.transform import Sequential, module_pass
from tvm.relax.backend.cpu_generic import pipeline as cpu_generic

from rnnbench.backends.tvm.fast_math import fast_math
from rnnbench.backends.tvm.framework import registers
from rnnbench.backends.tvm.tiles import OUTPUTS, whole_tiles

ROWS = 4
"""Most rows of a tile: each vector of weights is multiplied by a number of each."""


def pipeline(target: Any, lanes: int, inspect: Callable[[Any], object]) -> Any:
    """TVM's default pipeline for a CPU, with this schedule after its fusion of operators.

    `inspect` is called with the module as it leaves the pipeline.
    """

    def schedule(module: Any, _: Any) -> Any:
        for name, function in list(module.functions_items()):
            if isinstance(function, tirx.PrimFunc):
                module[name] = scheduled(function, lanes)
        return module

    def passes(module: Any, _: Any) -> Any:
        with target:
            module = Sequential(
                [
                    fast_math(),
                    whole_tiles(lanes),
                    *cpu_generic.legalize_passes(target),
                    module_pass(schedule, opt_level=0),
                    *cpu_generic.dataflow_lower_passes(target),
                    *cpu_generic.finalize_passes(target),
                ]
            )(module)
        inspect(module)
        return module

    return module_pass(passes, opt_level=0)


def scheduled(function: Any, lanes: int) -> Any:
    """The function, with every block of it scheduled.

    It stays as TVM wrote it where that cannot be, as of a convolution or a sum to one number. A file may have these.
    Such loops are right, and slower.
    """
    try:
        return _scheduled(function, lanes)
    except (s_tir.ScheduleError, ValueError):
        return function


def _scheduled(function: Any, lanes: int) -> Any:
    schedule = s_tir.Schedule(function)
    root = schedule.get_sblock("root")
    inlined = [block for block in schedule.get_child_blocks(root) if _is_inlined(schedule, block, function)]
    moves = [block for block in inlined if isinstance(getattr(schedule.get(block).body, "value", None), TensorLoad)]
    # TVM simplifies a whole block whenever it puts something into it. So moves (slices, reshapes) come first, while
    # all blocks are short. The others follow, the last one first, so that what is put into blocks is short.
    for block in (*moves, *(block for block in reversed(inlined) if block not in moves)):
        schedule.compute_inline(block)
    blocks = schedule.get_child_blocks(root)
    products = [block for block in blocks if _reduces(schedule, block)]
    for product in products:
        _schedule_product(schedule, product, lanes)
    for block in blocks if not products else []:
        if loops := schedule.get_loops(block):
            _vectorize(schedule, schedule.fuse(*loops), lanes)
    return schedule.mod["main"].with_attrs(function.attrs)


def _is_inlined(schedule: Any, block: Any, function: Any) -> bool:
    """Whether a block's values are computed where they are read: it is no sum, and no output of the function."""
    written = schedule.get(block).writes[0].source
    return not _reduces(schedule, block) and not any(written.same_as(output) for output in function.params)


def _reduces(schedule: Any, block: Any) -> bool:
    return any(axis.iter_type == tirx.IterVar.CommReduce for axis in schedule.get(block).iter_vars)


def _schedule_product(schedule: Any, product: Any, lanes: int) -> None:
    """Loops tiles of columns, tiles of rows, k, and inside them the rows of a tile and its vectors of columns."""
    consumers = schedule.get_consumers(product)
    if consumers:
        schedule.set_scope(product, 0, "local")
    after = consumers[0] if consumers else schedule.cache_write(product, 0, "local")
    *rows, columns, k = schedule.get_loops(product)
    height = _divisor(_extent(schedule, rows[-1]), ROWS) if rows else 1
    width = _extent(schedule, columns)
    lane = _divisor(width, lanes)
    most = max(1, min(OUTPUTS // lanes, registers() // 2 // height))
    tiles, vectors, vector = schedule.split(columns, [None, _divisor(width // lane, most), lane])
    outermost = tiles
    if rows:
        outermost, row = schedule.split(rows[-1], [None, height])
        schedule.reorder(tiles, outermost, k, row, vectors, vector)
        schedule.unroll(row)
    else:
        schedule.reorder(tiles, k, vectors, vector)
    schedule.vectorize(vector)
    schedule.unroll(vectors)
    schedule.reverse_compute_at(after, outermost)
    _vectorize(schedule, schedule.get_loops(after)[-1], lane)
    schedule.decompose_reduction(product, k)


def _vectorize(schedule: Any, loop: Any, lanes: int) -> None:
    lane = _divisor(_extent(schedule, loop), lanes)
    if lane > 1:
        schedule.vectorize(schedule.split(loop, [None, lane])[1])


def _extent(schedule: Any, loop: Any) -> int:
    return int(schedule.get(loop).extent)


def _divisor(extent: int, most: int) -> int:
    """The largest power of two that divides `extent` and is not above `most`."""
    return min(most, extent & -extent)
