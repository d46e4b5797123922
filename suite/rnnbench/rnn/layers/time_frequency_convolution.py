"""A convolution over time and frequency, whose state is a ring of the last inputs.

x and y have the channels of the lowest frequency, then those of the next one, and so on. A stream starts from a ring of
zeros, so it is the convolution of the whole sequence after `taps − 1` steps of zeros.
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
from rnnbench.rnn.primitives import ConvolvingPrimitives, LayerBody, MorePrimitives, V, WindowPrimitives, WindowSizes


@dataclass(frozen=True)
class TimeFrequencyConvolution(OverTime):
    """Keras' Conv2D with strides of 1, causal in time and `valid` in frequency, and an activation."""

    frequencies: int
    channels: int
    """Channels of a frequency of x."""
    filters: int
    """Channels of a frequency of y."""
    taps: int
    """Steps that one y sees, the present one included; at least 2."""
    span: int
    """Frequencies that one y sees; at most those of x."""
    activation: Activation = "linear"

    @property
    def input(self) -> int:
        return self.frequencies * self.channels

    @property
    def sizes(self) -> WindowSizes:
        return WindowSizes(self.taps, self.frequencies, self.channels, self.span)

    @property
    def frequencies_after(self) -> int:
        return self.sizes.places

    @property
    def width(self) -> int:
        return self.frequencies_after * self.filters

    @property
    def cost(self) -> LayerCost:
        operations = self.width * (2 * self.sizes.seen + ACTIVATION_OPERATIONS[self.activation])
        return LayerCost(step_weights=self.filters * (self.sizes.seen + 1), operations=operations)

    def weight_specs(self) -> Iterator[WeightSpec]:
        """weight [filters, channels, taps, span] and bias [filters], uniform in ±1/√seen as torch initialises them."""
        bound = 1 / math.sqrt(self.sizes.seen)
        yield WeightSpec("weight", (self.filters, self.channels, self.taps, self.span), bound)
        yield WeightSpec("bias", (self.filters,), bound)

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return _Body(ops, self, weights)

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        windows = windows_reference(state["ring"], x)
        steps, taps, batch, _ = windows.shape
        seen = windows.reshape(steps, taps, batch, self.frequencies, self.channels).transpose(0, 2, 4, 1, 3)
        convolve = a.affine(weights["weight"].reshape(self.filters, -1), weights["bias"])
        y = [
            convolve(seen[..., lowest : lowest + self.span].reshape(steps, batch, -1))
            for lowest in range(self.frequencies_after)
        ]
        return activated_reference(a, self.activation, np.concatenate(y, axis=2)), {"ring": rings_reference(windows)}


class _Body(OverTimeBody[V]):
    """A product for each frequency of y, of what it sees of each step side by side; or one of all; or a convolution."""

    def __init__(self, ops: MorePrimitives[V], kind: TimeFrequencyConvolution, weights: Arrays) -> None:
        super().__init__(ops, kind)
        self.kind = kind
        self.kernel = weights["weight"], weights["bias"]
        self.weight = ops.constant(weights["weight"].transpose(2, 3, 1, 0).reshape(-1, kind.filters))
        copies = 1 if isinstance(ops, WindowPrimitives) else kind.frequencies_after
        self.bias = ops.constant(np.tile(weights["bias"], copies))

    def of_window(self, window: V) -> V:
        ops, kind = self.ops, self.kind
        if isinstance(ops, ConvolvingPrimitives):
            y: V = ops.convolution(window, *self.kernel, kind.frequencies)
            return activated(self.ops, kind.activation, y)
        if isinstance(ops, WindowPrimitives):
            seen: V = ops.windows(window, kind.sizes)
            y = ops.reshape(ops.add(ops.matmul(seen, self.weight), self.bias), -1, kind.width)
            return activated(ops, kind.activation, y)
        frequencies = [
            ops.matmul(self._seen_columns(window, lowest), self.weight) for lowest in range(kind.frequencies_after)
        ]
        y = frequencies[0] if len(frequencies) == 1 else ops.concat(frequencies)
        return activated(ops, kind.activation, ops.add(y, self.bias))

    def _seen_columns(self, window: V, lowest: int) -> V:
        kind = self.kind
        if kind.span == kind.frequencies:
            return window
        starts = [tap * kind.input + lowest * kind.channels for tap in range(kind.taps)]
        return self.ops.concat([self.ops.columns(window, s, s + kind.span * kind.channels) for s in starts])
