"""A request as a function for `jax.jit`: the layers, each a scan over its steps or a copy of its body for each step.

The state of all layers is one flat array: its arrays one after the other, h before c. One argument and one result less
save 1 µs a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rnnbench.backends.base import Request
from rnnbench.backends.jax.compound import JaxLoop
from rnnbench.backends.jax.lowered import TAG
from rnnbench.backends.jax.primitives import ConvolvingPrimitives, JaxPrimitives
from rnnbench.backends.shared import CUDA
from rnnbench.cases import Strategy
from rnnbench.rnn import (
    FUSED,
    CompoundNetwork,
    LayerBody,
    run_graph,
    runs_together,
    state_by_array,
    state_by_layer,
    together,
)

State = tuple[jax.Array, ...]
Steps = tuple[jax.Array, jax.Array | None]
"""x or its projection, [steps, batch, size]. And, where rows have lengths, which steps are beyond them,
[steps, batch, 1]."""


def network(request: Request) -> Callable[..., tuple[jax.Array, ...]]:
    """`step(x)` → (y,) from zeros, `step(x, lengths)` where rows have any; or `step(x, state)` → (y, state).

    Raises BuildError for a user's file that cannot be read.
    """
    if request.file is not None:
        from rnnbench.backends.jax.stablehlo_file import file_step

        return file_step(request, request.file)
    if request.strategy.time == FUSED:
        from rnnbench.backends.jax.cudnn import fused_step

        return fused_step(request)
    if isinstance(request.model, CompoundNetwork):
        return _compound(request, request.model)
    if request.strategy.state == "none":

        def from_zeros(x: jax.Array, *lengths: jax.Array) -> tuple[jax.Array]:
            zeros = _by_layer(request, jnp.zeros(state_size(request), x.dtype))
            return (_layers(request, x, zeros, *lengths)[0],)

        return from_zeros

    def step(x: jax.Array, state: jax.Array) -> tuple[jax.Array, jax.Array]:
        y, final = _layers(request, x, _by_layer(request, state))
        arrays = state_by_array(request.model, final).values()
        flat = jnp.concatenate([row.ravel() for rows in arrays for row in rows])
        reads_state = request.batch == 1 or request.device == CUDA
        if request.strategy.chunk == 1 and reads_state and (places := _places_of_y(request, x.dtype)):
            # y is read off the state, because XLA would compute the gates for y once more. With several rows the
            # processor's kernel that joins the state would be slow.
            flat = lax.optimization_barrier(flat)
            after = _by_layer(request, flat)
            y = jnp.concatenate([after[layer][place] for layer, place in places], axis=1).reshape(y.shape)
        return y, flat

    return step


def _compound(request: Request, network: CompoundNetwork) -> Callable[..., tuple[jax.Array, ...]]:
    """As `network`, with the loop between the parts in the program."""
    loop = JaxLoop(request, partial(_layers, numbers=count()))

    def step(x: jax.Array, flat: jax.Array) -> tuple[jax.Array, jax.Array]:
        state = dict(_by_array(request, flat))
        y, after = network.advance_in_program(loop, x, state)
        return y, jnp.concatenate([after[name].ravel() for name in state])

    if request.strategy.state == "none":
        return lambda x: step(x, jnp.zeros(state_size(request), x.dtype))[:1]
    return step


def state_size(request: Request) -> int:
    return sum(prod(shape) for shape in request.model.state_shapes(request.batch).values())


def is_flat(request: Request) -> bool:
    """Whether one array has the whole state: a file may have states of several types, which are an array each."""
    dtype = request.precision.state
    return all(request.model.state_dtype(name, dtype) == dtype for name in request.model.state_shapes(request.batch))


def state_argument(request: Request, dtype: np.dtype[np.generic]) -> jax.ShapeDtypeStruct | list[jax.ShapeDtypeStruct]:
    """The type of the state of a step: one flat array of `dtype`, or a list of arrays."""
    if is_flat(request):
        return jax.ShapeDtypeStruct((state_size(request),), dtype)
    return [
        jax.ShapeDtypeStruct(shape, jnp.dtype(request.model.state_dtype(name, str(dtype))))
        for name, shape in request.model.state_shapes(request.batch).items()
    ]


def _by_layer(request: Request, flat: jax.Array) -> list[State]:
    """The state of every layer, [batch, size] each."""
    return state_by_layer(request.model, {name: list(array) for name, array in _by_array(request, flat)})


def _by_array(request: Request, flat: jax.Array) -> Iterator[tuple[str, jax.Array]]:
    """Every array of the state with its name, [rows, batch, size]."""
    shapes = request.model.state_shapes(request.batch)
    ends = np.cumsum([prod(shape) for shape in shapes.values()])
    for (name, shape), part in zip(shapes.items(), jnp.split(flat, ends[:-1]), strict=True):
        yield name, part.reshape(shape)


def _places_of_y(request: Request, dtype: np.dtype[np.generic]) -> list[tuple[int, int]]:
    """Where y is in the state: a layer and one of its arrays for each part of y. Empty where a part is in none."""
    network, batch = request.model, request.batch
    sizes = {name: shape[2] for name, shape in network.state_shapes(batch).items()}
    places = list[tuple[int, int]]()

    def advance(body: LayerBody[jax.Array], index: int, projected: jax.Array, state: State) -> jax.Array:
        y, after = body.advance(projected, state)
        places.extend((index, place) for place, value in enumerate(after) if value is y)
        return y

    for index in network.outputs:
        layer, body = network.graph[index], network.body(JaxPrimitives(dtype), request.weights, index)
        if not layer.states:
            return []
        state = tuple(jax.ShapeDtypeStruct((batch, sizes[name]), dtype) for name, _ in layer.states)
        projected = jax.ShapeDtypeStruct((batch, layer.projected), dtype)
        jax.eval_shape(partial(advance, body, index), projected, state)
    return places if [layer for layer, _ in places] == list(network.outputs) else []


def _layers(
    request: Request,
    x: jax.Array,
    state: Sequence[State],
    lengths: jax.Array | None = None,
    numbers: Iterator[int] | None = None,
) -> tuple[jax.Array, list[State]]:
    """The network: y [chunk, batch, width], and every layer's final state. `numbers` are for copies of its layers."""
    network, numbers = request.model, numbers or count()
    ops = (ConvolvingPrimitives if request.route == "jit" else JaxPrimitives)(x.dtype)
    beyond = None if lengths is None else (jnp.arange(len(x))[:, None] >= lengths)[..., None]
    final: list[State] = []

    def run(index: int, x: jax.Array) -> jax.Array:
        body, backward = network.body(ops, request.weights, index), network.graph[index].backward
        if runs_together(request.strategy.time) and state[index]:
            y, last = _together(body, request.strategy, x, state[index], numbers)
        else:
            y, last = _sequence(body, (x, beyond), state[index], request.strategy.copies, backward, numbers)
        final.append(last)
        return y

    return run_graph(network, x, run, partial(jnp.concatenate, axis=2)), final


