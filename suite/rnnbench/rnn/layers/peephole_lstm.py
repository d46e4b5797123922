"""An LSTM whose gates see the cell state, with a projection of h: LSTMP of Sak et al., 2014, sections 2 and 3.

Equations: TensorFlow 1's `LSTMCell(use_peepholes=True, num_proj=…)`; ONNX's LSTM with its input P, which has no
projection. The constant that TensorFlow adds to the forget gate's bias is part of the bias here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.layers.base import Arrays, LayerCost, LayerKind, activated_reference
from rnnbench.rnn.network import WeightSpec
from rnnbench.rnn.primitives import LayerBody, MorePrimitives, V


@dataclass(frozen=True)
class PeepholeLstm(LayerKind):
    """The input and forget gates see the cell state before the step, the output gate sees the one after it."""

    input: int
    hidden: int
    width: int
    """Size to which h is projected."""

    @property
    def projected(self) -> int:
        return 4 * self.hidden

    @property
    def states(self) -> dict[str, int]:
        return {"h": self.width, "c": self.hidden}

    @property
    def cost(self) -> LayerCost:
        hidden, rows = self.hidden, 4 * self.hidden
        products = 2 * rows * (self.input + self.width) + 2 * self.width * hidden
        gating, peepholes = 9 * hidden, 6 * hidden
        return LayerCost(
            hoistable_weights=rows * (self.input + 1),
            step_weights=rows * self.width + hidden * (3 + self.width),
            operations=products + gating + peepholes,
        )

    def weight_specs(self) -> Iterator[WeightSpec]:
        """Rows in the order i f g o, as PyTorch has them. Uniform in ±1/√hidden."""
        hidden, bound = self.hidden, 1 / math.sqrt(self.hidden)
        yield WeightSpec("weight_ih", (4 * hidden, self.input), bound)
        yield WeightSpec("weight_hh", (4 * hidden, self.width), bound)
        yield WeightSpec("bias", (4 * hidden,), bound)
        for gate in "ifo":
            yield WeightSpec(f"peephole_{gate}", (hidden,), bound)
        yield WeightSpec("weight_hr", (self.width, hidden), bound)

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return _Body(ops, weights)

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        recur, project = a.product(weights["weight_hh"]), a.product(weights["weight_hr"])
        see_i, see_f, see_o = (a.cast(weights[f"peephole_{gate}"]) for gate in "ifo")
        h, c, size = state["h"], state["c"], self.hidden
        hs, cs = [], []
        for from_x in a.affine(weights["weight_ih"], weights["bias"])(x):
            gates = a(from_x + recur(h))
            i, f, g, o = (gates[:, k * size : (k + 1) * size] for k in range(4))
            i = activated_reference(a, "sigmoid", a(i + a(see_i * c)))
            f = activated_reference(a, "sigmoid", a(f + a(see_f * c)))
            c = a(a(f * c) + a(i * activated_reference(a, "tanh", g)))
            o = activated_reference(a, "sigmoid", a(o + a(see_o * c)))
            h = project(a(o * activated_reference(a, "tanh", c)))
            hs.append(h)
            cs.append(c)
        return np.stack(hs), {"h": np.stack(hs), "c": np.stack(cs)}


class _Body(LayerBody[V]):
    def __init__(self, ops: MorePrimitives[V], weights: Arrays) -> None:
        self.ops = ops
        self.w_ih, self.w_hh, self.w_hr = (
            ops.constant(weights[name].T) for name in ("weight_ih", "weight_hh", "weight_hr")
        )
        self.bias = ops.constant(weights["bias"])
        self.see_i, self.see_f, self.see_o = (ops.constant(weights[f"peephole_{gate}"]) for gate in "ifo")

    def project(self, x: V) -> V:
        return self.ops.add(self.ops.matmul(x, self.w_ih), self.bias)

    def advance(self, projected: V, state: tuple[V, ...]) -> tuple[V, tuple[V, ...]]:
        ops, (h, c) = self.ops, state
        i, f, g, o = ops.split(ops.add(ops.matmul(h, self.w_hh), projected), 4)
        i = ops.sigmoid(ops.add(i, ops.mul(c, self.see_i)))
        f = ops.sigmoid(ops.add(f, ops.mul(c, self.see_f)))
        c = ops.add(ops.mul(f, c), ops.mul(i, ops.tanh(g)))
        o = ops.sigmoid(ops.add(o, ops.mul(c, self.see_o)))
        h = ops.matmul(ops.mul(o, ops.tanh(c)), self.w_hr)
        return h, (h, c)
