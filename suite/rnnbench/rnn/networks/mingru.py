"""minGRU (Feng et al., 2024): layers whose state is a linear recurrence, one on top of the other.

The layers alone: the convolutions, norms and MLPs that published models have around them are left out. So the sizes are
no published model's. The question is what a runtime makes of a recurrence without a product of matrices in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from rnnbench.rnn.composed import ComposedNetwork, Placed
from rnnbench.rnn.layers import MinGru
from rnnbench.rnn.network import Size


class MinGruStack(ComposedNetwork):
    """y is the state of the last layer."""

    network: ClassVar[str] = "mingru"
    sizes: ClassVar[tuple[str, ...]] = ("layers", "hidden", "input")
    input: Size = Field(default=64, description="Size of x at each step.")
    hidden: Size = Field(default=256, description="Units of each layer.")
    layers: Annotated[int, Field(ge=1, le=64)] = Field(default=3, description="Layers, one on top of the other.")

    def compose(self) -> Sequence[Placed]:
        layers = [Placed("layer1", MinGru(self.input, self.hidden))]
        for number in range(2, self.layers + 1):
            layers.append(Placed(f"layer{number}", MinGru(self.hidden, self.hidden), (layers[-1].name,)))
        return layers


FAMILIES = (MinGruStack,)
