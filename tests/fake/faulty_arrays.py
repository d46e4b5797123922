"""Adapters that lay hands on arrays that are not theirs, mistake lengths, or accept what they must refuse."""

from __future__ import annotations

import numpy as np
from honest_adapter import HonestBound, HonestSession
from planted import BATCH, RAGGED, fault, timed

# Untouched: what the caller has changes under its hands.


@fault("lengths", **RAGGED)
class LengthsAreIgnored(HonestSession):
    def compute_ragged(self, x, lengths):
        return self.compute(x)


@fault("lengths", **RAGGED)
class LastStepIsRepeatedBeyondTheLength(HonestSession):
    def compute_ragged(self, x, lengths):
        steps = np.minimum(np.arange(len(x))[:, None], lengths - 1)
        return super().compute_ragged(x, lengths)[steps, np.arange(len(lengths))]


@fault("lengths", **RAGGED, direction="bidirectional")
class BackwardDirectionStartsInThePadding(HonestSession):
    def compute_ragged(self, x, lengths):
        beyond = np.arange(len(x))[:, None] >= lengths
        return np.where(beyond[..., None], np.float32(0), self.compute(x))


@fault("lengths", **RAGGED)
class PaddingIsMultipliedByZero(HonestSession):
    """As a mask that is multiplied by does it: right until what is masked is no number."""

    def compute_ragged(self, x, lengths):
        within = (np.arange(len(x))[:, None] < lengths)[..., None].astype(np.float32)
        return self.compute(x) * within


@fault("refusal", **RAGGED)
class LengthsBeyondTheCallAreCut(HonestSession):
    def step(self, inputs):
        return super().step({**inputs, "lengths": np.minimum(inputs["lengths"], self._chunk)})


@fault("batch", **RAGGED)
class LengthsOfTheFirstRowForAll(HonestSession):
    def compute_ragged(self, x, lengths):
        return super().compute_ragged(x, np.full_like(lengths, lengths[0]))


@fault("untouched")
class WritesIntoItsInput(HonestSession):
    def compute(self, x):
        y = super().compute(x)
        if x.flags.writeable:
            x *= 2
        return y


@fault("untouched")
class OutputBufferUsedAgain(HonestSession):
    buffers: dict[tuple[int, ...], np.ndarray]

    def _advance(self, x):
        y = self.compute(x)
        self.buffers = getattr(self, "buffers", {})
        buffer = self.buffers.setdefault(y.shape, np.empty_like(y))
        buffer[:] = y
        return buffer


class StateInPlace(HonestSession):
    """Each call writes the new state over the old one, where it may."""

    def compute(self, x):
        held = self.state
        y = super().compute(x)
        for name, array in held.items():
            if array.flags.writeable:
                array[:] = self.state[name]
                self.state[name] = array
        return y


@fault("untouched")
class StateReadIsAView(StateInPlace):
    def _read_state(self):
        return dict(self.state)


@fault("untouched")
class WeightsOverwrittenFromTheSecondCallOn(HonestSession):
    """A bias buffer that is used again as an output: here a bit of the last one."""

    calls = 0

    def compute(self, x):
        y = super().compute(x)
        self.calls += 1
        if self.calls == 2:
            bias = self.weights.layers[-1].b_hh
            bias.setflags(write=True)
            bias[-1] = np.nextafter(bias[-1], np.float32(1))
            bias.setflags(write=False)
        return y


@fault("untouched")
class GivenStateIsWrittenTo(StateInPlace):
    """The arrays of `set_state` serve as the state's own buffers."""

    def _write_state(self, state):
        self.state = dict(state)


@timed("untouched")
class BoundCallWritesIntoTheRing(HonestBound):
    def __call__(self):
        super().__call__()
        if self.ring[0].flags.writeable:
            self.ring[0][0] = 0


@timed("untouched")
class BoundOutputIsTheBufferItself(HonestBound):
    buffer: np.ndarray | None = None

    def __call__(self):
        super().__call__()
        if self.buffer is None:
            self.buffer = self.y.copy()
        self.buffer[:] = self.y

    def output(self):
        return {"y": self.buffer}


@fault("owned")
class StateIsReadFromTheCallersArrays(HonestSession):
    def _write_state(self, state):
        self.state = dict(state)


@timed("owned")
class ABoundRingStaysTheCallers(HonestBound):
    @staticmethod
    def copied(ring):
        return ring


@fault("owned")
class ReturnedStateIsTheStateItself(HonestSession):
    def _read_state(self):
        return dict(self.state)


@fault("owned")
class ReturnedOutputIsTheNextHiddenState(HonestSession):
    def compute(self, x):
        y = super().compute(x)
        if self._streams:
            self.state["h"] = y[-1:]
        return y


