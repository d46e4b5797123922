"""What the persistent kernel does not support. Nothing here imports TVM."""

from __future__ import annotations

from math import isqrt

from rnnbench.backends.base import Request
from rnnbench.backends.tvm.persistent.layout import BARRIER, FLOAT, STAGED, VECTOR, has_two_products, padded
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
    return _too_large(model, strategy.chunk, request.batch)


def _too_large(model: Model, chunk: int, batch: int) -> str:
    widest = max(padded(width) for width in (model.hidden, model.input, model.layer_input(model.layers - 1)))
    if widest > STAGED:
        return (
            f"A block copies a whole x or h to its shared memory, and one of {widest} numbers takes {FLOAT * widest} "
            f"bytes; it has room for {FLOAT * STAGED}."
        )
    arrays = {"scratch memory of a call has": most_scratch(model, chunk, batch), "weights have": most_params(model)}
    for what, elements in arrays.items():
        if elements > MAX_ELEMENTS:
            return f"The {what} up to {elements} elements, beyond TVM's 32-bit offsets."
    return ""


def most_scratch(model: Model, chunk: int, batch: int) -> int:
    """At least `Plan.scratch`, whatever the GPU's number of multiprocessors and the state."""
    projections = GATES[model.cell] * _most_units(model) * chunk * batch
    outputs = min(model.layers - 1, 2) * model.width * chunk * batch
    exchanged_or_c = (model.cell == "lstm") + has_two_products(model)
    paddings = 4 * VECTOR
    return BARRIER + projections + outputs + exchanged_or_c * model.hidden * batch + paddings


def most_params(model: Model) -> int:
    """At least `Plan.params`, whatever the GPU's number of multiprocessors."""
    units = _most_units(model)
    rows, biases = GATES[model.cell] * units, 2
    w_hr = units * padded(model.hidden) if model.projection else 0
    widths = [padded(model.layer_input(layer)) + padded(model.output) + biases for layer in range(model.layers)]
    paddings = biases * VECTOR
    return model.directions * sum(rows * width + w_hr + paddings for width in widths)


def _most_units(model: Model) -> int:
    """Units of all blocks together. The last block may lack fewer than √hidden of its own, which are zeros."""
    return model.hidden + isqrt(model.hidden)
