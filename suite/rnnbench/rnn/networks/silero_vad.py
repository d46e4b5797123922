"""Silero VAD: whether there is speech in 32 ms of sound, 31 times a second.

Source: `src/silero_vad/tinygrad_model.py` of the repository snakers4/silero-vad (its version 5, at 16 kHz). 309,633
parameters. All of it runs in the network, the Fourier transform too. The published model is given the last 64 samples
of the step before with every step; here they are a state of the network. For 8 kHz the input is 256.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Self

from pydantic import Field

from rnnbench.rnn.composed import ComposedNetwork, Placed
from rnnbench.rnn.layers import ActivationLayer, Context, Dense, FrameConvolution, Recurrent, Spectrum
from rnnbench.rnn.network import Size
from rnnbench.rnn.spec import Model

PARTS = 8
"""A step has 8 parts of as many samples. The context is one of them, a hop two, a frame four, the padding one."""


class SileroVad(ComposedNetwork):
    """x: 512 new samples. y: the probability of speech."""

    network: ClassVar[str] = "silero-vad"
    step_seconds: ClassVar[float | None] = 0.032
    input: Annotated[Size, Field(multiple_of=PARTS)] = Field(default=512, description="Size of x at each step.")
    hidden: Size = Field(default=128, description="Units of the LSTM; of filters, as many or half.")

    def compose(self) -> Sequence[Placed]:
        part, size, half = self.input // PARTS, self.hidden, (self.hidden + 1) // 2
        spectrum = Spectrum(self.input + part, 4 * part, 2 * part, part)
        convolutions: list[Placed] = []
        frames, channels, reads = spectrum.frames, spectrum.bins, "spectrum"
        for number, (filters, stride) in enumerate([(size, 1), (half, 2), (half, 2), (size, 1)], start=1):
            kind = FrameConvolution(frames, channels, filters, stride, "relu")
            convolutions.append(Placed(f"conv{number}", kind, (reads,)))
            frames, channels, reads = kind.frames_after, filters, f"conv{number}"
        lstm = Recurrent(Model(cell="lstm", input=size, hidden=size))
        return [
            Placed("context", Context(self.input, part)),
            Placed("spectrum", spectrum, ("context",)),
            *convolutions,
            Placed("lstm", lstm, ("conv4",)),
            Placed("relu", ActivationLayer(size, "relu"), ("lstm",)),
            Placed("speech", Dense(size, 1, "sigmoid"), ("relu",)),
        ]

    def smaller(self) -> Iterator[Self]:
        for network in super().smaller():
            if network.input % PARTS == 0:
                yield network


FAMILIES = (SileroVad,)
