"""A compound network as one function: its parts, and its loop as XLA's `while`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from rnnbench.backends.base import Request
from rnnbench.backends.shared import requests_of_parts
from rnnbench.rnn import state_by_array, state_by_layer

State = tuple[jax.Array, ...]
Layers = Callable[[Request, jax.Array, Sequence[State]], tuple[jax.Array, list[State]]]
"""y and every layer's final state of a request's network, as `network.py` makes them."""


class JaxLoop:
    """What the loop of a compound network is written over (`rnn.LoopPrimitives`)."""

    arrays: Any = jnp
    each = staticmethod(lax.scan)
    repeat = staticmethod(lax.while_loop)

    def __init__(self, request: Request, layers: Layers) -> None:
        self._layers = layers
        self._requests = requests_of_parts(request)

    def run(self, part: str, x: jax.Array, state: Mapping[str, jax.Array]) -> tuple[jax.Array, dict[str, jax.Array]]:
        request = self._requests[part]
        rows = {name: list(array) for name, array in state.items()}
        y, final = self._layers(request, x, state_by_layer(request.model, rows))
        return y, {name: jnp.stack(arrays) for name, arrays in state_by_array(request.model, final).items()}