@fault("layout")
class ReadsMemoryInOrderWhateverTheStrides(HonestSession):
    def step(self, inputs):
        x = inputs.get("x")
        if x is not None and x.ndim == 3 and x.flags.f_contiguous and not x.flags.c_contiguous:
            inputs = {"x": x.T.copy().reshape(x.shape)}
        return super().step(inputs)


@fault("layout")
class ForgetsNegativeStrides(HonestSession):
    def step(self, inputs):
        x = inputs.get("x")
        if x is not None and min(x.strides) < 0:
            inputs = {"x": x[::-1, ::-1, ::-1]}
        return super().step(inputs)


class ForgetsOneNegativeStride(HonestSession):
    dimension = 0

    def step(self, inputs):
        x = inputs.get("x")
        if x is not None and [stride < 0 for stride in x.strides] == [at == self.dimension for at in range(3)]:
            inputs = {"x": np.flip(x, self.dimension)}
        return super().step(inputs)


@fault("layout")
class StepsInReverseAreReadForward(ForgetsOneNegativeStride):
    dimension = 0


@fault("layout", **BATCH)
class RowsInReverseAreReadForward(ForgetsOneNegativeStride):
    dimension = 1


@fault("layout")
class RoundsDownToItsVectorsBoundary(HonestSession):
    """An aligned load of what is not aligned."""

    def step(self, inputs):
        x = inputs.get("x")
        if x is not None and x.flags.c_contiguous and x.ctypes.data % 16:
            inputs = {"x": np.roll(x, 1)}
        return super().step(inputs)


# Refusals.


@fault("refusal")
class CastsWhatItShouldRefuse(HonestSession):
    def step(self, inputs):
        return super().step({name: array.astype(np.float32) for name, array in inputs.items()})


@fault("refusal")
class ZeroStepsGiveAnEmptyOutput(HonestSession):
    def step(self, inputs):
        x = inputs.get("x")
        if x is not None and len(x) == 0:
            return {"y": np.zeros((0, self.request.batch, self.model.width), np.float32)}
        return super().step(inputs)


@fault("refusal")
class RefusedCallResets(HonestSession):
    def step(self, inputs):
        try:
            return super().step(inputs)
        except ValueError:
            self.reset()
            raise


@fault("refusal")
class RefusedStateIsHalfTaken(HonestSession):
    def set_state(self, state):
        if "h" in state and state["h"].shape == self.state["h"].shape:
            self.state = {**self.state, "h": state["h"].copy()}
        super().set_state(state)


@fault("refusal")
class StateOfOneLayerIsSpreadOverAll(HonestSession):
    def set_state(self, state):
        rows = self.model.layers
        super().set_state({name: array[:rows] for name, array in state.items()})


@fault("refusal")
class MissingStateIsTakenForZeros(HonestSession):
    def set_state(self, state):
        super().set_state({**{name: array * 0 for name, array in self.state.items()}, **state})


@fault("refusal", state="none")
class OverlongSequenceIsCut(HonestSession):
    def step(self, inputs):
        x = inputs.get("x")
        if x is not None and x.ndim == 3 and len(x) > self._chunk:
            inputs = {**inputs, "x": x[: self._chunk]}
        return super().step(inputs)


@fault("refusal")
class RingOfAnyLength(HonestSession):
    def bind(self, ring):
        return super().bind([{"x": inputs["x"][: self._chunk]} for inputs in ring])


@fault("chunks")
class OverlongCallsAreCutAtTwoChunks(HonestSession):
    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        y[2 * self._chunk :] = 0
        return y


@fault("chunks")
class RaggedRestForgetsTheCell(HonestSession):
    """The program of size 1 is given h and not c."""

    def _in_chunks(self, x):
        whole = len(x) - len(x) % self._chunk
        y = super()._in_chunks(x[:whole]) if whole else x[:0, :, :0].repeat(self.model.width, axis=2)
        if whole < len(x):
            self.state = {**self.state, "c": self.state["c"] * 0}
            y = np.concatenate([y, *(self.compute(x[at : at + 1]) for at in range(whole, len(x)))])
        return y


# Where an array begins in a page of memory.

PAGE = 4096


@timed("owned")
class ARingThatBeginsPagesIsNotCopied(HonestBound):
    """Such memory may be mapped for a device."""

    @staticmethod
    def copied(ring):
        return [x if x.ctypes.data % PAGE == 0 else x.copy() for x in ring]


@fault("layout")
class AnXThatBeginsRightBeforeAPageIsReadFromThePage(HonestSession):
    def step(self, inputs):
        x = inputs["x"].copy()
        if inputs["x"].ctypes.data % PAGE > PAGE - 32:
            x.flat[0] = 0
        return super().step({"x": x})


@fault("kept")
class OutputsAreReadOnlyAfterFiftyCalls(HonestSession):
    made = 0

    def step(self, inputs):
        outputs = super().step(inputs)
        self.made += 1
        outputs["y"].flags.writeable = self.made <= 50
        return outputs
