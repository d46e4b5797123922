"""Keyword spotting: 12 words, a frame of sound every 20 ms.

Source: kws_streaming of google-research/google-research (`kws_streaming/models/`, 2020); Rybakov et al., 2020, for its
figures. The sizes are those of `experiments/kws_experiments_paper_12_labels.md`. x is the MFCC of a frame of 40 ms: its
computation runs outside of the network. y is the logits of the 12 labels after each frame. A network that is fed whole
clips gives only the last of them. Dropout, which does nothing here, is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Self

from pydantic import Field

from rnnbench.rnn.composed import ComposedNetwork, Placed
from rnnbench.rnn.layers import (
    Dense,
    DepthwiseTimeConvolution,
    PeepholeLstm,
    Recurrent,
    TimeFrequencyConvolution,
)
from rnnbench.rnn.network import Size
from rnnbench.rnn.spec import Model

LABELS = 12
HEADS = (128, 256)
"""Units of the two dense layers between the GRU and the labels."""
KERNELS = ((3, 3), (5, 3))
"""Steps and frequencies that each of the CRNN's convolutions sees."""
FEWEST_FREQUENCIES = 1 + sum(span - 1 for _, span in KERNELS)
MEMORIES = (4, 10, 10, 10, 10, 10)
"""Steps that each of the SVDF's layers sees."""


class KwsGru(ComposedNetwork):
    """A GRU and three dense layers: the published `gru`, with 593,836 parameters."""

    network: ClassVar[str] = "kws-gru"
    step_seconds: ClassVar[float | None] = 0.02
    input: Size = Field(default=20, description="Size of x at each step.")
    hidden: Size = Field(default=400, description="Units of the GRU.")

    def compose(self) -> Sequence[Placed]:
        return _gru_and_labels(self.input, self.hidden, ())


class KwsCrnn(ComposedNetwork):
    """Two convolutions over time and frequency, a GRU, three dense layers: the published `crnn`, 467,772 parameters."""

    network: ClassVar[str] = "kws-crnn"
    step_seconds: ClassVar[float | None] = 0.02
    sizes: ClassVar[tuple[str, ...]] = ("hidden", "filters", "input")
    input: Annotated[Size, Field(ge=FEWEST_FREQUENCIES)] = Field(
        default=20, description="Size of x at each step: its frequencies."
    )
    filters: Size = Field(default=16, description="Channels of each convolution.")
    hidden: Size = Field(default=256, description="Units of the GRU.")

    def compose(self) -> Sequence[Placed]:
        layers: list[Placed] = []
        frequencies, channels = self.input, 1
        for number, (taps, span) in enumerate(KERNELS, start=1):
            kind = TimeFrequencyConvolution(frequencies, channels, self.filters, taps, span, "relu")
            layers.append(Placed(f"convolution{number}", kind, (layers[-1].name,) if layers else ()))
            frequencies, channels = kind.frequencies_after, self.filters
        return [*layers, *_gru_and_labels(frequencies * channels, self.hidden, (layers[-1].name,))]

    def smaller(self) -> Iterator[Self]:
        for network in super().smaller():
            if network.input >= FEWEST_FREQUENCIES:
                yield network


class KwsLstm(ComposedNetwork):
    """An LSTM with peepholes and a projection: the published `lstm_peep`, with 545,912 parameters."""

    network: ClassVar[str] = "kws-lstm"
    step_seconds: ClassVar[float | None] = 0.02
    sizes: ClassVar[tuple[str, ...]] = ("hidden", "projection", "input")
    input: Size = Field(default=20, description="Size of x at each step.")
    hidden: Size = Field(default=500, description="Units of the LSTM.")
    projection: Size = Field(default=200, description="Size to which the LSTM's h is projected.")

    def compose(self) -> Sequence[Placed]:
        return [
            Placed("lstm", PeepholeLstm(self.input, self.hidden, self.projection)),
            Placed("labels", Dense(self.projection, LABELS), ("lstm",)),
        ]


class KwsSvdf(ComposedNetwork):
    """Six layers of a dense layer, a convolution over time and a bottleneck: `svdf`, with 354,444 parameters.

    Nakkiran et al., 2015, for the idea: a layer over time and frequency as one over each. The last one has no
    bottleneck. Its state is the last frames of each convolution.
    """

    network: ClassVar[str] = "kws-svdf"
    step_seconds: ClassVar[float | None] = 0.02
    input: Size = Field(default=30, description="Size of x at each step.")
    hidden: Size = Field(default=256, description="Channels of each convolution. Bottlenecks have half of them.")

    def compose(self) -> Sequence[Placed]:
        size, half = self.hidden, (self.hidden + 1) // 2
        layers: list[Placed] = []
        for number, taps in enumerate(MEMORIES, start=1):
            reads = (layers[-1].name,) if layers else ()
            layers += [
                Placed(f"frequency{number}", Dense(half if reads else self.input, size, bias=False), reads),
                Placed(f"time{number}", DepthwiseTimeConvolution(size, taps, "relu"), (f"frequency{number}",)),
            ]
            if number < len(MEMORIES):
                layers.append(Placed(f"bottleneck{number}", Dense(size, half), (f"time{number}",)))
        return [*layers, Placed("labels", Dense(size, LABELS), (layers[-1].name,))]


def _gru_and_labels(size: int, hidden: int, reads: tuple[str, ...]) -> list[Placed]:
    first, second = HEADS
    return [
        Placed("gru", Recurrent(Model(cell="gru", input=size, hidden=hidden)), reads),
        Placed("dense1", Dense(hidden, first), ("gru",)),
        Placed("dense2", Dense(first, second, "relu"), ("dense1",)),
        Placed("labels", Dense(second, LABELS), ("dense2",)),
    ]


FAMILIES = (KwsGru, KwsLstm, KwsSvdf, KwsCrnn)
