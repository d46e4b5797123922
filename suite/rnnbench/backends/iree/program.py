"""A request as an MLIR module: the layers, how time advances in them, and who carries the state.

The module exports `step`; a stateful one also `reset`, `get_state` and `set_state`. The state is one flat tensor: all
of h, then all of c. One array is one buffer at offset 0, so command buffers that read it are recorded once and not in
each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from rnnbench.backends.base import Request
from rnnbench.backends.iree.emitter import Emitter
from rnnbench.backends.iree.values import Resources, Value, tensor
from rnnbench.rnn import CellBody, Layer, Weights, cell_body

State = tuple[Value, ...]

DEVICE = "device"
"""The name of the device in the compiler's flags. Functions name it too. Otherwise the compiler (3.13) does not know on
which device the carried values of a loop are, and copies them in every pass, with the whole of y among them."""


def module(request: Request) -> str:
    """The module's text."""
    resources = Resources()
    build = {"none": _stateless, "stitched": _stitched, "stateful": _stateful}[request.strategy.state]
    lines = build(request, Emitter(resources))
    return "module @rnn {\n" + "\n".join(lines) + "\n}\n\n" + resources.text()


def _stateless(request: Request, e: Emitter) -> list[str]:
    """`step(x) -> y`, from zeros."""
    zeros = _constant_zeros(request, e)
    x = _x(request)
    y, _ = _layers(e, request, x, _by_row(e, request, zeros))
    return _function("step", [x], [y], e)


def _stitched(request: Request, e: Emitter) -> list[str]:
    """`step(x, state) -> (y, state)`."""
    x, state = _x(request), Value(_state_shape(request), "%state")
    y, final = _layers(e, request, x, _by_row(e, request, state))
    return _function("step", [x, state], [y, _flat(e, final)], e)


def _stateful(request: Request, e: Emitter) -> list[str]:
    """The state is a mutable global of the module: `step(x) -> y`, and the three functions that read or write it."""
    shape = _state_shape(request)
    kind = tensor(shape)
    load, store = f"util.global.load @state : {kind}", f"util.global.store {{}}, @state : {kind}"
    x = _x(request)
    y, final = _layers(e, request, x, _by_row(e, request, e.value(shape, load)))
    e.line(store.format(_flat(e, final).name))
    step = _function("step", [x], [y], e)

    e = e.another()
    e.line(store.format(_constant_zeros(request, e).name))
    reset = _function("reset", [], [], e)

    e = e.another()
    get_state = _function("get_state", [], [e.value(shape, load)], e)

    e = e.another()
    given = Value(shape, "%state")
    e.line(store.format(given.name))
    set_state = _function("set_state", [given], [], e)
    return [f"  util.global private mutable @state = dense<0.0> : {kind}", *step, *reset, *get_state, *set_state]


def _x(request: Request) -> Value:
    return Value((request.strategy.chunk, request.batch, request.model.input), "%x")


def _state_shape(request: Request) -> tuple[int]:
    return (sum(prod(shape) for shape in request.model.state_shapes(request.batch).values()),)


def _constant_zeros(request: Request, e: Emitter) -> Value:
    shape = _state_shape(request)
    return e.value(shape, f"arith.constant dense<0.0> : {tensor(shape)}")


def _by_row(e: Emitter, request: Request, flat: Value) -> list[State]:
    """h, or h and c, of every layer and direction, [batch, size] each, from the flat state."""
    rows: list[list[Value]] = [[] for _ in range(request.model.layers * request.model.directions)]
    offset = 0
    for count, *shape in request.model.state_shapes(request.batch).values():
        for row in range(count):
            rows[row].append(e.cut(flat, offset, shape))
            offset += prod(shape)
    return [tuple(row) for row in rows]


def _flat(e: Emitter, rows: Sequence[State]) -> Value:
    return e.flat([value for name in zip(*rows, strict=True) for value in name])


def _function(name: str, arguments: Sequence[Value], results: Sequence[Value], e: Emitter) -> list[str]:
    parameters = ", ".join(f"{a.name}: {a.type}" for a in arguments)
    types = ", ".join(r.type for r in results)
    returned = f" {', '.join(r.name for r in results)} : {types}" if results else ""
    affinity = f"attributes {{stream.affinity = #hal.device.promise<@{DEVICE}>}}"
    return [f"  func.func @{name}({parameters}) -> ({types}) {affinity} {{", *e.lines, f"    return{returned}", "  }"]


def _layers(e: Emitter, request: Request, x: Value, state: Sequence[State]) -> tuple[Value, list[State]]:
    """The stack: y [chunk, batch, width] of the last layer, and every layer's final state."""
    model, weights = request.model, request.weights
    size = request.strategy.copies
    final = []
    for layer in range(model.layers):
        outputs = []
        for direction in range(model.directions):
            row = layer * model.directions + direction
            body = cell_body(e, model, _weights(weights, row))
            backward = model.direction == "reverse" or direction == 1
            y, last = _sequence(e, body, x, state[row], model.output, size, backward)
            outputs.append(y)
            final.append(last)
        x = outputs[0] if len(outputs) == 1 else e.join(outputs)
    return x, final


def _weights(weights: Weights, row: int) -> Layer:
    """The weights of a layer and direction. A counter has none, and its body reads none."""
    nothing = np.zeros((0, 0), np.float32)
    return weights.layers[row] if weights.layers else Layer(nothing, nothing, None, None, None)


def _sequence(
    e: Emitter, body: CellBody[Value], x: Value, state: State, output: int, size: int | None, backward: bool
) -> tuple[Value, State]:
    """One layer in one direction over x [steps, batch, input]: y [steps, batch, output] and the final state.

    All steps are projected at once, outside the loop, which has steps/size passes of `size` copies of the body.
    Where `size` is None there is no loop.
    """
    steps, batch, width = x.shape
    flat = body.project(e.reshape(x, (steps * batch, width)))
    projected = e.reshape(flat, (steps, batch, flat.shape[1]))
    y = e.empty((steps, batch, output))
    if size is None:
        for step in range(steps):
            y, state = _step(e, body, projected, y, state, str(steps - 1 - step if backward else step))
        return y, state
    with e.loop(steps // size, (*state, y)) as loop:
        *inner, y = loop.carried
        state = tuple(inner)
        for copy in range(size):
            index = e.index(loop.index, -size if backward else size, steps - 1 - copy if backward else copy)
            y, state = _step(e, body, projected, y, state, index)
        loop.results = (*state, y)
    *final, y = loop.results
    return y, tuple(final)


def _step(
    e: Emitter, body: CellBody[Value], projected: Value, y: Value, state: State, index: str
) -> tuple[Value, State]:
    with e.copy():
        state = body.advance(e.row(projected, index), state)
        e.compute(*state)
        return e.put(state[0], y, index), state
