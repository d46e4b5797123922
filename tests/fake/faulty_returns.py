"""Adapters that return arrays of another kind, write to given ones during a call, or mistake rows and magnitudes."""

from __future__ import annotations

import time

import numpy as np
from honest_adapter import HonestBound, HonestSession
from planted import BATCH, RAGGED, fault, timed

from rnnbench.rnn.arithmetic import Arithmetic

# Signature: names, types, shapes.


@fault("signature")
class OutputIsFloat64(HonestSession):
    def _advance(self, x):
        return self.compute(x).astype(np.float64)


@fault("signature")
class OutputOfLongCallsIsFloat64(HonestSession):
    def _in_chunks(self, x):
        return super()._in_chunks(x).astype(np.float64)


@fault("signature")
class StateIsFloat64(HonestSession):
    """And taken back as such."""

    def _read_state(self):
        return {name: array.astype(np.float64) for name, array in self.state.items()}

    def set_state(self, state):
        super().set_state({name: array.astype(np.float32) for name, array in state.items()})


class Later(np.ndarray):
    """May compute its numbers when they are looked at."""


@fault("signature")
class OutputIsASubclassOfAnArray(HonestSession):
    def _advance(self, x):
        return self.compute(x).view(Later)


@timed("signature")
class BoundOutputIsFloat64(HonestBound):
    def output(self):
        return {"y": self.y.astype(np.float64)}


def read_only(array):
    array.setflags(write=False)
    return array


@fault("signature")
class OutputIsReadOnly(HonestSession):
    def _advance(self, x):
        return read_only(self.compute(x))


@fault("signature")
class StateIsReadOnly(HonestSession):
    def _read_state(self):
        return {name: read_only(array) for name, array in super()._read_state().items()}


@timed("signature")
class BoundOutputIsReadOnly(HonestBound):
    def output(self):
        return {"y": read_only(self.y.copy())}


@fault("signature")
class OutputWithTheStateBeside(HonestSession):
    def step(self, inputs):
        return {**super().step(inputs), "h": self.state["h"].copy()}


@fault("signature", state="none")
class AStateThoughThereIsNone(HonestSession):
    def get_state(self):
        return {"h": np.zeros((1, 1, 4), np.float32)}


@timed("signature")
class BoundOutputHasTheBatchFirst(HonestBound):
    """Where chunk and batch are the same, only the numbers show it; here the shape does."""

    def output(self):
        return {"y": self.y.swapaxes(0, 1).copy()}


@fault("signature")
class BigEndianOutput(HonestSession):
    def _advance(self, x):
        y = self.compute(x)
        return y.astype(y.dtype.newbyteorder())


# Watched: written to during a call, and put back.

PAUSE_S = 1e-3
"""Time for another thread to look."""


@fault("watched")
class InputIsScaledInPlaceAndBack(HonestSession):
    def _advance(self, x):
        given = x.flags.writeable
        if given:
            x *= 2
            time.sleep(PAUSE_S)
            x /= 2
        return self.compute(x)


@timed("watched")
class RingIsScaledInPlaceAndBack(HonestBound):
    def __call__(self):
        chunk = self.ring[self.calls % len(self.ring)]
        if chunk.flags.writeable:
            chunk *= 2
            time.sleep(PAUSE_S)
            chunk /= 2
        super().__call__()


@fault("watched")
class GivenStateIsScratchWhileItIsSet(HonestSession):
    def _write_state(self, state):
        super()._write_state(state)
        for name, array in state.items():
            if array.flags.writeable:
                array.fill(0)
                time.sleep(PAUSE_S)
                array[:] = self.state[name]


@fault("watched")
class GivenStateIsScratchOfLaterCalls(HonestSession):
    given: np.ndarray | None = None

    def _write_state(self, state):
        super()._write_state(state)
        self.given = state["h"] if state["h"].flags.writeable else None

    def compute(self, x):
        if self.given is None:
            return super().compute(x)
        kept = self.given.copy()
        self.given.fill(0)
        time.sleep(PAUSE_S)
        self.given[:] = kept
        return super().compute(x)


