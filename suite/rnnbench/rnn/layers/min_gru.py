"""minGRU: a GRU whose gate and candidate do not read the state, so that the state is a linear recurrence.

Feng et al., 2024 ("Were RNNs All We Needed?"), section 3.1: z = σ(W_z·x + b_z), h̃ = W_h·x + b_h,
h' = (1 − z)·h + z·h̃. Nothing is multiplied by a matrix after the projection of x.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.cells import LayerBody, MorePrimitives
from rnnbench.rnn.layers.base import Arrays, LayerKind, activated_reference
from rnnbench.rnn.network import WeightSpec

V = TypeVar("V")


@dataclass(frozen=True)
class MinGru(LayerKind):
    """y is the state h."""

    input: int
    width: int

    @property
    def projected(self) -> int:
        return 2 * self.width

    @property
    def states(self) -> dict[str, int]:
        return {"h": self.width}

    @property
    def cost(self) -> tuple[int, int, int]:
        rows = 2 * self.width
        return rows * (self.input + 1), 0, 2 * rows * self.input + 4 * self.width

    def weight_specs(self) -> Iterator[WeightSpec]:
        """weight [2·width, input] and bias [2·width], the rows of z before those of h̃; uniform in ±1/√input."""
        bound = 1 / math.sqrt(self.input)
        yield WeightSpec("weight", (2 * self.width, self.input), bound)
        yield WeightSpec("bias", (2 * self.width,), bound)

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return _Body(ops, weights)

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        h, hs = state["h"], []
        for step in a.affine(weights["weight"], weights["bias"])(x):
            z, candidate = activated_reference(a, "sigmoid", step[:, : self.width]), step[:, self.width :]
            h = a(a(a(1 - z) * h) + a(z * candidate))
            hs.append(h)
        y = np.stack(hs)
        return y, {"h": y}


class _Body(LayerBody[V]):
    def __init__(self, ops: MorePrimitives[V], weights: Arrays) -> None:
        self.ops = ops
        self.weight = ops.constant(weights["weight"].T)
        self.bias = ops.constant(weights["bias"])

    def project(self, x: V) -> V:
        return self.ops.add(self.ops.matmul(x, self.weight), self.bias)

    def advance(self, projected: V, state: tuple[V, ...]) -> tuple[V, tuple[V, ...]]:
        ops, (h,) = self.ops, state
        z, candidate = ops.split(projected, 2)
        h = ops.add(h, ops.mul(ops.sigmoid(z), ops.sub(candidate, h)))
        return h, (h,)