def _sequence(
    body: LayerBody[jax.Array], steps: Steps, state: State, size: int | None, backward: bool, numbers: Iterator[int]
) -> tuple[jax.Array, State]:
    """One layer in one direction over x: y [steps, batch, width] and the final state.

    All steps are projected at once, before the first. A loop over `size` copies is what `lax.scan(unroll=size)` makes,
    written out so that each copy has a name of its own, by which it is found again in XLA's program. Where `size` is
    None there is no loop.
    """
    x, beyond = steps
    number, batch, _ = x.shape
    projected = body.project(x.reshape(number * batch, -1)).reshape(number, batch, -1)
    if not state:
        return projected, ()
    if size is None:
        return _copies(body, (projected, beyond), state, backward, numbers)

    def a_pass(state: State, block: Steps) -> tuple[State, jax.Array]:
        y, state = _copies(body, block, state, backward, numbers)
        return state, y

    blocks = jax.tree.map(lambda array: array.reshape(number // size, size, batch, -1), (projected, beyond))
    state, y = lax.scan(a_pass, state, blocks, reverse=backward)
    return y.reshape(number, batch, -1), state


def _together(
    body: LayerBody[jax.Array], strategy: Strategy, x: jax.Array, state: State, numbers: Iterator[int]
) -> tuple[jax.Array, State]:
    """A layer whose steps run together, over x: one scan of all steps, or a loop over blocks. As `_sequence`."""
    number, batch, _ = x.shape
    size = strategy.copies or number
    projected = body.project(x.reshape(number * batch, -1))

    def a_pass(state: State, block: jax.Array) -> tuple[State, jax.Array]:
        with jax.named_scope(f"{TAG}{next(numbers)}"):
            y, state = together(body, strategy.time, block, state, size, batch)
        return state, y

    if size == number:
        state, y = a_pass(state, projected)
    else:
        state, y = lax.scan(a_pass, state, projected.reshape(number // size, size * batch, -1))
    return y.reshape(number, batch, -1), state


def _copies(
    body: LayerBody[jax.Array], steps: Steps, state: State, backward: bool, numbers: Iterator[int]
) -> tuple[jax.Array, State]:
    """A copy of the body for each step of projected [steps, batch, size].

    After each copy y and the state are zero in the rows that the step is beyond: they have ended, or (backwards) not
    begun.
    """
    projected, beyond = steps
    outputs = []
    for step in range(len(projected))[:: -1 if backward else 1]:
        with jax.named_scope(f"{TAG}{next(numbers)}"):
            y, state = body.advance(projected[step], state)
            if beyond is not None:
                y, *values = (jnp.where(beyond[step], 0, value) for value in (y, *state))
                state = tuple(values)
        outputs.append(y)
    return jnp.stack(outputs[::-1] if backward else outputs), state
