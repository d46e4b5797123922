"""Magnitudes of a short-time Fourier transform, as a convolution over the samples of one step. It has no state.

Source: `src/silero_vad/tinygrad_model.py` of snakers4/silero-vad. x is a piece of sound. It is continued at its end by
its own reflection. Frames of `window` samples, `hop` samples apart, are multiplied by a basis, which has the real parts
of all frequencies and then the imaginary parts. y has the magnitudes of the first frame, of the second one, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.layers.base import Arrays, LayerCost, LayerKind, Projection
from rnnbench.rnn.network import WeightSpec
from rnnbench.rnn.primitives import FramePrimitives, LayerBody, MorePrimitives, V


@dataclass(frozen=True)
class Spectrum(LayerKind):
    """y [frames · bins]: √(real² + imaginary²) of each frame."""

    input: int
    window: int
    """Samples of a frame: an even number, at least the padding and at most `input`."""
    hop: int
    padding: int
    """Samples of the reflection, fewer than `input`."""

    @property
    def bins(self) -> int:
        """Frequencies, from 0 to half of the sampling rate."""
        return self.window // 2 + 1

    @property
    def frames(self) -> int:
        return (self.input + self.padding - self.window) // self.hop + 1

    @property
    def width(self) -> int:
        return self.frames * self.bins

    @property
    def ends(self) -> list[tuple[int, int]]:
        """The first sample of each frame, and the one after its last, of those that are in x."""
        starts = range(0, self.frames * self.hop, self.hop)
        return [(start, min(start + self.window, self.input)) for start in starts]

    @property
    def cost(self) -> LayerCost:
        """Samples beyond x are its own, so a frame that reaches there is a product with fewer rows of the basis."""
        seen = sum(stop - start for start, stop in self.ends)
        operations = self.bins * (4 * seen + 4 * self.frames)
        return LayerCost(hoistable_weights=2 * self.bins * self.window, operations=operations)

    def weight_specs(self) -> Iterator[WeightSpec]:
        """basis [2·bins, window], uniform in ±1/√window as torch initialises it; trained ones are sines and cosines."""
        yield WeightSpec("basis", (2 * self.bins, self.window), 1 / math.sqrt(self.window))

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return Projection(_Frames(ops, self, weights["basis"].T).project)

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        padded = np.pad(x, ((0, 0), (0, 0), (0, self.padding)), mode="reflect")
        transform, magnitudes = a.product(weights["basis"]), []
        for start in range(0, self.frames * self.hop, self.hop):
            both = transform(padded[..., start : start + self.window])
            squares = a(both * both)
            magnitudes.append(a(np.sqrt(a(squares[..., : self.bins] + squares[..., self.bins :]))))
        return np.concatenate(magnitudes, axis=2), {}


class _Frames(Generic[V]):
    """A frame that reaches beyond x is a product with a basis that is folded at the end of x.

    The frames before are one product where a route is better so.
    """

    def __init__(self, ops: MorePrimitives[V], kind: Spectrum, basis: np.ndarray) -> None:
        self.ops = ops
        self.kind = kind
        lengths = {stop - start for start, stop in kind.ends}
        self.bases = {length: ops.constant(_folded(basis, length)) for length in sorted(lengths)}

    def project(self, x: V) -> V:
        ops, kind = self.ops, self.kind
        whole = [start for start, stop in kind.ends if stop - start == kind.window]
        magnitudes, rest = [], kind.ends
        if isinstance(ops, FramePrimitives) and len(whole) > 1:
            frames = [self.ops.columns(x, start, start + kind.window) for start in whole]
            joined = self.ops.reshape(self.ops.concat(frames), -1, kind.window)
            magnitudes = [self.ops.reshape(self._magnitudes(joined, kind.window), -1, len(whole) * kind.bins)]
            rest = kind.ends[len(whole) :]
        magnitudes += [self._magnitudes(self.ops.columns(x, *ends), ends[1] - ends[0]) for ends in rest]
        return magnitudes[0] if len(magnitudes) == 1 else self.ops.concat(magnitudes)

    def _magnitudes(self, frames: V, length: int) -> V:
        ops = self.ops
        real, imaginary = ops.split(ops.matmul(frames, self.bases[length]), 2)
        return ops.sqrt(ops.add(ops.mul(real, real), ops.mul(imaginary, imaginary)))


def _folded(basis: np.ndarray, length: int) -> np.ndarray:
    """The basis [window, n] for frames of which x has `length` samples: the rows beyond are added to their mirrors."""
    folded = basis[:length].copy()
    for beyond in range(len(basis) - length):
        folded[length - 2 - beyond] += basis[length + beyond]
    return folded
