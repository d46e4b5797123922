"""DTLN: noise suppression for speech in two programs, 125 frames of 8 ms a second.

Source: `DTLN_model.py` of the repository breizhn/DTLN (its stateful models 1 and 2); Westhausen and Meyer, 2020. Both
together have 986,753 parameters. Each program has a core of two LSTMs and a mask. The host's loop
(`real_time_processing.py`) has what runs outside, between and after the two programs: the Fourier transform, the
product of the first mask with the spectrum, the inverse transform, and the sum of overlapping frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from rnnbench.rnn.composed import ComposedNetwork, Placed
from rnnbench.rnn.layers import Dense, InstantNorm, Product, Recurrent
from rnnbench.rnn.network import Size
from rnnbench.rnn.spec import Model


class Dtln1(ComposedNetwork):
    """x: magnitudes of the 257 bins of a frame. y: a mask for them. 362,369 parameters."""

    network: ClassVar[str] = "dtln-1"
    step_seconds: ClassVar[float | None] = 0.008
    input: Size = Field(default=257, description="Size of x at each step.")
    hidden: Size = Field(default=128, description="Units of each LSTM.")

    def compose(self) -> Sequence[Placed]:
        return _mask(self.input, self.hidden, ())


class Dtln2(ComposedNetwork):
    """x: a frame of 512 samples. y: the frame without noise. 624,384 parameters.

    A frame is encoded as 256 values, which are twice the units of an LSTM here. The mask is computed from their
    normalised values, and multiplied with them.
    """

    network: ClassVar[str] = "dtln-2"
    step_seconds: ClassVar[float | None] = 0.008
    input: Size = Field(default=512, description="Size of x at each step.")
    hidden: Size = Field(default=128, description="Units of each LSTM.")

    def compose(self) -> Sequence[Placed]:
        encoded = 2 * self.hidden
        return [
            Placed("encoder", Dense(self.input, encoded, bias=False)),
            Placed("norm", InstantNorm(encoded), ("encoder",)),
            *_mask(encoded, self.hidden, ("norm",)),
            Placed("masked", Product(encoded), ("encoder", "mask")),
            Placed("decoder", Dense(encoded, self.input, bias=False), ("masked",)),
        ]


def _mask(size: int, hidden: int, reads: tuple[str, ...]) -> list[Placed]:
    """The separation core: two LSTMs of Keras, and a mask of what they read."""
    return [
        Placed("lstm1", _lstm(size, hidden), reads),
        Placed("lstm2", _lstm(hidden, hidden), ("lstm1",)),
        Placed("mask", Dense(hidden, size, "sigmoid"), ("lstm2",)),
    ]


def _lstm(size: int, hidden: int) -> Recurrent:
    return Recurrent(Model(cell="lstm", input=size, hidden=hidden), single_bias=True)


FAMILIES = (Dtln1, Dtln2)
