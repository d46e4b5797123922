"""Normalisation of each step by its own mean and variance: y = (x − mean)/√(variance + ε)·gamma + beta.

Source: `InstantLayerNormalization` in `DTLN_model.py` of breizhn/DTLN (Luo and Mesgarani, 2018). It has no state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.layers.base import Arrays, LayerCost, LayerKind, Projection
from rnnbench.rnn.network import WeightSpec
from rnnbench.rnn.primitives import LayerBody, MorePrimitives, V

EPSILON = 1e-7


@dataclass(frozen=True)
class InstantNorm(LayerKind):
    """torch.nn.functional.layer_norm over the columns, with ε = 1e-7."""

    width: int

    @property
    def input(self) -> int:
        return self.width

    @property
    def cost(self) -> LayerCost:
        return LayerCost(hoistable_weights=2 * self.width, operations=7 * self.width + 2)

    def weight_specs(self) -> Iterator[WeightSpec]:
        """gamma [width] and beta [width], uniform in ±1."""
        yield WeightSpec("gamma", (self.width,), 1.0)
        yield WeightSpec("beta", (self.width,), 1.0)

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        scale = weights["gamma"]
        gamma, beta = ops.constant(scale), ops.constant(weights["beta"])
        epsilon = ops.constant(np.full(scale.shape, EPSILON, scale.dtype))

        def project(x: V) -> V:
            centred = ops.sub(x, ops.mean(x))
            variance = ops.mean(ops.mul(centred, centred))
            deviation = ops.sqrt(ops.add(variance, epsilon))
            return ops.add(ops.mul(ops.div(centred, deviation), gamma), beta)

        return Projection(project)

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        mean_of = a.product(np.full((1, self.width), 1 / self.width))
        centred = a(x - mean_of(x))
        deviation = a(np.sqrt(a(mean_of(a(centred * centred)) + a.cast(np.array(EPSILON)))))
        return a(a(a(centred / deviation) * a.cast(weights["gamma"])) + a.cast(weights["beta"])), {}
