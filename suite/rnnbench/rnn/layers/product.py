"""The product of two layers, value by value: a mask on what it is a mask of. It has no weights and no state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.layers.base import Arrays, LayerCost, LayerKind, Projection
from rnnbench.rnn.primitives import LayerBody, MorePrimitives, V


@dataclass(frozen=True)
class Product(LayerKind):
    """Reads two layers of `width` columns side by side."""

    width: int

    @property
    def input(self) -> int:
        return 2 * self.width

    @property
    def cost(self) -> LayerCost:
        return LayerCost(operations=self.width)

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return Projection(lambda x: ops.mul(*ops.split(x, 2)))

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        return a(x[..., : self.width] * x[..., self.width :]), {}
