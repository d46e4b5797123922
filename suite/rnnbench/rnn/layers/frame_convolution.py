"""A convolution over the frames of one step, with a frame of zeros before and after them. It has no state.

x and y have the channels of the first frame, then those of the second one, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple

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
from rnnbench.rnn.network import WeightSpec
from rnnbench.rnn.primitives import LayerBody, MorePrimitives, V

TAPS = 3


class Window(NamedTuple):
    """The frames of x that one frame of y sees."""

    first_tap: int
    """The first tap that sees a frame. Taps before it see zeros."""
    frame: int
    """The frame that this tap sees."""
    taps: int
    """How many taps see a frame."""


@dataclass(frozen=True)
class FrameConvolution(LayerKind):
    """torch.nn.Conv1d over frames, with a kernel of 3 and a padding of 1, and an activation."""

    frames: int
    channels: int
    """Channels of a frame of x."""
    filters: int
    """Channels of a frame of y."""
    stride: int = 1
    activation: Activation = "linear"

    @property
    def input(self) -> int:
        return self.frames * self.channels

    @property
    def frames_after(self) -> int:
        return (self.frames - 1) // self.stride + 1

    @property
    def width(self) -> int:
        return self.frames_after * self.filters

    @property
    def cost(self) -> LayerCost:
        """The cost of the taps that see frames. Those that see zeros need no reading and no operation."""
        windows = self.windows()
        taps = {tap for window in windows for tap in range(window.first_tap, window.first_tap + window.taps)}
        seen = sum(window.taps for window in windows) * self.channels
        operations = self.filters * 2 * seen + self.width * ACTIVATION_OPERATIONS[self.activation]
        return LayerCost(hoistable_weights=self.filters * (len(taps) * self.channels + 1), operations=operations)

    def windows(self) -> list[Window]:
        """The window of each frame of y."""
        columns = []
        for middle in range(0, self.frames, self.stride):
            first, last = max(middle - 1, 0), min(middle + 1, self.frames - 1)
            columns.append(Window(first - middle + 1, first, last - first + 1))
        return columns

    def weight_specs(self) -> Iterator[WeightSpec]:
        """weight [filters, channels, 3] and bias [filters], uniform in ±1/√(3·channels) as torch initialises them."""
        bound = 1 / math.sqrt(TAPS * self.channels)
        yield WeightSpec("weight", (self.filters, self.channels, TAPS), bound)
        yield WeightSpec("bias", (self.filters,), bound)

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return Projection(_Frames(ops, self, weights).project)

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        frames = x.reshape(*x.shape[:2], self.frames, self.channels)
        padded = np.pad(frames, ((0, 0), (0, 0), (1, 1), (0, 0)))
        convolve = a.affine(weights["weight"].reshape(self.filters, -1), weights["bias"])
        y = [
            convolve(padded[:, :, start : start + TAPS].swapaxes(2, 3).reshape(*x.shape[:2], -1))
            for start in range(0, self.frames, self.stride)
        ]
        return activated_reference(a, self.activation, np.concatenate(y, axis=2)), {}


class _Frames(Generic[V]):
    def __init__(self, ops: MorePrimitives[V], kind: FrameConvolution, weights: Arrays) -> None:
        self.ops = ops
        self.kind = kind
        by_tap = weights["weight"].transpose(2, 1, 0)
        seen = {(window.first_tap, window.taps) for window in kind.windows()}
        self.weights = {
            (first, count): ops.constant(by_tap[first : first + count].reshape(-1, kind.filters))
            for first, count in sorted(seen)
        }
        self.bias = ops.constant(weights["bias"])

    def project(self, x: V) -> V:
        frames = [self._frame(x, window) for window in self.kind.windows()]
        return frames[0] if len(frames) == 1 else self.ops.concat(frames)

    def _frame(self, x: V, window: Window) -> V:
        ops, size = self.ops, self.kind.channels
        first, end = window.frame * size, (window.frame + window.taps) * size
        seen = x if window.taps == self.kind.frames else ops.columns(x, first, end)
        product = ops.matmul(seen, self.weights[window.first_tap, window.taps])
        return activated(ops, self.kind.activation, ops.add(product, self.bias))
