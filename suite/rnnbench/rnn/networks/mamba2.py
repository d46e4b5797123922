"""The block of Mamba-2 (Dao and Gu, 2024), at the size of the published 130M model.

`mamba_ssm/modules/mamba2.py` of state-spaces/mamba: a projection to z, x, B, C and dt, a convolution over 4 steps of x,
B and C, the state space layer, a gated norm and a projection. The model has 24 of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from rnnbench.rnn.composed import ComposedNetwork, Placed
from rnnbench.rnn.layers import (
    ActivationLayer,
    Columns,
    Dense,
    DepthwiseTimeConvolution,
    Product,
    RootMeanSquareNorm,
    StateSpaceDual,
)
from rnnbench.rnn.network import Size, x_towards
from rnnbench.rnn.weights import Weights

TAPS = 4


class Mamba2Block(ComposedNetwork):
    """x: an embedding of `input` values. y: as many, before they are added to x."""

    network: ClassVar[str] = "mamba2"
    sizes: ClassVar[tuple[str, ...]] = ("hidden", "keys", "heads", "input")
    input: Size = Field(default=768, description="Size of x at each step.")
    hidden: Size = Field(default=1536, description="Units of each layer.")
    heads: Size = Field(
        default=24, description="Heads of an attention. Each has hidden/heads values, and at least one."
    )
    keys: Size = Field(default=128, description="Keys of a head: the rows of its state.")

    def compose(self) -> Sequence[Placed]:
        ssd = StateSpaceDual(self.heads, self.keys, max(self.hidden // self.heads, 1))
        width, convolved = ssd.width, ssd.width + 2 * self.keys
        projected = width + convolved + self.heads
        return [
            Placed("in", Dense(self.input, projected, bias=False)),
            Placed("z", Columns(projected, 0, width), ("in",)),
            Placed("xbc", Columns(projected, width, width + convolved), ("in",)),
            Placed("dt", Columns(projected, width + convolved, projected), ("in",)),
            Placed("conv", DepthwiseTimeConvolution(convolved, TAPS, "silu"), ("xbc",)),
            Placed("ssd", ssd, ("conv", "dt")),
            Placed("gate", ActivationLayer(width, "silu"), ("z",)),
            Placed("gated", Product(width), ("ssd", "gate")),
            Placed("norm", RootMeanSquareNorm(width), ("gated",)),
            Placed("out", Dense(width, self.input, bias=False), ("norm",)),
        ]

    def pinning_x(self, weights: Weights, batch: int, preactivation: float) -> np.ndarray:
        """An x that pins one head in each row: its gate exp(−Δ·exp(A_log)) is 1 if dt is far below 0, and 0 far above.

        dt is the last columns of the first projection, which has no bias.
        """
        of_dt = weights.arrays["in_weight"][-self.heads :]
        return x_towards(-of_dt[np.arange(batch) % self.heads], preactivation)


FAMILIES = (Mamba2Block,)
