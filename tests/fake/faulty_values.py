"""Adapters whose network is another one, or whose calls do not meet where they should."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np
from honest_adapter import HonestProgram, HonestSession
from planted import fault

from rnnbench.rnn.weights import Layer, Weights


class OtherWeights(HonestSession):
    """Computes the right network with weights that are not the right ones."""

    def __init__(self, program: HonestProgram) -> None:
        super().__init__(program)
        self.weights = Weights(tuple(self.altered(i, layer) for i, layer in enumerate(self.weights.layers)))

    @abstractmethod
    def altered(self, index: int, layer: Layer) -> Layer:
        """The weights that are used in the place of a layer's own."""

    def gates(self, array: np.ndarray, order: list[int]) -> np.ndarray:
        return np.concatenate([np.split(array, len(order))[gate] for gate in order])


# Values: the network is another one.


@fault("values")
class InputAndForgetGatesSwapped(OtherWeights):
    def altered(self, index, layer):
        swapped = {name: self.gates(getattr(layer, name), [1, 0, 2, 3]) for name in ("w_ih", "w_hh", "b_ih", "b_hh")}
        return replace(layer, **swapped)


@fault("values")
class OutputGateTakesTheCellsRecurrentWeights(OtherWeights):
    def altered(self, index, layer):
        return replace(layer, w_hh=self.gates(layer.w_hh, [0, 1, 2, 2]))


@fault("values")
class RecurrentBiasDropped(OtherWeights):
    def altered(self, index, layer):
        return replace(layer, b_hh=layer.b_hh * 0)


@fault("values")
class OneBiasElementOffByAThousandth(OtherWeights):
    def altered(self, index, layer):
        bias = layer.b_ih.copy()
        bias[-1] += np.float32(1e-3)
        return replace(layer, b_ih=bias)


@fault("values")
class RecurrentWeightsTransposed(OtherWeights):
    def altered(self, index, layer):
        return replace(layer, w_hh=np.concatenate([gate.T for gate in np.split(layer.w_hh, 4)]))


@fault("values", layers=2)
class SecondLayerTakesTheFirstsRecurrentWeights(OtherWeights):
    def altered(self, index, layer):
        return replace(layer, w_hh=self.weights.layers[0].w_hh)


@fault("values", direction="bidirectional", state="none")
class BackwardDirectionRunsForward(HonestSession):
    def compute(self, x):
        forward, _ = np.split(super().compute(x), 2, axis=2)
        _, backward = np.split(super().compute(x[::-1].copy()), 2, axis=2)
        return np.concatenate([forward, backward], axis=2)


@fault("values", cell="gru")
class ResetGateBeforeTheProduct(HonestSession):
    def __init__(self, program):
        super().__init__(program)
        self.model = self.model.model_copy(update={"reset_after": False})


@fault("values")
class CellStateClippedUnasked(HonestSession):
    def __init__(self, program):
        super().__init__(program)
        self.model = self.model.model_copy(update={"cell_clip": 0.05})


@fault("values")
class AccumulatesInHalfPrecision(HonestSession):
    def compute(self, x):
        return super().compute(x).astype(np.float16).astype(np.float32)


@fault("values")
class LastHiddenUnitNotComputed(HonestSession):
    def compute(self, x):
        y = super().compute(x)
        y[..., -1] = 0
        return y


class Counting(HonestSession):
    """Knows how many steps it has run since its state was last set."""

    steps = 0

    def _write_state(self, state):
        self.steps = 0
        super()._write_state(state)

    def compute(self, x):
        y = super().compute(x)
        for index in range(len(y)):
            y[index] = self.corrected(y[index], self.steps + index)
        self.steps += len(x)
        return y

    @abstractmethod
    def corrected(self, y, step):
        """What is given out for the y of a step."""


@fault("values", chunk=1)
class WrongFromTheFourthStep(Counting):
    def corrected(self, y, step):
        return y * np.float32(1.0001 if step >= 3 else 1)


@fault("values", chunk=1)
class WrongInTheEleventhStepAlone(Counting):
    def corrected(self, y, step):
        return y + np.float32(1e-4 if step == 10 else 0)


@fault("values")
class StateReturnedIsBeforeTheLastStep(HonestSession):
    def compute(self, x):
        if len(x) > 1:
            head = super().compute(x[:-1])
            before = self.state
            tail = super().compute(x[-1:])
            self.late = before
            return np.concatenate([head, tail])
        self.late = self.state
        return super().compute(x)

    def _read_state(self):
        return {name: array.copy() for name, array in getattr(self, "late", self.state).items()}


# Chunks: the boundary between calls shows.


@fault("chunks")
class RaggedRestFromZeros(HonestSession):
    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        if rest := len(x) % self._chunk:
            fresh = type(self)(self._program)
            y[-rest:] = np.concatenate([fresh.compute(x[at : at + 1]) for at in range(len(x) - rest, len(x))])
        return y


@fault("chunks")
class RaggedRestDropped(HonestSession):
    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        y[len(x) - len(x) % self._chunk :] = 0
        return y


@fault("chunks")
class StateAfterARaggedRestIsLost(HonestSession):
    def _in_chunks(self, x):
        before = self._read_state()
        y = super()._in_chunks(x)
        if len(x) % self._chunk:
            self._write_state(before)
        return y


@fault("chunks")
class OfSixChunksTheLastAreDropped(HonestSession):
    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        if len(x) >= 6 * self._chunk:
            y[5 * self._chunk :] = 0
        return y


@fault("values")
class LastStepOfEachCallNotCarriedOn(HonestSession):
    def compute(self, x):
        head = super().compute(x[:-1])
        before = self.state
        tail = super().compute(x[-1:])
        self.state = before
        return np.concatenate([head, tail])


# State lost: a later call begins anew.


@fault("state-lost")
class EveryCallStartsFromZeros(HonestSession):
    """As a program whose importer made constants of the initial state."""

    def compute(self, x):
        zeros = {name: np.zeros_like(array) for name, array in self.state.items()}
        y = super().compute(x)
        self.state = zeros
        return y


@fault("state-lost", dtype="float16")
class TheStateIsReturnedAndNotTaken(HonestSession):
    """In float16, y moves by no more than some hundred times what it is rounded by."""

    def compute(self, x):
        self.state = {name: np.zeros_like(array) for name, array in self.state.items()}
        return super().compute(x)


@fault("state-lost")
class OneStateStaysZero(HonestSession):
    """One of two states has lost its way out."""

    def compute(self, x):
        y = super().compute(x)
        self.state["c"] = np.zeros_like(self.state["c"])
        return y
