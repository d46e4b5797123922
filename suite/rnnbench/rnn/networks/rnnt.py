"""RNN-T: speech recognition while somebody speaks, as MLPerf Inference had it.

Source: `retired_benchmarks/speech_recognition/rnnt/pytorch/` of mlcommons/inference; Graves, 2012, for its idea. The
three networks have 45,323,037 parameters together. Outside of them run the features of the sound, the stacking of two
steps of the first encoder into one of the second, and the search. For each step of the second encoder, the search calls
the decoder until the most likely symbol is the blank. It keeps the decoder's new state after every other symbol.

A symbol in x is a row of 28 zeros and ones, since x has no indices: its product with the embedding is the embedding of
the symbol. Only zeros stand for the start, as in the source. Numbers that are drawn for a run are no such rows; a dense
layer takes as long for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Self

from pydantic import Field

from rnnbench.rnn.composed import ComposedNetwork, Placed
from rnnbench.rnn.layers import Columns, Dense, Recurrent
from rnnbench.rnn.network import Size
from rnnbench.rnn.spec import Model

SYMBOLS = 28
"""Symbols that are said. The logits have one more, for the blank."""
JOINT = 512
"""Units of the layer that joins what was heard and what was said."""
Layers = Annotated[int, Field(ge=1, le=64)]


class _Encoder(ComposedNetwork):
    """LSTMs one on top of the other. The family `stack` has the same, and runtimes have operators for it."""

    sizes: ClassVar[tuple[str, ...]] = ("layers", "hidden", "input")
    input: Size
    hidden: Size
    layers: Layers

    def compose(self) -> Sequence[Placed]:
        return _lstms(self.layers, self.input, self.hidden, ())


class RnntEncoder1(_Encoder):
    """x: three frames of 80 features. y: what the second encoder reads, two steps side by side."""

    network: ClassVar[str] = "rnnt-encoder-1"
    step_seconds: ClassVar[float | None] = 0.03
    input: Size = Field(default=240, description="Size of x at each step.")
    hidden: Size = Field(default=1024, description="Units of each LSTM.")
    layers: Layers = Field(default=2, description="LSTMs, one on top of the other.")


class RnntEncoder2(_Encoder):
    """x: two steps of the first encoder side by side. y: what the decoder reads of the sound."""

    network: ClassVar[str] = "rnnt-encoder-2"
    step_seconds: ClassVar[float | None] = 0.06
    input: Size = Field(default=2048, description="Size of x at each step.")
    hidden: Size = Field(default=1024, description="Units of each LSTM.")
    layers: Layers = Field(default=3, description="LSTMs, one on top of the other.")


class RnntDecoder(ComposedNetwork):
    """The prediction of the next symbol and the joint. x: the last symbol, then y of the second encoder. y: logits."""

    network: ClassVar[str] = "rnnt-decoder"
    input: Annotated[Size, Field(gt=SYMBOLS)] = Field(default=SYMBOLS + 1024, description="Size of x at each step.")
    hidden: Size = Field(default=320, description="Units of each LSTM, and size of the embedding.")

    def compose(self) -> Sequence[Placed]:
        heard, predicted = self.input - SYMBOLS, self.hidden
        return [
            Placed("symbol", Columns(self.input, 0, SYMBOLS)),
            Placed("embedding", Dense(SYMBOLS, predicted, bias=False), ("symbol",)),
            *_lstms(2, predicted, predicted, ("embedding",)),
            Placed("sound", Columns(self.input, SYMBOLS, self.input)),
            Placed("joint", Dense(heard + predicted, JOINT, "relu"), ("sound", "lstm2")),
            Placed("logits", Dense(JOINT, SYMBOLS + 1), ("joint",)),
        ]

    def smaller(self) -> Iterator[Self]:
        for network in super().smaller():
            if network.input > SYMBOLS:
                yield network


def _lstms(number: int, size: int, hidden: int, reads: tuple[str, ...]) -> list[Placed]:
    layers: list[Placed] = []
    for index in range(1, number + 1):
        layers.append(Placed(f"lstm{index}", Recurrent(Model(cell="lstm", input=size, hidden=hidden)), reads))
        size, reads = hidden, (layers[-1].name,)
    return layers


FAMILIES = (RnntEncoder1, RnntEncoder2, RnntDecoder)
