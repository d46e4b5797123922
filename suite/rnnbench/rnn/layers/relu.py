"""A relu by itself, for a layer before it that has no activation of its own. It has no weights and no state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.cells import LayerBody, MorePrimitives
from rnnbench.rnn.layers.base import Arrays, LayerKind, Projection

V = TypeVar("V")


@dataclass(frozen=True)
class Relu(LayerKind):
    """y = max(x, 0)."""

    width: int

    @property
    def input(self) -> int:
        return self.width

    @property
    def cost(self) -> tuple[int, int, int]:
        return 0, 0, self.width

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return _Body(ops)

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        return np.maximum(x, 0), {}


class _Body(Projection[V]):
    def __init__(self, ops: MorePrimitives[V]) -> None:
        self.ops = ops

    def project(self, x: V) -> V:
        return self.ops.relu(x)
