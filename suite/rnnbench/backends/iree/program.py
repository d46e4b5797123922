"""A request as an MLIR module: the layers, how time advances in them, and who carries the state.

The module exports `step`; a stateful one also `reset`, `get_state` and `set_state`. The state is one flat tensor: all
of h, then all of c. One array is one buffer at offset 0, so command buffers that read it are recorded once and not in
each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from rnnbench.backends.base import Request
from rnnbench.backends.iree.primitives import Primitives
from rnnbench.backends.iree.values import Resources, Value, tensor, without_unread_constants
from rnnbench.cases import Strategy
from rnnbench.measure import vector_lanes
from rnnbench.rnn import LayerBody, LayerSpec, run_graph, runs_together, state_by_array, state_by_layer, together

State = tuple[Value, ...]

DEVICE = "device"
"""The name of the device in the compiler's flags. Functions name it too. Otherwise the compiler (3.13) does not know on
which device the carried values of a loop are, and copies them in every pass, with the whole of y among them."""


def module(request: Request) -> str:
    """The module's text."""
    resources = Resources()
    build = {"none": _stateless, "stitched": _stitched, "stateful": _stateful}[request.strategy.state]
    lines = build(request, Primitives(resources, vector_lanes() if request.device == "cpu" else 0))
    functions = "\n".join(lines)
    return "module @rnn {\n" + functions + "\n}\n\n" + resources.text(functions)


def _stateless(request: Request, e: Primitives) -> list[str]:
    """`step(x) -> y`, from zeros."""
    zeros = _constant_zeros(request, e)
    x = _x(request)
    y, _ = _layers(e, request, x, _by_layer(e, request, zeros))
    return _function("step", [x], [y], e)


def _stitched(request: Request, e: Primitives) -> list[str]:
    """`step(x, state) -> (y, state)`."""
    x, state = _x(request), Value(_state_shape(request), "%state")
    y, final = _layers(e, request, x, _by_layer(e, request, state))
    return _function("step", [x, state], [y, _flat(e, request, final)], e)


def _stateful(request: Request, e: Primitives) -> list[str]:
    """The state is a mutable global of the module: `step(x) -> y`, and the three functions that read or write it."""
    shape = _state_shape(request)
    kind = tensor(shape)
    load, store = f"util.global.load @state : {kind}", f"util.global.store {{}}, @state : {kind}"
    x = _x(request)
    y, final = _layers(e, request, x, _by_layer(e, request, e.value(shape, load)))
    e.line(store.format(_flat(e, request, final).name))
    step = _function("step", [x], [y], e)

    e = e.another()
    e.line(store.format(_constant_zeros(request, e).name))
    reset = _function("reset", [], [], e)

    e = e.another()
    get_state = _function("get_state", [], [e.value(shape, load)], e)

    e = e.another()
    argument = Value(shape, "%state")
    e.line(store.format(argument.name))
    set_state = _function("set_state", [argument], [], e)
    return [f"  util.global private mutable @state = dense<0.0> : {kind}", *step, *reset, *get_state, *set_state]


def _x(request: Request) -> Value:
    return Value((request.strategy.chunk, request.batch, request.model.input), "%x")


def _state_shape(request: Request) -> tuple[int]:
    return (sum(prod(shape) for shape in request.model.state_shapes(request.batch).values()),)


def _constant_zeros(request: Request, e: Primitives) -> Value:
    shape = _state_shape(request)
    return e.value(shape, f"arith.constant dense<0.0> : {tensor(shape)}")


def _by_layer(e: Primitives, request: Request, flat: Value) -> list[State]:
    """The state of every layer, [batch, size] each, from the flat state."""
    rows: dict[str, list[Value]] = {}
    offset = 0
    for name, (count, *shape) in request.model.state_shapes(request.batch).items():
        rows[name] = [e.cut(flat, offset + row * prod(shape), shape) for row in range(count)]
        offset += count * prod(shape)
    return state_by_layer(request.model, rows)


def _flat(e: Primitives, request: Request, states: Sequence[State]) -> Value:
    return e.flat([value for rows in state_by_array(request.model, states).values() for value in rows])


def _function(name: str, arguments: Sequence[Value], results: Sequence[Value], e: Primitives) -> list[str]:
    parameters = ", ".join(f"{a.name}: {a.type}" for a in arguments)
    types = ", ".join(r.type for r in results)
    returned = f" {', '.join(r.name for r in results)} : {types}" if results else ""
    affinity = f"attributes {{stream.affinity = #hal.device.promise<@{DEVICE}>}}"
    body = [*e.lines, f"    return{returned}"]
    return [f"  func.func @{name}({parameters}) -> ({types}) {affinity} {{", *without_unread_constants(body), "  }"]


def _layers(e: Primitives, request: Request, x: Value, state: Sequence[State]) -> tuple[Value, list[State]]:
    """The network: y [chunk, batch, width], and every layer's final state."""
    final: list[State] = []

    def run(index: int, x: Value) -> Value:
        layer = request.model.graph[index]
        body = request.model.body(e, request.weights, index)
        if runs_together(request.strategy.time) and state[index]:
            y, last = _together(e, body, layer, x, state[index], request.strategy)
        else:
            y, last = _sequence(e, body, layer, x, state[index], request.strategy.copies)
        final.append(last)
        return y

    return run_graph(request.model, x, run, e.join), final


def _sequence(
    e: Primitives, body: LayerBody[Value], layer: LayerSpec, x: Value, state: State, size: int | None
) -> tuple[Value, State]:
    """One layer in one direction over x [steps, batch, input]: y [steps, batch, width] and the final state.

    All steps are projected at once, outside the loop, which has steps/size passes of `size` copies of the body.
    Where `size` is None there is no loop.
    """
    steps, batch, width = x.shape
    backward = layer.backward
    flat = body.project(e.reshape(x, steps * batch, width))
    projected = e.reshape(flat, steps, batch, flat.shape[1])
    if not state:
        return projected, ()
    y = e.empty((steps, batch, layer.width))
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


def _together(
    e: Primitives, body: LayerBody[Value], layer: LayerSpec, x: Value, state: State, strategy: Strategy
) -> tuple[Value, State]:
    """A layer whose steps run together, over x: one scan of all steps, or a loop over blocks. As `_sequence`."""
    steps, batch, width = x.shape
    size = strategy.copies or steps
    projected = body.project(e.reshape(x, steps * batch, width))
    if size == steps:
        y, state = _block(e, body, projected, state, strategy.time, (size, batch))
        return e.reshape(y, steps, batch, layer.width), state
    passes = steps // size
    blocks = e.reshape(projected, passes, size * batch, projected.shape[1])
    with e.loop(passes, (*state, e.empty((passes, size * batch, layer.width)))) as loop:
        *inner, y = loop.carried
        output, state = _block(e, body, e.row(blocks, loop.index), tuple(inner), strategy.time, (size, batch))
        loop.results = (*state, e.put(output, y, loop.index))
    *final, y = loop.results
    return e.reshape(y, steps, batch, layer.width), tuple(final)


def _block(
    e: Primitives, body: LayerBody[Value], projected: Value, state: State, time: str, shape: tuple[int, int]
) -> tuple[Value, State]:
    """`shape` is steps and batch."""
    with e.copy():
        y, state = together(body, time, projected, state, *shape)
        e.compute(y, *state)
        return y, state


def _step(
    e: Primitives, body: LayerBody[Value], projected: Value, y: Value, state: State, index: str
) -> tuple[Value, State]:
    with e.copy():
        output, state = body.advance(e.row(projected, index), state)
        e.compute(output, *state)
        return e.put(output, y, index), state