@fault("watched", **RAGGED)
class LengthsAreSortedInPlaceAndBack(HonestSession):
    def compute_ragged(self, x, lengths):
        if not lengths.flags.writeable:
            return super().compute_ragged(x, lengths)
        kept = lengths.copy()
        lengths += 1
        time.sleep(PAUSE_S)
        lengths[:] = kept
        return super().compute_ragged(x, lengths)


@fault("watched")
class RingIsSwappedWhileItIsBound(HonestSession):
    """Bytes are put into the device's order where they lie."""

    def _bind(self, ring):
        for chunk in ring:
            if chunk.flags.writeable:
                chunk.byteswap(inplace=True)
                time.sleep(5 * PAUSE_S)
                chunk.byteswap(inplace=True)
        return super()._bind(ring)


# Poisoned rows.


@fault("nan", **BATCH)
class NanOfTheFirstRowSpreads(HonestSession):
    def compute(self, x):
        y = super().compute(x)
        return y + x[0, 0, 0] * 0


@fault("nan", **BATCH)
class NanOfAMiddleRowSpreads(HonestSession):
    def compute(self, x):
        y = super().compute(x)
        return y + x[0, 1, :].sum() * 0


@fault("nan", **BATCH)
class NanOfTheFirstRowsStateSpreads(HonestSession):
    def compute(self, x):
        poisoned = np.isnan(self.state["h"][:, 0]).any()
        y = super().compute(x)
        return y * np.nan if poisoned else y


@fault("nan", **BATCH)
class InfinityInACellSpreads(HonestSession):
    def compute(self, x):
        largest = np.abs(self.state["c"]).max()
        return super().compute(x) + largest * 0


@fault("nan", **BATCH)
class ResetKeepsWhatIsNoNumberInTheFirstRow(HonestSession):
    def reset(self):
        row = {name: array[:, 0].copy() for name, array in self.state.items()}
        super().reset()
        for name, array in row.items():
            if not np.isfinite(array).all():
                self.state[name][:, 0] = array


# Magnitudes.


@fault("magnitudes")
class TinyStatesAreNoNumbers(HonestSession):
    """Where the inverse of a number overflows."""

    def _write_state(self, state):
        tiny = {name: (array != 0) & (np.abs(array) < 1e-25) for name, array in state.items()}
        super()._write_state({name: np.where(tiny[name], np.nan, array) for name, array in state.items()})


@fault("magnitudes")
class SmallInputsAreNoNumbers(HonestSession):
    """Between those that are flushed to zero and those that are large enough."""

    def compute(self, x):
        small = (np.abs(x) > 1e-35) & (np.abs(x) < 1e-10)
        return super().compute(np.where(small, np.float32(np.nan), x))


@fault("magnitudes")
class InputsInFixedPoint(HonestSession):
    """Of 18 bits, by the largest input of a call: what stands beside a large one is lost."""

    def _advance(self, x):
        unit = np.abs(x).max() * np.float32(2**-18)
        return self.compute(np.round(x / unit) * unit if unit > 1e-4 else x)


class CoarseBend(Arithmetic):
    """Sigmoid and tanh by a short polynomial: right where they are nearly straight, and where they are flat."""

    def activated(self, value):
        bent = (np.abs(value) > 0.97) & (np.abs(value) < 0.9999)
        return super().activated(np.where(bent, np.round(value, 3), value))


@fault("magnitudes", state="none")
class ActivationsAreCoarseWhereTheyBend(HonestSession):
    arithmetic = CoarseBend


@fault("magnitudes", cell="gru")
class LargeStatesAreClipped(HonestSession):
    def _write_state(self, state):
        super()._write_state({name: array.clip(-30, 30) for name, array in state.items()})


@fault("magnitudes", cell="gru")
class HugeStatesAreClipped(HonestSession):
    def _write_state(self, state):
        super()._write_state({name: array.clip(-1000, 1000) for name, array in state.items()})


@fault("magnitudes", state="none")
class InputsOfOneMagnitudeAreOne(HonestSession):
    """Between those that are flushed to zero and those that are large enough."""

    def compute(self, x):
        return super().compute(np.where((np.abs(x) > 1e-13) & (np.abs(x) < 1e-11), np.float32(1), x))


