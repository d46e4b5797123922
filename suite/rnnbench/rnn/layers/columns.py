"""Some columns of x: one of several values that x has side by side. The layer has no weights and no state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.layers.base import Arrays, LayerCost, LayerKind, Projection
from rnnbench.rnn.primitives import LayerBody, MorePrimitives, V


@dataclass(frozen=True)
class Columns(LayerKind):
    """The columns from `start` up to `stop`."""

    input: int
    start: int
    stop: int

    @property
    def width(self) -> int:
        return self.stop - self.start

    @property
    def cost(self) -> LayerCost:
        return LayerCost()

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return Projection(lambda x: ops.columns(x, self.start, self.stop))

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        return x[..., self.start : self.stop], {}
