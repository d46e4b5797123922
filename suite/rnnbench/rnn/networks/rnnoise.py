"""RNNoise: noise suppression for speech, 100 frames of 10 ms a second.

Source: the network of the repository xiph/rnnoise (`torch/rnnoise/rnnoise.py`, 2024); Valin, 2018, for its idea. Two
convolutions over time, three GRUs, and two heads that read the second convolution and all GRUs: 32 gains of bands and
the probability of speech. 1,341,729 parameters. Its features and its filter bank run outside of the network.

The published Python code gives y only where a convolution has seen three steps. Here, as in the published C code, a
stream starts from zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from rnnbench.rnn.composed import ComposedNetwork, Placed
from rnnbench.rnn.layers import Dense, Recurrent, TimeConvolution
from rnnbench.rnn.network import Size
from rnnbench.rnn.spec import Model

TAPS = 3
GRUS = 3
BANDS = 32


class RNNoise(ComposedNetwork):
    """x: 65 features of a frame. y: 32 gains, then the probability of speech."""

    network: ClassVar[str] = "rnnoise"
    step_seconds: ClassVar[float | None] = 0.01
    input: Size = Field(default=65, description="Size of x at each step.")
    hidden: Size = Field(default=256, description="Units of each layer.")

    def compose(self) -> Sequence[Placed]:
        size = self.hidden
        half = (size + 1) // 2
        layers = [
            Placed("conv1", TimeConvolution(self.input, half, TAPS, "tanh")),
            Placed("conv2", TimeConvolution(half, size, TAPS, "tanh"), ("conv1",)),
        ]
        for number in range(1, GRUS + 1):
            gru = Recurrent(Model(cell="gru", input=size, hidden=size))
            layers.append(Placed(f"gru{number}", gru, (layers[-1].name,)))
        reads = ("conv2", *(f"gru{number}" for number in range(1, GRUS + 1)))
        width = size * len(reads)
        return [
            *layers,
            Placed("gains", Dense(width, BANDS, "sigmoid"), reads),
            Placed("speech", Dense(width, 1, "sigmoid"), reads),
        ]

    def gives(self) -> tuple[str, ...]:
        return ("gains", "speech")


FAMILIES = (RNNoise,)
