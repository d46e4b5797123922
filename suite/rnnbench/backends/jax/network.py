"""A request as a function for `jax.jit`: the layers, each a scan over its steps or a copy of the cell for each step.

The state of all layers is one flat array, h before c. One argument and one result less save 1 µs a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rnnbench.backends.base import Request
from rnnbench.backends.jax.lowered import TAG
from rnnbench.backends.jax.primitives import JaxPrimitives
from rnnbench.rnn import LayerBody, cell_body

State = tuple[jax.Array, ...]
Steps = tuple[jax.Array, jax.Array | None]
"""x or its projection, [steps, batch, size]. And, where rows have lengths, which steps are beyond them,
[steps, batch, 1]."""


def network(request: Request) -> Callable[..., tuple[jax.Array, ...]]:
    """`step(x)` → (y,) from zeros, `step(x, lengths)` where rows have any; or `step(x, state)` → (y, state)."""
    if request.strategy.state == "none":

        def from_zeros(x: jax.Array, *lengths: jax.Array) -> tuple[jax.Array]:
            zeros = _by_row(request, jnp.zeros(state_size(request), x.dtype))
            return (_layers(request, x, zeros, *lengths)[0],)

        return from_zeros

    def step(x: jax.Array, state: jax.Array) -> tuple[jax.Array, jax.Array]:
        y, final = _layers(request, x, _by_row(request, state))
        flat = jnp.concatenate([array.ravel() for name in zip(*final, strict=True) for array in name])
        if request.strategy.chunk == 1:
            # y is the last layer's h. It is read off the state, because XLA would compute the gates for y once more.
            flat = lax.optimization_barrier(flat)
            y = _by_row(request, flat)[-1][0].reshape(y.shape)
        return y, flat

    return step


def state_size(request: Request) -> int:
    return sum(prod(shape) for shape in request.model.state_shapes(request.batch).values())


def _by_row(request: Request, flat: jax.Array) -> list[State]:
    """h, or h and c, of every layer and direction, [batch, size] each."""
    shapes = list(request.model.state_shapes(request.batch).values())
    ends = np.cumsum([prod(shape) for shape in shapes])
    arrays = [part.reshape(shape) for part, shape in zip(jnp.split(flat, ends[:-1]), shapes, strict=True)]
    return list(zip(*arrays, strict=True))


def _layers(
    request: Request, x: jax.Array, state: Sequence[State], lengths: jax.Array | None = None
) -> tuple[jax.Array, list[State]]:
    """The stack: y [chunk, batch, width] of the last layer, and every layer's final state."""
    model, ops, numbers = request.stack, JaxPrimitives(x.dtype), count()
    beyond = None if lengths is None else (jnp.arange(len(x))[:, None] >= lengths)[..., None]
    final = []
    for layer in range(model.layers):
        outputs = []
        for direction in range(model.directions):
            row = layer * model.directions + direction
            body = cell_body(ops, model, request.weights.row(row))
            backward = model.direction == "reverse" or direction == 1
            y, last = _sequence(body, (x, beyond), state[row], request.strategy.time, backward, numbers)
            outputs.append(y)
            final.append(last)
        x = jnp.concatenate(outputs, axis=2)
    return x, final


def _sequence(
    body: LayerBody[jax.Array], steps: Steps, state: State, time: str, backward: bool, numbers: Iterator[int]
) -> tuple[jax.Array, State]:
    """One layer in one direction over x: y [steps, batch, output] and the final state.

    All steps are projected at once, before the first. A loop over k copies is what `lax.scan(unroll=k)` makes, written
    out so that each copy has a name of its own, by which it is found again in XLA's program.
    """
    x, beyond = steps
    number, batch, _ = x.shape
    projected = body.project(x.reshape(number * batch, -1)).reshape(number, batch, -1)
    if time == "unrolled":
        return _copies(body, (projected, beyond), state, backward, numbers)
    _, _, k = time.partition(":")
    size = int(k or 1)

    def a_pass(state: State, block: Steps) -> tuple[State, jax.Array]:
        y, state = _copies(body, block, state, backward, numbers)
        return state, y

    blocks = jax.tree.map(lambda array: array.reshape(number // size, size, batch, -1), (projected, beyond))
    state, y = lax.scan(a_pass, state, blocks, reverse=backward)
    return y.reshape(number, batch, -1), state


def _copies(
    body: LayerBody[jax.Array], steps: Steps, state: State, backward: bool, numbers: Iterator[int]
) -> tuple[jax.Array, State]:
    """A copy of the cell for each step of projected [steps, batch, gates·hidden].

    After each copy the state is zero in the rows that the step is beyond: they have ended, or (backwards) not begun.
    """
    projected, beyond = steps
    outputs = []
    for step in range(len(projected))[:: -1 if backward else 1]:
        with jax.named_scope(f"{TAG}{next(numbers)}"):
            _, state = body.advance(projected[step], state)
            if beyond is not None:
                state = tuple(jnp.where(beyond[step], 0, value) for value in state)
        outputs.append(state[0])
    return jnp.stack(outputs[::-1] if backward else outputs), state
