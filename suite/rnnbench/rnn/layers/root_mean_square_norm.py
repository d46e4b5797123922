"""Normalisation of each step by its root mean square, in groups of columns: y = x/√(mean(x²) + ε)·gamma.

Zhang and Sennrich, 2019. `RMSNorm` of fla-org/flash-linear-attention, by head with one gamma for all of them, and of
state-spaces/mamba, over all columns. It has no state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.layers.base import Arrays, LayerCost, LayerKind, Projection
from rnnbench.rnn.network import WeightSpec
from rnnbench.rnn.primitives import LayerBody, MorePrimitives, V

EPSILON = 1e-5


@dataclass(frozen=True)
class RootMeanSquareNorm(LayerKind):
    """torch.nn.RMSNorm of `width`/`groups` columns at a time, with ε = 1e-5."""

    width: int
    groups: int = 1

    @property
    def input(self) -> int:
        return self.width

    @property
    def cost(self) -> LayerCost:
        return LayerCost(hoistable_weights=self._size, operations=4 * self.width + 2 * self.groups)

    def weight_specs(self) -> Iterator[WeightSpec]:
        """gamma [width/groups], uniform in ±1."""
        yield WeightSpec("gamma", (self._size,), 1.0)

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        scale = weights["gamma"]
        gamma, epsilon = ops.constant(scale), ops.constant(np.full(scale.shape, EPSILON, scale.dtype))

        def project(x: V) -> V:
            if self.groups > 1:
                x = ops.reshape(x, -1, self._size)
            root = ops.sqrt(ops.add(ops.mean(ops.mul(x, x)), epsilon))
            y = ops.mul(ops.div(x, root), gamma)
            return y if self.groups == 1 else ops.reshape(y, -1, self.width)

        return Projection(project)

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        by_group = np.kron(np.eye(self.groups), np.full((1, self._size), 1 / self._size))
        mean = np.repeat(a.product(by_group)(a(x * x)), self._size, axis=-1)
        root = a(np.sqrt(a(mean + a.cast(np.array(EPSILON)))))
        return a(a(x / root) * np.tile(a.cast(weights["gamma"]), self.groups)), {}

    @property
    def _size(self) -> int:
        return self.width // self.groups
