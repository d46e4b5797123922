"""Layers whose state is a ring: the inputs of the last steps, the oldest first."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from rnnbench.rnn.layers.base import LayerKind
from rnnbench.rnn.linear import LinearBody, Steps
from rnnbench.rnn.primitives import MorePrimitives, V


class OverTime(LayerKind):
    """A layer whose y sees the present step and the `taps` − 1 steps before. A stream starts from a ring of zeros.

    A ring only moves on, so its state is linear in itself. Many steps at once see windows of one long row of inputs.
    """

    taps: int
    """At least 2."""

    @property
    def projected(self) -> int:
        return self.input

    @property
    def is_linear(self) -> bool:
        return True

    @property
    def states(self) -> dict[str, int]:
        return {"ring": (self.taps - 1) * self.input}


class OverTimeBody(LinearBody[V]):
    """Moves the ring on by a step, and gives its content to `of_window`."""

    def __init__(self, ops: MorePrimitives[V], kind: OverTime) -> None:
        self.ops = ops
        self.input, self.taps = kind.input, kind.taps

    def project(self, x: V) -> V:
        return x

    def advance(self, projected: V, state: tuple[V, ...]) -> tuple[V, tuple[V, ...]]:
        window = self.ops.concat([*state, projected])
        return self.of_window(window), (self.ops.columns(window, self.input, self.taps * self.input),)

    def scanned(self, projected: V, state: tuple[V, ...], steps: int, batch: int) -> Steps[V]:
        ops, before = self.ops, self.taps - 1
        every = ops.stacked([*ops.split(state[0], before), projected])
        window = ops.concat([ops.rows(every, tap * batch, (tap + steps) * batch) for tap in range(self.taps)])
        last = [ops.rows(every, step * batch, (step + 1) * batch) for step in range(steps, steps + before)]
        return self.of_window(window), (last[0] if before == 1 else ops.concat(last),)

    def block(self, projected: V, state: tuple[V, ...], steps: int, batch: int) -> Steps[V]:
        return self.scanned(projected, state, steps, batch)

    @abstractmethod
    def of_window(self, window: V) -> V:
        """y from the inputs of `taps` steps side by side [rows, taps·input], the oldest first."""


def windows_reference(ring: np.ndarray, x: np.ndarray) -> np.ndarray:
    """What each step sees of x [steps, batch, size] after a ring [batch, (taps − 1)·size] of the steps before.

    [steps, taps, batch, size], the oldest tap first.
    """
    steps, batch, size = x.shape
    before = np.moveaxis(ring.reshape(batch, -1, size), 1, 0)
    padded = np.concatenate([before, x])
    return np.stack([padded[step : step + len(before) + 1] for step in range(steps)])


def rings_reference(windows: np.ndarray) -> np.ndarray:
    """The ring after each step, [steps, batch, (taps − 1)·size], from `windows_reference`."""
    return windows[:, 1:].transpose(0, 2, 1, 3).reshape(len(windows), windows.shape[2], -1)
