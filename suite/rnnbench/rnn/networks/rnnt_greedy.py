"""RNN-T with its greedy search: three programs, and a loop that decides how often one of them is called.

The loop is in the host. With `search: program` it is in the program, where a runtime can.

Source: `retired_benchmarks/speech_recognition/rnnt/pytorch/decoders.py` of mlcommons/inference (`RNNTGreedyDecoder`);
Graves, 2012. For each step of the second encoder, the decoder is called with the last symbol until the most likely
symbol is the blank, at most 30 times. Its new state is kept after every other symbol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.compound import (
    Arrays,
    CompoundNetwork,
    LoopPrimitives,
    Part,
    Stream,
    joined,
    one_after_the_other,
    side_by_side,
)
from rnnbench.rnn.network import Size, WeightSpec, halved, label_of
from rnnbench.rnn.networks.rnnt import SYMBOLS, RnntDecoder, RnntEncoder1, RnntEncoder2
from rnnbench.rnn.reference import Trajectory
from rnnbench.rnn.weights import Weights

STACKED = 2
"""Steps of the first encoder that the second one reads at once."""
BLANK = SYMBOLS
NO_SYMBOL = -1.0
GAIN = 8.0
"""Factor of the bounds of weights, except those that multiply a state. As PyTorch initialises them, five LSTMs forget
what they hear: the scores of symbols change by 0.0006 from step to step, and one symbol has the best score at all."""


class Rnnt(CompoundNetwork):
    """x: six frames of 80 features. y: the symbols of the step, filled up with −1, then the decoder's last logits.

    Symbols of a batch are decided row by row: a row that has its blank keeps its state while others go on.
    """

    network: ClassVar[str] = "rnnt"
    step_seconds: ClassVar[float | None] = 0.06
    input: Annotated[Size, Field(multiple_of=STACKED)] = Field(default=480, description="Size of x at each step.")
    hidden: Size = Field(default=1024, description="Units of each LSTM of the encoders.")
    prediction: Size = Field(default=320, description="Units of each LSTM of the decoder.")
    max_symbols: Annotated[int, Field(ge=1, le=100)] = Field(default=30, description="Most symbols of a step.")
    blank_bias: float = Field(
        default=14.0,
        ge=-1000.0,
        le=1000.0,
        description="Added to the blank's score in the search: drawn weights have no reason to prefer it.",
    )

    search: Literal["host", "program"] = Field(
        default="host", description="Where the loop of the search runs: in the host, or in the program."
    )

    @property
    def width(self) -> int:
        return self.max_symbols + SYMBOLS + 1

    @property
    def label(self) -> str:
        return label_of(self)

    @property
    def parts(self) -> tuple[Part, ...]:
        heard = self.hidden
        return (
            Part("encoder1", RnntEncoder1(input=self.input // STACKED, hidden=heard), STACKED),
            Part("encoder2", RnntEncoder2(input=STACKED * heard, hidden=heard), 1),
            Part("decoder", RnntDecoder(input=SYMBOLS + heard, hidden=self.prediction), None),
        )

    @property
    def carried(self) -> Mapping[str, int]:
        """The last symbol, as the decoder reads it: a row of zeros and a one; only zeros for the start."""
        return {"symbol": SYMBOLS}

    @property
    def in_program(self) -> bool:
        return self.search == "program"

    @property
    def reference_work(self) -> int:
        """A step calls Python some hundred times, whatever the sizes."""
        return self.weight_count + 1_000_000

    @property
    def longest_reference(self) -> int:
        return 256

    def weight_specs(self) -> Iterator[WeightSpec]:
        for spec in super().weight_specs():
            is_gained = "weight" in spec.name and not spec.name.endswith("weight_hh")
            yield spec._replace(bound=spec.bound * GAIN) if is_gained else spec

    def smaller(self) -> Iterator[Self]:
        for network in halved(self, ("hidden", "prediction", "input", "max_symbols")):
            if network.input % STACKED == 0:
                yield network

    def advance(
        self, streams: Mapping[str, Stream], x: np.ndarray, carried: Arrays
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        frames = one_after_the_other(np, x, STACKED)
        heard = streams["encoder2"].step(side_by_side(np, streams["encoder1"].step(frames), STACKED))
        y = np.full((*x.shape[:2], self.width), NO_SYMBOL, x.dtype)
        symbol = carried["symbol"][0]
        for of_step, decided in zip(heard, y, strict=True):
            symbol = self._search(streams["decoder"], of_step, symbol, decided)
        return y, {"symbol": symbol[None].copy()}

    def _search(self, decoder: Stream, heard: np.ndarray, symbol: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Fill y [batch, width] of one step, and return the last symbols [batch, SYMBOLS]."""
        rows = np.eye(SYMBOLS + 1, SYMBOLS, dtype=y.dtype)
        going = np.ones(len(y), bool)
        for number in range(self.max_symbols):
            before = decoder.get_state()
            logits = decoder.step(np.concatenate([symbol, heard], axis=1)[None])[0]
            y[going, self.max_symbols :] = logits[going]
            best = self._best(logits)
            going &= best != BLANK
            y[going, number] = best[going]
            symbol = np.where(going[:, None], rows[best], symbol)
            if not going.all():
                after = decoder.get_state()
                decoder.set_state({name: np.where(going[:, None], after[name], before[name]) for name in after})
            if not going.any():
                break
        return symbol

    def _best(self, logits: np.ndarray) -> np.ndarray:
        scores = logits.copy()
        scores[:, BLANK] += self.blank_bias
        best: np.ndarray = scores.argmax(axis=1)
        return best

    def advance_in_program(self, loop: LoopPrimitives, x: Any, state: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        first, second, decoder = self.parts
        frames = one_after_the_other(loop.arrays, x, STACKED)
        low, after_low = loop.run(first.name, frames, self.arrays_of(first, state))
        stacked = side_by_side(loop.arrays, low, STACKED)
        high, after_high = loop.run(second.name, stacked, self.arrays_of(second, state))
        decoder_state = state["symbol"][0], self.arrays_of(decoder, state)
        (symbol, after), y = loop.each(
            lambda kept, heard: self._search_in_program(loop, kept, heard), decoder_state, high
        )
        states = joined([(first, after_low), (second, after_high), (decoder, after)])
        return y, {**states, "symbol": symbol[None]}

    def _search_in_program(self, loop: LoopPrimitives, said: Any, heard: Any) -> tuple[Any, Any]:
        """Search one step. Returns the last symbol with the decoder's state, and y."""
        xp = loop.arrays
        bias = xp.asarray(np.where(np.arange(SYMBOLS + 1) == BLANK, self.blank_bias, 0.0), dtype=heard.dtype)
        numbers, names = xp.arange(self.max_symbols), xp.arange(SYMBOLS)

        def going(kept: Any) -> Any:
            count, active, *_ = kept
            return (count < self.max_symbols) & (xp.sum(active) > 0)

        def call(kept: Any) -> Any:
            count, active, symbol, state, symbols, logits = kept
            called, after = loop.run("decoder", xp.concat([symbol, heard], axis=1)[None], state)
            logits = xp.where(active > 0, called[0], logits)
            best = xp.argmax(called[0] + bias, axis=1)[:, None]
            active = xp.where(best != BLANK, active, 0)
            symbols = xp.where((active > 0) & (numbers == count), xp.asarray(best, dtype=symbols.dtype), symbols)
            symbol = xp.where(active > 0, xp.asarray(names == best, dtype=symbol.dtype), symbol)
            state = {name: xp.where(active > 0, after[name], state[name]) for name in state}
            return count + 1, active, symbol, state, symbols, logits

        batch = heard.shape[0]
        symbols = xp.full((batch, self.max_symbols), NO_SYMBOL, dtype=heard.dtype)
        logits = xp.zeros((batch, SYMBOLS + 1), dtype=heard.dtype)
        active = xp.ones((batch, 1), dtype=xp.int32)  # IREE 3.13 does not compile a loop that carries truth values
        start = xp.asarray(0), active, *said, symbols, logits
        _, _, symbol, state, symbols, logits = loop.repeat(going, call, start)
        return (symbol, state), xp.concat([symbols, logits], axis=1)

    def run(
        self, arithmetic: Arithmetic, weights: Weights, x: np.ndarray, state: Mapping[str, np.ndarray]
    ) -> Trajectory:
        """Both encoders over all steps, and then the search, as the pseudo-code of Graves has it."""
        first, second, decoder = self.parts
        steps = len(x)
        low = self._run(first, arithmetic, weights, one_after_the_other(np, x, STACKED), state)
        high = self._run(second, arithmetic, weights, side_by_side(np, low.y, STACKED), state)
        searched = _Search(self, arithmetic, self.weights_of(decoder, weights), self.arrays_of(decoder, state))
        symbol = state["symbol"][0]
        results = []
        for step in range(steps):
            y, symbol, margin = searched.step(high.y[step], symbol)
            results.append((y, {**searched.state, "symbol": symbol[None]}, margin))
        assert low.states is not None
        assert high.states is not None
        after = {name: np.stack([kept[name] for _, kept, _ in results]) for name in [*searched.state, "symbol"]}
        states = joined(
            [
                (first, {name: array[STACKED - 1 :: STACKED] for name, array in low.states.items()}),
                (second, high.states),
                (decoder, {name: after[name] for name in searched.state}),
            ]
        )
        states = {
            name: array.astype(arithmetic.stored) for name, array in (states | {"symbol": after["symbol"]}).items()
        }
        return Trajectory(
            np.stack([y for y, _, _ in results]).astype(arithmetic.stored),
            {name: array[-1] for name, array in states.items()},
            states,
            np.stack([margin for _, _, margin in results]),
        )

    def _run(self, part: Part, arithmetic: Arithmetic, weights: Weights, x: np.ndarray, state: Arrays) -> Trajectory:
        return part.network.run(arithmetic, self.weights_of(part, weights), x, self.arrays_of(part, state))


class _Search:
    """The reference's search: all rows are computed at every call, and each keeps what it had once it has its blank."""

    def __init__(self, network: Rnnt, arithmetic: Arithmetic, weights: Weights, state: dict[str, np.ndarray]) -> None:
        self.network, self.arithmetic, self.weights, self.state = network, arithmetic, weights, state
        self.decoder = network.parts[-1].network

    def step(self, heard: np.ndarray, symbol: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """y [batch, width], the last symbols, and by how much the closest decision of each row [batch] was made."""
        batch, most = len(heard), self.network.max_symbols
        symbols = np.full((batch, most), NO_SYMBOL)
        logits, margin = np.zeros((batch, SYMBOLS + 1)), np.full(batch, np.inf)
        active = np.full(batch, True)
        count = 0
        while active.any() and count < most:
            x = np.concatenate([symbol, heard], axis=1)[None]
            called = self.decoder.run(self.arithmetic, self.weights, x, self.state)
            scores = called.y[0].astype(np.float64)
            logits[active] = scores[active]
            scores[:, BLANK] = scores[:, BLANK] + self.network.blank_bias
            second, first = np.sort(scores, axis=1)[:, -2:].T
            margin[active] = np.minimum(margin, first - second)[active]
            winner = np.argmax(scores, axis=1)
            active = active & (winner < BLANK)
            for row in np.flatnonzero(active):
                symbols[row, count] = winner[row]
                symbol = symbol.copy()
                symbol[row] = np.arange(SYMBOLS) == winner[row]
            for name, array in called.final.items():
                self.state = {**self.state, name: np.where(active[:, None], array, self.state[name])}
            count += 1
        return np.concatenate([symbols, logits], axis=1), symbol, margin


FAMILIES = (Rnnt,)
