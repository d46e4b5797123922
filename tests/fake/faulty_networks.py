"""Adapters that are wrong in networks of other families, a search that decides and linear recurrences, and in the last
of many rows or layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from honest_adapter import HonestSession
from planted import RAGGED, fault

from rnnbench.rnn import Model, Weights, joined, run_reference
from rnnbench.rnn.networks.gla import GatedLinearAttentionLayer
from rnnbench.rnn.networks.mamba2 import Mamba2Block
from rnnbench.rnn.networks.mingru import MinGruStack
from rnnbench.rnn.networks.rnnt_greedy import BLANK, NO_SYMBOL, Rnnt

# Many rows, many layers.


@fault("repeat", batch=9)
class TheLastNumberOfTheNinthRowIsOfTheCallBefore(HonestSession):
    """Vectors of eight rows, and a rest that is written too late."""

    late = None

    def compute(self, x):
        y = super().compute(x)
        late, self.late = self.late, y[:, 8:, -1:].copy()
        if late is not None and late.shape == self.late.shape:
            y[:, 8:, -1:] = late
        return y


@fault("values", model=Model(cell="lstm", input=3, hidden=4, layers=3, projection=2))
class TheThirdLayerIsProjectedAsTheSecond(HonestSession):
    def __init__(self, program):
        super().__init__(program)
        first, second, third = self.weights.layers
        self.weights = Weights((first, second, replace(third, w_hr=second.w_hr)))


@fault("bound", **{**RAGGED, "model": Model(cell="lstm", input=3, hidden=4, layers=2, direction="bidirectional")})
class ReplaysHaveTheLengthsThatWereRecorded(HonestSession):
    """Of each chunk of a ring in its first pass, and of the ring's first chunk in later ones."""

    def _bind_ragged(self, ring):
        bound = super()._bind_ragged(ring)
        take, (_, lengths) = bound._next, ring[0]

        def take_recorded():
            x, own = take()
            return x, own if bound.calls <= len(ring) else lengths

        bound._next = take_recorded
        return bound


# A search: the symbols of a step decide what the next one reads.

SEARCH = {
    "model": Rnnt(input=16, hidden=6, prediction=6, blank_bias=6, max_symbols=2),
    "batch": 2,
    "chunk": 2,
}


class PartStream:
    """A part of the network, as its loop sees it."""

    def __init__(self, session, part):
        self.network = part.network
        self.weights = session.model.weights_of(part, session.weights)
        self.state = session.model.arrays_of(part, session.state)
        self.before = self.state
        self.get_state = lambda: self.state

    def step(self, x):
        self.before = self.state
        run = run_reference(self.network, self.weights, x, self.state, dtype="float32")
        self.state = run.final
        return run.y

    def set_state(self, state):
        self.state = state


class Searches(HonestSession):
    """Runs the loop over the parts. `searching` is the network whose loop it is."""

    searching: type[Rnnt] = Rnnt

    def compute(self, x):
        parts = self.model.parts
        streams = {part.name: PartStream(self, part) for part in parts}
        network = self.searching.model_validate(self.model.model_dump())
        y, carried = network.advance(streams, x, {"symbol": self.symbol()})
        self.state = {**joined([(part, streams[part.name].state) for part in parts]), **carried}
        return y

    def symbol(self):
        return self.state["symbol"]


@fault("values", **SEARCH)
class OneSymbolLessThanTheLimit(Searches):
    def compute(self, x):
        most = self.model.max_symbols
        self.model = self.model.model_copy(update={"max_symbols": most - 1})
        y = super().compute(x)
        self.model = self.model.model_copy(update={"max_symbols": most})
        return np.insert(y, most - 1, NO_SYMBOL, axis=2)


class ForgetsTheLastOfTheLimit(Rnnt):
    def _search(self, decoder, heard, symbol, y):
        symbol = super()._search(decoder, heard, symbol, y)
        if (y[:, self.max_symbols - 1] >= 0).all():
            decoder.set_state(decoder.before)
        return symbol


@fault("values", **SEARCH)
class TheLastSymbolOfTheLimitLeavesNoState(Searches):
    searching = ForgetsTheLastOfTheLimit


class DecidesForAllRows(Rnnt):
    def _best(self, logits):
        best = super()._best(logits)
        return np.full_like(best, BLANK) if (best == BLANK).any() else best


