"""A dense layer: y = activation(x · W + b). It has no state."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.layers.base import (
    ACTIVATION_OPERATIONS,
    Activation,
    Arrays,
    LayerCost,
    LayerKind,
    Projection,
    activated,
    activated_reference,
)
from rnnbench.rnn.network import WeightSpec
from rnnbench.rnn.primitives import LayerBody, MorePrimitives, V


@dataclass(frozen=True)
class Dense(LayerKind):
    """torch.nn.Linear and an activation."""

    input: int
    width: int
    activation: Activation = "linear"
    bias: bool = True

    @property
    def cost(self) -> LayerCost:
        weights = self.width * (self.input + self.bias)
        operations = self.width * (2 * self.input + ACTIVATION_OPERATIONS[self.activation])
        return LayerCost(hoistable_weights=weights, operations=operations)

    def weight_specs(self) -> Iterator[WeightSpec]:
        """weight [width, input] and bias [width], uniform in ±1/√input as torch initialises them."""
        bound = 1 / math.sqrt(self.input)
        yield WeightSpec("weight", (self.width, self.input), bound)
        if self.bias:
            yield WeightSpec("bias", (self.width,), bound)

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        weight = ops.constant(weights["weight"].T)
        bias = ops.constant(weights["bias"]) if self.bias else None

        def project(x: V) -> V:
            product = ops.matmul(x, weight)
            return activated(ops, self.activation, product if bias is None else ops.add(product, bias))

        return Projection(project)

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        return activated_reference(a, self.activation, a.affine(weights["weight"], weights.get("bias"))(x)), {}
