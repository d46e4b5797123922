"""A request as cuDNN's LSTM, which JAX reaches by `jax.experimental.rnn`: `fused` on CUDA.

Importing this module registers the operator with XLA. An executable that is loaded needs that, too.

Source: jax/experimental/rnn.py, which has the layout of weights, and lengths of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import rnn
from jax.experimental.layout import Layout, with_layout_constraint

from rnnbench.backends.base import Request
from rnnbench.rnn import Model, Weights

NO_DROPOUT = 0.0


def fused_step(request: Request) -> Callable[..., tuple[jax.Array, ...]]:
    """`step(x)` → (y,) from zeros, `step(x, lengths)` where rows have any; or `step(x, state)` → (y, state)."""
    model, streams = request.stack, request.strategy.state != "none"
    shapes = model.state_shapes(request.batch)
    sizes = [prod(shape) for shape in shapes.values()]
    constant = _flat(model, request.weights)

    def run(x: jax.Array, state: jax.Array, lengths: jax.Array) -> tuple[jax.Array, jax.Array]:
        h, c = (part.reshape(shape) for part, shape in zip(jnp.split(state, sizes[:1]), shapes.values(), strict=True))
        y, h, c = rnn.lstm(
            _in_order(x.transpose(1, 0, 2)),
            h,
            c,
            jnp.asarray(constant),
            lengths,
            model.input,
            model.hidden,
            model.layers,
            NO_DROPOUT,
            model.direction == "bidirectional",
            lax.Precision.HIGHEST,
        )
        return _in_order(y).transpose(1, 0, 2), jnp.concatenate([h.ravel(), c.ravel()])

    def whole(x: jax.Array) -> jax.Array:
        return jnp.full((x.shape[1],), x.shape[0], jnp.int32)

    if streams:
        return lambda x, state: run(x, state, whole(x))
    return lambda x, *lengths: run(x, jnp.zeros(sum(sizes), x.dtype), lengths[0] if lengths else whole(x))[:1]


def _in_order(array: jax.Array) -> jax.Array:
    """An array of three axes that lies in memory as its shape says, which cuDNN's operator takes for granted.

    The operator names no layout, so that XLA leaves a transposition beside it out. cuDNN then takes batches for steps
    (docs/upstream/jax-cudnn-layout.md).
    """
    return with_layout_constraint(array, Layout(major_to_minor=(0, 1, 2)))


def _flat(model: Model, weights: Weights) -> np.ndarray:
    """Every layer's matrices, and then every layer's biases, as cuDNN has them: gates i f g o, two biases each."""
    return np.concatenate([array.ravel() for array in _arrays(model, weights)]).astype(np.float32)


def _arrays(model: Model, weights: Weights) -> Iterator[np.ndarray]:
    rows = [weights.row(index) for index in range(model.layers * model.directions)]
    for row in rows:
        yield row.w_ih
        yield row.w_hh
    for row in rows:
        for bias in (row.b_ih, row.b_hh):
            yield np.zeros(len(row.w_hh)) if bias is None else bias