@fault("values", **SEARCH)
class ABlankEndsTheSearchOfAllRows(Searches):
    searching = DecidesForAllRows


class KeepsTheStateOfABlank(Rnnt):
    def _search(self, decoder, heard, symbol, y):
        decoder.set_state = lambda _state: None
        return super()._search(decoder, heard, symbol, y)


@fault("values", **SEARCH)
class ABlankChangesTheState(Searches):
    searching = KeepsTheStateOfABlank


@fault("chunks", **SEARCH)
class ACallBeginsWithTheSymbolOfTheCallBefore(Searches):
    """Not with the last one: that is still on its way."""

    late = None

    def symbol(self):
        symbol, self.late = self.late, super().symbol()
        return self.late if symbol is None else symbol


@fault("reset", **SEARCH)
class AResetKeepsTheSymbol(Searches):
    def reset(self):
        symbol = self.state.get("symbol")
        super().reset()
        if symbol is not None:
            self.state["symbol"] = symbol


# Linear recurrences: blocks of steps, and a state that goes from block to block.


class InBlocks(HonestSession):
    """Blocks of three steps. The last one of a call may be shorter."""

    block = 3

    def compute(self, x):
        outputs = []
        for first in range(0, len(x), self.block):
            before, part = self.state, x[first : first + self.block]
            outputs.append(super().compute(part))
            self.state = self.after_block(before, is_first=first == 0, is_last=first + self.block >= len(x))
        return np.concatenate(outputs)

    def after_block(self, before, *, is_first, is_last):
        """The state that the next block begins with."""
        return self.state


LINEAR = {"batch": 2, "chunk": 8}
ATTENTION = {**LINEAR, "model": GatedLinearAttentionLayer(input=6, hidden=8, heads=2, keys=3)}
MAMBA = {**LINEAR, "model": Mamba2Block(input=6, hidden=8, heads=4, keys=3)}
MINGRU = {**LINEAR, "model": MinGruStack(input=5, hidden=6, layers=2)}


@fault("values", **ATTENTION)
class APartOfABlockLeavesTheStateOfTheBlockBefore(InBlocks):
    def after_block(self, before, *, is_first, is_last):
        return before if is_last and not is_first else self.state


@fault("values", **ATTENTION)
class AStateDecaysTwiceBetweenBlocks(InBlocks):
    def after_block(self, before, *, is_first, is_last):
        return self.state if is_last else {name: array * np.float32(0.999) for name, array in self.state.items()}


@fault("state", **ATTENTION)
class TheStatesOfTwoHeadsAreNamedForEachOther(InBlocks):
    """Both where they are read and where they are set."""

    def _read_state(self):
        return self.exchanged(super()._read_state())

    def _write_state(self, state):
        super()._write_state(self.exchanged(state))

    @staticmethod
    def exchanged(state):
        return {name: np.roll(array, array.shape[-1] // 2, axis=-1) for name, array in state.items()}


@fault("start", **MAMBA)
class TheSecondHeadIsSetToTheFirst(InBlocks):
    def _write_state(self, state):
        state = {name: array.copy() for name, array in state.items()}
        heads = np.split(state["ssd_s"], self.model.heads, axis=-1)
        heads[1][...] = heads[0]
        super()._write_state(state)


@fault("values", **MAMBA)
class TheInputsOfAConvolutionMoveOnceMoreAfterALastBlock(InBlocks):
    def after_block(self, before, *, is_first, is_last):
        moves = is_last and not is_first
        return {
            name: np.roll(array, 1, axis=-1) if moves and name.startswith("conv") else array
            for name, array in self.state.items()
        }


@fault("values", **MINGRU, steps=20)
class AScanBeginsAnewAfterEightSteps(InBlocks):
    """A call of fewer has one part alone."""

    block = 5

    def after_block(self, before, *, is_first, is_last):
        return self.state if is_last else {name: np.zeros_like(array) for name, array in self.state.items()}


@fault("contents", **ATTENTION)
class SilenceLeavesTheStateAsItIs(InBlocks):
    """Zeros add nothing to the state, and their y is zero. But it decays."""

    def compute(self, x):
        return super().compute(x) if x.any() else np.zeros_like(x)
