"""An activation as a layer, after a layer that has none of its own. It has no weights and no state."""

from __future__ import annotations

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
from rnnbench.rnn.primitives import LayerBody, MorePrimitives, V


@dataclass(frozen=True)
class ActivationLayer(LayerKind):
    """y = activation(x), as of torch.nn.ReLU or torch.nn.SiLU."""

    width: int
    activation: Activation

    @property
    def input(self) -> int:
        return self.width

    @property
    def cost(self) -> LayerCost:
        return LayerCost(operations=ACTIVATION_OPERATIONS[self.activation] * self.width)

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return Projection(lambda x: activated(ops, self.activation, x))

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        return activated_reference(a, self.activation, x), {}
