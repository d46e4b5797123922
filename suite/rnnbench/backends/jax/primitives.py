"""The primitives of layers in jax.numpy."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from rnnbench.rnn import WithOperators, contraction

Step = tuple[jax.Array, jax.Array]


class JaxPrimitives(WithOperators):
    """Constants have the network's dtype and become part of the executable."""

    def __init__(self, dtype: np.dtype[np.generic]) -> None:
        self._dtype = dtype

    def constant(self, array: np.ndarray) -> jax.Array:
        return jnp.asarray(np.ascontiguousarray(array, self._dtype))

    def matmul(self, x: jax.Array, weight: jax.Array) -> jax.Array:
        return jnp.matmul(x, weight)

    def sigmoid(self, x: jax.Array) -> jax.Array:
        return jax.nn.sigmoid(x)

    def tanh(self, x: jax.Array) -> jax.Array:
        return jnp.tanh(x)

    def relu(self, x: jax.Array) -> jax.Array:
        return jax.nn.relu(x)

    def clip(self, x: jax.Array, bound: float) -> jax.Array:
        return jnp.clip(x, -bound, bound)

    def split(self, x: jax.Array, parts: int) -> list[jax.Array]:
        return jnp.split(x, parts, axis=1)

    def concat(self, parts: Sequence[jax.Array]) -> jax.Array:
        return jnp.concatenate(parts, axis=1)

    def sqrt(self, x: jax.Array) -> jax.Array:
        return jnp.sqrt(x)

    def mean(self, x: jax.Array) -> jax.Array:
        return jnp.broadcast_to(x.mean(axis=1, keepdims=True), x.shape)

    def exp(self, x: jax.Array) -> jax.Array:
        return jnp.exp(x)

    def log_sigmoid(self, x: jax.Array) -> jax.Array:
        return jax.nn.log_sigmoid(x)

    def cumsum(self, x: jax.Array) -> jax.Array:
        return jnp.cumsum(x, axis=0)

    def stacked(self, parts: Sequence[jax.Array]) -> jax.Array:
        return jnp.concatenate(parts)

    def reshape(self, x: jax.Array, *shape: int) -> jax.Array:
        return x.reshape(shape)

    def einsum(self, equation: str, a: jax.Array, b: jax.Array) -> jax.Array:
        if axes := contraction(equation).row_axes:
            return (jnp.expand_dims(a, axes) @ b)[..., 0, :]
        return jnp.einsum(equation, a, b)

    def linear_scan(self, gates: jax.Array, drive: jax.Array) -> jax.Array:
        """h[t] = gates[t]·h[t − 1] + drive[t] from h[−1] = 0, along the first axis."""
        return jax.lax.associative_scan(_after, (gates, drive))[1]


class ConvolvingPrimitives(JaxPrimitives):
    """For programs that XLA compiles for JAX. An importer of them reads slices and products instead."""

    def convolution(self, x: jax.Array, weight: np.ndarray, bias: np.ndarray, frequencies: int) -> jax.Array:
        """The channels are last, as x has them."""
        taps = weight.shape[2]
        planes = x.reshape(-1, taps, frequencies, weight.shape[1])
        kernel, layout = self.constant(weight.transpose(2, 3, 1, 0)), ("NHWC", "HWIO", "NHWC")
        y = jax.lax.conv_general_dilated(planes, kernel, (1, 1), "VALID", dimension_numbers=layout)
        return (y + self.constant(bias)).reshape(x.shape[0], -1)


def _after(before: Step, step: Step) -> Step:
    """Two steps, each a gate and what it adds, as one."""
    return before[0] * step[0], step[0] * before[1] + step[1]
