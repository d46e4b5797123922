"""A convolution over time, whose state is a ring of the last inputs: y = activation(W · [x of the last steps] + b).

A stream starts from a ring of zeros, so it is the convolution of the whole sequence after `taps − 1` steps of zeros.
"""

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
    activated,
    activated_reference,
)
from rnnbench.rnn.layers.ring import OverTime, OverTimeBody, rings_reference, windows_reference
from rnnbench.rnn.network import WeightSpec
from rnnbench.rnn.primitives import LayerBody, MorePrimitives, V


@dataclass(frozen=True)
class TimeConvolution(OverTime):
    """torch.nn.Conv1d over time, causal, with a stride of 1, and an activation."""

    input: int
    width: int
    taps: int
    """Steps that one y sees, the present one included; at least 2."""
    activation: Activation = "linear"

    @property
    def cost(self) -> LayerCost:
        seen = self.taps * self.input
        operations = self.width * (2 * seen + ACTIVATION_OPERATIONS[self.activation])
        return LayerCost(step_weights=self.width * (seen + 1), operations=operations)

    def weight_specs(self) -> Iterator[WeightSpec]:
        """weight [width, input, taps] and bias [width], uniform in ±1/√(input·taps) as torch initialises them."""
        bound = 1 / math.sqrt(self.input * self.taps)
        yield WeightSpec("weight", (self.width, self.input, self.taps), bound)
        yield WeightSpec("bias", (self.width,), bound)

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return _Body(ops, self, weights)

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        windows = windows_reference(state["ring"], x)
        seen = windows.transpose(0, 2, 3, 1).reshape(*x.shape[:2], -1)
        y = a.affine(weights["weight"].reshape(self.width, -1), weights["bias"])(seen)
        return activated_reference(a, self.activation, y), {"ring": rings_reference(windows)}


class _Body(OverTimeBody[V]):
    def __init__(self, ops: MorePrimitives[V], kind: TimeConvolution, weights: Arrays) -> None:
        super().__init__(ops, kind)
        self.activation = kind.activation
        by_tap = weights["weight"].transpose(2, 1, 0)
        self.weight = ops.constant(by_tap.reshape(-1, kind.width))
        self.bias = ops.constant(weights["bias"])

    def of_window(self, window: V) -> V:
        ops = self.ops
        return activated(ops, self.activation, ops.add(ops.matmul(window, self.weight), self.bias))
