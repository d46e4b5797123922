"""The floor of a step at batch 1: how long it takes to read a buffer once, by the fastest reader that was found.

A reader is compiled by TVM and LLVM, as the kernels are. It adds every vector of the buffer to one of several
accumulators, over and over in one call: in order each time, or in order and backwards in turn, which finds in a cache
that is too small for the buffer what the last pass left there. Prefetching by hand made none of them faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder as T

from rnnbench.backends.base import Request
from rnnbench.backends.tvm.buffers import Buffer
from rnnbench.backends.tvm.framework import lanes, target
from rnnbench.backends.tvm.tir_program import build_tir, layers_of
from rnnbench.cases import Precision, Strategy
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs, draw_weights

PASSES = 16
"""Times that one call reads the buffer."""
ACCUMULATORS = (4, 8, 16)


def kernel(hidden: int, chunk: int, cache: Path) -> tuple[Callable[[], object], np.ndarray, np.ndarray]:
    """A bound call of an LSTM's kernel, the buffer of its weights, and a part of it as large as those of each step.

    Where the blocks of both matrices alternate, that part has some of either.
    """
    model = Model(cell="lstm", input=64, hidden=hidden)
    strategy = Strategy("looped", "stitched", chunk)
    request = Request("tir", model, draw_weights(model, 0), strategy, 1, Precision.of("float32"))
    program = build_tir(request, cache)
    x = draw_inputs(model, 8 * chunk, 1, 0)
    bound = program.open().bind([{"x": x[i : i + chunk]} for i in range(0, 8 * chunk, chunk)])
    recurrent, every = layers_of(request)[0].w_hh, program.params.array
    return bound, every, every[recurrent.offset : recurrent.offset + recurrent.size]


def readers(array: np.ndarray) -> dict[str, Callable[[], object]]:
    """Calls that read a flat float32 array PASSES times, by the way they do it. It starts on a cache line."""
    data = tvm_ffi.from_dlpack(array)
    total = Buffer(lanes())
    found: dict[str, Callable[[], object]] = {}
    for accumulators in ACCUMULATORS:
        for zigzag in (False, True):
            function = reader((array.size, lanes()), PASSES, accumulators, zigzag)["main"]
            name = f"{accumulators} accumulators, {'to and fro' if zigzag else 'in order'}"
            found[name] = partial(function, data, total.tensor)
    return found


def reader(sizes: Sequence[int], passes: int, accumulators: int, zigzag: bool) -> Any:
    """A compiled `main` with an array of each size: it reads the first, adds to the last, and leaves the others.

    What does not fill the accumulators at the end is read one vector at a time.
    """
    width = lanes()
    step = accumulators * width
    size = sizes[0]
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("main")
        T.func_attr({"tirx.noalias": True})
        data, *_, total = (T.arg(f"array_{i}", T.buffer((size,), "float32")) for i, size in enumerate(sizes))
        sums = T.alloc_buffer((step,), "float32")
        for start in range(0, step, width):
            T.buffer_store(sums, tirx.Broadcast(T.float32(0), width), [tirx.Ramp(start, 1, width)])

        def add(start: Any, at: Any) -> None:
            where = tirx.Ramp(at, 1, width)
            T.buffer_store(sums, sums[where] + data[tirx.Ramp(start, 1, width)], [where])

        groups = size // step
        with T.serial(passes) as turn:
            with T.serial(groups) as group:
                place = group + (turn % 2) * (groups - 1 - 2 * group) if zigzag else group
                for start in range(0, step, width):
                    add(place * step + start, start)
            for start in range(groups * step, size, width):
                add(start, 0)
        for start in range(0, step, width):
            where = tirx.Ramp(0, 1, width)
            T.buffer_store(total, sums[tirx.Ramp(start, 1, width)] + total[where], [where])
    module = tvm.IRModule({"main": builder.get().with_attr("global_symbol", "main")})
    return tvm.compile(module, target=target()).mod
