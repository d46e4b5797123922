"""A convolution over time of each channel by itself, whose state is a ring of the last inputs.

y = activation(Σ w[tap]·x[step of the tap] + b), for each channel. A stream starts from a ring of zeros.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.layers.base import (
    ACTIVATION_OPERATIONS,
    Activation,
    Arrays,
    LayerCost,
    activated,
    activated_reference,
)
from rnnbench.rnn.layers.ring import OverTime, OverTimeBody, rings_reference, windows_reference
from rnnbench.rnn.linear import OperatorBody, Steps
from rnnbench.rnn.network import WeightSpec
from rnnbench.rnn.primitives import CausalKernel, LayerBody, MorePrimitives, SummingPrimitives, V


@dataclass(frozen=True)
class DepthwiseTimeConvolution(OverTime):
    """torch.nn.Conv1d over time with as many groups as channels, causal, with a stride of 1, and an activation."""

    width: int
    taps: int
    """Steps that one y sees, the present one included; at least 2."""
    activation: Activation = "linear"

    @property
    def input(self) -> int:
        return self.width

    @property
    def cost(self) -> LayerCost:
        operations = self.width * (2 * self.taps + ACTIVATION_OPERATIONS[self.activation])
        return LayerCost(step_weights=self.width * (self.taps + 1), operations=operations)

    @property
    def has_operator(self) -> bool:
        """ONNX's CausalConvWithState, and Mamba's causal_conv1d."""
        return True

    def weight_specs(self) -> Iterator[WeightSpec]:
        """weight [width, taps] and bias [width], uniform in ±1/√taps as torch initialises them."""
        bound = 1 / math.sqrt(self.taps)
        yield WeightSpec("weight", (self.width, self.taps), bound)
        yield WeightSpec("bias", (self.width,), bound)

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return _Body(ops, self, weights)

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        windows, weight = windows_reference(state["ring"], x), a.cast(weights["weight"])
        y = a(windows[:, 0] * weight[:, 0])
        for tap in range(1, self.taps):
            y = a(y + a(windows[:, tap] * weight[:, tap]))
        y = a(y + a.cast(weights["bias"]))
        return activated_reference(a, self.activation, y), {"ring": rings_reference(windows)}


class _Body(OverTimeBody[V], OperatorBody[V]):
    def __init__(self, ops: MorePrimitives[V], kind: DepthwiseTimeConvolution, weights: Arrays) -> None:
        super().__init__(ops, kind)
        self.activation = kind.activation
        self.weight = ops.constant(weights["weight"].T.reshape(-1))
        self.bias = ops.constant(weights["bias"])
        self.kernel = CausalKernel(weights["weight"], weights["bias"], silu=kind.activation == "silu")

    def of_window(self, window: V) -> V:
        ops = self.ops
        products = ops.mul(window, self.weight)
        if isinstance(ops, SummingPrimitives):
            y: V = ops.sum_of_parts(products, self.taps)
        else:
            y = reduce(ops.add, ops.split(products, self.taps))
        return activated(self.ops, self.activation, self.ops.add(y, self.bias))

    def fused(self, projected: V, state: tuple[V, ...], steps: int, batch: int) -> Steps[V]:
        y, ring = self.ops.causal_convolution(projected, state[0], self.kernel, steps, batch)
        return y if self.kernel.silu else activated(self.ops, self.activation, y), (ring,)