# States and inputs that would broadcast.


class Spreading(HonestSession):
    def spread(self, state, only=lambda array: True):
        """Broadcast each array to the state's own shape, where it may be."""
        return {
            name: np.broadcast_to(np.asarray(array, np.float32), self.state[name].shape) if only(array) else array
            for name, array in state.items()
            if name in self.state
        } | {name: array for name, array in state.items() if name not in self.state}


@fault("refusal", **BATCH)
class AStateOfOneRowIsSpreadOverTheBatch(Spreading):
    def set_state(self, state):
        super().set_state(self.spread(state, lambda array: np.ndim(array) == 3 and np.shape(array)[1] == 1))


@fault("refusal", layers=2)
class AStateOfOneLayerIsBroadcast(Spreading):
    def set_state(self, state):
        super().set_state(self.spread(state, lambda array: np.ndim(array) == 3 and np.shape(array)[0] == 1))


@fault("refusal")
class AStateOfOneUnitIsSpread(Spreading):
    def set_state(self, state):
        super().set_state(self.spread(state, lambda array: np.ndim(array) == 3 and np.shape(array)[2] == 1))


@fault("refusal")
class AStateOfShapeOneIsSpread(Spreading):
    def set_state(self, state):
        super().set_state(self.spread(state, lambda array: np.shape(array) == (1,)))


@fault("refusal")
class AStateOfNoDimensionIsSpread(Spreading):
    def set_state(self, state):
        super().set_state(self.spread(state, lambda array: isinstance(array, np.ndarray) and array.ndim == 0))


@fault("refusal")
class ANumberIsSpreadOverTheState(Spreading):
    def set_state(self, state):
        super().set_state(self.spread(state, lambda array: isinstance(array, float)))


@fault("refusal")
class AListIsTakenForAState(HonestSession):
    def set_state(self, state):
        lists = {name: np.array(array, np.float32) for name, array in state.items() if isinstance(array, list)}
        super().set_state({**state, **lists})


@fault("refusal")
class NoneIsTakenForAStateOfZeros(HonestSession):
    def set_state(self, state):
        missing = {name: self.state[name] * 0 for name, array in state.items() if array is None and name in self.state}
        super().set_state({**state, **missing})


@fault("refusal")
class AFlatStateIsReshaped(HonestSession):
    def set_state(self, state):
        shaped = {
            n: a.reshape(self.state[n].shape)
            for n, a in state.items()
            if isinstance(a, np.ndarray) and a.ndim == 1 and n in self.state and a.size == self.state[n].size
        }
        super().set_state({**state, **shaped})


@fault("refusal", **BATCH)
class AnInputOfOneRowIsSpreadOverTheBatch(HonestSession):
    def step(self, inputs):
        x = inputs.get("x")
        if isinstance(x, np.ndarray) and x.ndim == 3 and x.shape[1] == 1:
            inputs = {**inputs, "x": np.repeat(x, self.request.batch, axis=1)}
        return super().step(inputs)


@fault("refusal")
class AListIsTakenForAnInput(HonestSession):
    def step(self, inputs):
        return super().step({n: np.array(a, np.float32) if isinstance(a, list) else a for n, a in inputs.items()})


# Layouts of states.


@fault("layout", **BATCH)
class AStateIsReadAsItLies(HonestSession):
    def set_state(self, state):
        if not all(array.flags.c_contiguous for array in state.values() if isinstance(array, np.ndarray)):
            state = {name: array.ravel(order="K").reshape(array.shape) for name, array in state.items()}
        super().set_state(state)


@fault("layout", **BATCH)
class AStateWithStridesIsCutShort(HonestSession):
    """Every second item of another array is taken for the array's first half."""

    def set_state(self, state):
        super().set_state({name: self.cut(array) for name, array in state.items()})

    def cut(self, array):
        if array.ndim == 3 and array.strides[2] == 2 * array.itemsize:
            return np.lib.stride_tricks.as_strided(array, array.shape, (*array.strides[:2], array.itemsize))
        return array
