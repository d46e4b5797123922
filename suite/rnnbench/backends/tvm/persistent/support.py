"""What the persistent kernel has not. Nothing here imports TVM."""

from __future__ import annotations

from rnnbench.backends.base import Request
from rnnbench.backends.tvm.persistent.layout import FLOAT, STAGED, padded
from rnnbench.rnn import GATES, Model

MAX_ELEMENTS = 2**31 - 1
"""TVM counts the elements of an array in 32 bits."""


def unsupported(request: Request) -> str:
    """Why there is no persistent kernel for a request on CUDA; empty where there is one."""
    model, strategy = request.stack, request.strategy
    if model.cell == "counter":
        return "The kernel of tir on cuda holds recurrent weights, and a counter has none; tvm:relax has it."
    if strategy.time != "looped":
        return f"The kernel of tir on cuda is one loop over the steps of a call: it is looped, and not {strategy.time}."
    if model.projection or not model.reset_after:
        what = "a projected LSTM" if model.projection else "a GRU that resets before the product"
        return (
            f"The kernel of tir on cuda has one product and one barrier a step, and {what} needs two; tvm:relax has it."
        )
    return _too_large(model, strategy.chunk * request.batch)


def _too_large(model: Model, vectors: int) -> str:
    widest = max(padded(width) for width in (model.hidden, model.input, model.layer_input(model.layers - 1)))
    if widest > STAGED:
        return (
            f"A block copies a whole x or h to its shared memory, and one of {widest} numbers takes {FLOAT * widest} "
            f"bytes; it has room for {FLOAT * STAGED}."
        )
    elements = 2 * vectors * (GATES[model.cell] * model.hidden + model.width)
    if elements > MAX_ELEMENTS:
        return f"The scratch memory of a call has up to {elements} elements, beyond TVM's 32-bit offsets."
    return ""
