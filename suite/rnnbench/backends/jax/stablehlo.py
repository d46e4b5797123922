"""JAX's program of a request as StableHLO text, for adapters of other compilers.

JAX is imported by `stablehlo` and not before.
"""

from __future__ import annotations

from dataclasses import dataclass

from rnnbench.backends.base import Request
from rnnbench.backends.jax.lowered import TAG

Shape = tuple[int, ...]
COPY = TAG
"""A location in the text that names a copy of a layer has this word with the copy's number after it: `cell3`."""


@dataclass(frozen=True)
class Stablehlo:
    """A module with one function, `main`: x to y; or x and the state to y and the state after it."""

    text: str
    x: Shape
    state: tuple[Shape, ...]
    """The one flat array of h and c; none where a call starts from zeros."""


def stablehlo(request: Request) -> Stablehlo:
    """The module that JAX would compile for a request, in float32, with the weights in it."""
    import jax

    from rnnbench.backends.jax.network import network, state_size

    x = (request.strategy.chunk, request.batch, request.model.input)
    state = ((state_size(request),),) if request.strategy.state != "none" else ()
    # Lines of Python would be part of the program, and change with every edit.
    jax.config.update("jax_traceback_in_locations_limit", 0)
    arguments = [jax.ShapeDtypeStruct(shape, "float32") for shape in (x, *state)]
    text = jax.jit(network(request)).lower(*arguments).as_text(debug_info=True)
    return Stablehlo(text, x, state)
