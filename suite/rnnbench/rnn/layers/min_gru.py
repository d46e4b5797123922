"""minGRU: a GRU whose gate and candidate do not read the state, so that the state is a linear recurrence.

Feng et al., 2024 ("Were RNNs All We Needed?"), section 3.1: z = σ(W_z·x + b_z), h̃ = W_h·x + b_h,
h' = (1 − z)·h + z·h̃. Nothing is multiplied by a matrix after the projection of x.

Many steps at once take the gate 1 − z as σ(−W_z·x − b_z), or the logarithm of that: a difference from 1 would lose the
digits of a gate near 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.layers.base import Arrays, LayerCost, LayerKind, activated_reference
from rnnbench.rnn.linear import LinearBody, Steps, decays, last_rows, scan, started
from rnnbench.rnn.network import WeightSpec
from rnnbench.rnn.primitives import LayerBody, MorePrimitives, V


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
    def is_linear(self) -> bool:
        return True

    @property
    def cost(self) -> LayerCost:
        rows = 2 * self.width
        operations = 2 * rows * self.input + 4 * self.width
        return LayerCost(hoistable_weights=rows * (self.input + 1), operations=operations)

    def weight_specs(self) -> Iterator[WeightSpec]:
        """weight [2·width, input] and bias [2·width], the rows of z before those of h̃; uniform in ±1/√input."""
        bound = 1 / math.sqrt(self.input)
        yield WeightSpec("weight", (2 * self.width, self.input), bound)
        yield WeightSpec("bias", (2 * self.width,), bound)

    def pinning_rows(self, weights: Arrays, units: np.ndarray) -> np.ndarray:
        """1 − z = σ(−W_z·x − b_z)."""
        rows: np.ndarray = -weights["weight"][units % self.width]
        return rows

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return _Body(ops, self.width, weights)

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        h, hs = state["h"], []
        for step in a.affine(weights["weight"], weights["bias"])(x):
            z, candidate = activated_reference(a, "sigmoid", step[:, : self.width]), step[:, self.width :]
            h = a(a(a(1 - z) * h) + a(z * candidate))
            hs.append(h)
        y = np.stack(hs)
        return y, {"h": y}


class _Body(LinearBody[V]):
    def __init__(self, ops: MorePrimitives[V], width: int, weights: Arrays) -> None:
        self.ops = ops
        self.width = width
        self.weight = ops.constant(weights["weight"].T)
        self.bias = ops.constant(weights["bias"])
        self.dtype = weights["bias"].dtype

    def project(self, x: V) -> V:
        return self.ops.add(self.ops.matmul(x, self.weight), self.bias)

    def advance(self, projected: V, state: tuple[V, ...]) -> tuple[V, tuple[V, ...]]:
        ops, (h,) = self.ops, state
        z, candidate = ops.split(projected, 2)
        h = ops.add(h, ops.mul(ops.sigmoid(z), ops.sub(candidate, h)))
        return h, (h,)

    def scanned(self, projected: V, state: tuple[V, ...], steps: int, batch: int) -> Steps[V]:
        ops, (h,) = self.ops, state
        z, candidate = ops.split(projected, 2)
        gates = ops.reshape(ops.sigmoid(self._negated(z)), steps, batch * self.width)
        drive = ops.reshape(ops.mul(ops.sigmoid(z), candidate), steps, batch * self.width)
        drive = started(ops, gates, drive, ops.reshape(h, 1, batch * self.width), steps)
        return self._by_row(scan(ops, gates, drive, steps, batch * self.width), steps, batch)

    def block(self, projected: V, state: tuple[V, ...], steps: int, batch: int) -> Steps[V]:
        ops, (h,) = self.ops, state
        z, candidate = ops.split(projected, 2)
        log_gates = ops.reshape(ops.log_sigmoid(self._negated(z)), steps, batch * self.width)
        # Row 0 is the state before the block, and the rows after it are what each step adds.
        sources = ops.stacked([h, ops.mul(ops.sigmoid(z), candidate)])
        sources = ops.reshape(sources, 1 + steps, batch * self.width)
        left = decays(ops, log_gates, steps, self.dtype)
        return self._by_row(ops.einsum("tsm,sm->tm", left, sources), steps, batch)

    def _negated(self, z: V) -> V:
        return self.ops.mul(z, self.ops.constant(np.full(self.width, -1, self.dtype)))

    def _by_row(self, h: V, steps: int, batch: int) -> Steps[V]:
        """y and the last state of h [steps, batch·width]."""
        y = self.ops.reshape(h, steps * batch, self.width)
        return y, (last_rows(self.ops, y, steps, batch),)
