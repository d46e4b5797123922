"""The layer of a Gated Linear Attention Transformer (Yang et al., 2024), at the size of the paper's 340M model.

`fla/layers/gla.py` of fla-org/flash-linear-attention: the attention, a norm of each head, a SiLU gate, a projection.
The model has 24 of them, with an MLP after each. A layer has 4·d² parameters (section 4.4), and those of its gates and
norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from rnnbench.rnn.composed import ComposedNetwork, Placed
from rnnbench.rnn.layers import Dense, GatedLinearAttention, Product, RootMeanSquareNorm
from rnnbench.rnn.network import Size


class GatedLinearAttentionLayer(ComposedNetwork):
    """x: an embedding of `input` values. y: as many, before they are added to x."""

    network: ClassVar[str] = "gla"
    sizes: ClassVar[tuple[str, ...]] = ("hidden", "keys", "heads", "input")
    input: Size = Field(default=1024, description="Size of x at each step.")
    hidden: Size = Field(default=1024, description="Units of each layer.")
    heads: Size = Field(default=4, description="Heads of an attention. Each has hidden/heads values, and at least one.")
    keys: Size = Field(default=128, description="Keys of a head: the rows of its state.")

    def compose(self) -> Sequence[Placed]:
        attention = GatedLinearAttention(self.input, self.heads, self.keys, max(self.hidden // self.heads, 1))
        width = attention.width
        return [
            Placed("attention", attention),
            Placed("norm", RootMeanSquareNorm(width, self.heads), ("attention",)),
            Placed("gate", Dense(self.input, width, "silu", bias=False)),
            Placed("gated", Product(width), ("norm", "gate")),
            Placed("out", Dense(width, self.input, bias=False), ("gated",)),
        ]


FAMILIES = (GatedLinearAttentionLayer,)
