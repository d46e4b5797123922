"""Adapters that are wrong for some kind of numbers, of memory or of mistakes of the caller."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from faulty_alike import Remembers
from honest_adapter import HonestSession
from planted import BATCH, RAGGED, fault

OFF = np.float32(1.01)
HALF_RANGE = 65_504


class ReadsXAs(HonestSession):
    def compute(self, x):
        return super().compute(self.read(x).astype(x.dtype))

    @abstractmethod
    def read(self, x: np.ndarray) -> np.ndarray:
        """What it computes with in the place of x."""


# Saturation and magnitudes: numbers that another type does not have.


@fault("saturation")
class InputsBeyondHalfPrecisionAreInfinite(ReadsXAs):
    def read(self, x):
        return np.where(np.abs(x) > HALF_RANGE, np.inf, x)


@fault("saturation", cell="gru")
class InputsBeyondHalfPrecisionAreNoNumbers(ReadsXAs):
    def read(self, x):
        return np.where(np.abs(x) > HALF_RANGE, np.nan, x)


@fault("magnitudes")
class StatesBeyondHalfPrecisionAreInfinite(HonestSession):
    def _write_state(self, state):
        super()._write_state({n: np.where(np.abs(a) > HALF_RANGE, np.inf, a) for n, a in state.items()})


@fault("magnitudes", cell="gru")
class StatesBeyondHalfPrecisionAreClipped(HonestSession):
    def _write_state(self, state):
        super()._write_state({n: np.clip(a, -HALF_RANGE, HALF_RANGE) for n, a in state.items()})


@fault("magnitudes")
class StatesBelowHalfPrecisionAreZero(HonestSession):
    """In a call: they are read back as they were given."""

    def compute(self, x):
        self.state = {name: np.where(np.abs(array) < 6e-5, 0, array) for name, array in self.state.items()}
        return super().compute(x)


@fault("magnitudes")
class CellsAreClippedAtTenThousand(HonestSession):
    def compute(self, x):
        y = super().compute(x)
        self.state = {name: np.clip(array, -10_000, 10_000) for name, array in self.state.items()}
        return y


class OffBetween5And20(HonestSession):
    def compute(self, x):
        held = self.state.items()
        self.state = {n: np.where((np.abs(a) > 5) & (np.abs(a) < 20), a * OFF, a) for n, a in held}
        return super().compute(x)


@fault("magnitudes")
class CellsOfTenAreOff(OffBetween5And20):
    """y hardly shows it, since tanh is flat there."""


@fault("magnitudes", cell="gru")
class StatesOfTenAreOff(OffBetween5And20):
    pass


@fault("magnitudes")
class OutputsBesideACellOfAHundredAreOff(HonestSession):
    """By a ten-thousandth: less than a cell of a million is rounded by."""

    def compute(self, x):
        is_large = np.abs(self.state["c"]).max() > 100
        return super().compute(x) * np.float32(1 - 1e-4 * is_large)


@fault("magnitudes", cell="rnn")
class InputsOfATenThousandthAreZero(ReadsXAs):
    def read(self, x):
        return np.where(np.abs(x) < 2e-4, 0, x)


# Alike: calls and states of one sign, of one number, or that rise evenly.


@fault("alike")
class ACallWithoutAPositiveNumberIsScaled(ReadsXAs):
    def read(self, x):
        return x * OFF if (x < 0).all() else x


@fault("alike", cell="gru")
class ACallOfOneNumberIsScaled(ReadsXAs):
    def read(self, x):
        return x * OFF if len(x) > 1 and (x == x.flat[0]).all() else x


@fault("alike", cell="rnn")
class ACallThatRisesEvenlyIsScaled(ReadsXAs):
    def read(self, x):
        rises = np.diff(x.astype(np.float64), axis=0)
        return x * OFF if len(x) > 2 and rises.any() and np.ptp(rises) < 1e-6 else x


@fault("alike")
class AStateOfASingleNumberIsANewOne(HonestSession):
    def _write_state(self, state):
        super()._write_state({n: a * 0 if np.count_nonzero(a) == 1 else a for n, a in state.items()})


@fault("alike")
class AStateWithoutANegativeNumberIsScaled(HonestSession):
    def _write_state(self, state):
        super()._write_state({n: a * OFF if (a > 0).all() else a for n, a in state.items()})


@fault("alike")
class KnownByTheSizesOfItsNumbers(Remembers):
    def key_of(self, x):
        return np.abs(x).tobytes()


@fault("alike")
class AStateIsKnownByTheSizesOfItsNumbers(Remembers):
    def key_of(self, x):
        return x.tobytes()

    def key_of_state(self, array):
        return np.abs(array).tobytes()


# Contents and rewinding: what is nearly equal is taken for equal.


@fault("contents")
class StepsThatHardlyDifferAreSkipped(HonestSession):
    last = None

    def compute(self, x):
        outputs = []
        for step in np.split(x, len(x)):
            if self.last is None or not self.is_near(step, self.last[0]):
                self.last = step, super().compute(step)
            self.last = step, self.last[1]
            outputs.append(self.last[1])
        return np.concatenate(outputs)

    @staticmethod
    def is_near(step, other):
        return 0 < np.abs(step - other).max() < 1e-3 * np.abs(other).max()


@fault("contents", **BATCH)
class RowsThatHardlyDifferAreComputedOnce(HonestSession):
    def compute(self, x):
        y = super().compute(x)
        for row in range(1, x.shape[1]):
            off = np.abs(x[:, row] - x[:, 0]).max(axis=1)
            near = (off > 0) & (off < 1e-3 * np.abs(x[:, 0]).max(axis=1))
            y[near, row] = y[near, 0]
        return y


@fault("rewind")
class AStateThatHardlyDiffersIsNotWritten(HonestSession):
    def _write_state(self, state):
        if not self.state or any(np.abs(a - self.state[n]).max() > 1e-5 for n, a in state.items()):
            super()._write_state(state)


# Layout: arrays whose numbers share memory, that are views in one dimension alone, and lengths.


class MisreadsX(HonestSession):
    def step(self, inputs):
        x = inputs.get("x")
        if isinstance(x, np.ndarray) and x.dtype == np.float32 and x.ndim == 3 and self.is_misread(x):
            inputs = {**inputs, "x": x * OFF}
        return super().step(inputs)

    @abstractmethod
    def is_misread(self, x: np.ndarray) -> bool:
        """Whether it does not read an x of this layout as it is."""


@fault("layout")
class WindowsOverASignalAreMisread(MisreadsX):
    def is_misread(self, x):
        return len(x) > 1 and 0 < x.strides[0] < x.shape[1] * x.shape[2] * x.itemsize


@fault("layout", **BATCH)
class OneRowForAllIsMisread(MisreadsX):
    def is_misread(self, x):
        return x.strides[1] == 0 and x.strides[2] > 0


@fault("layout")
class OneInputForAllIsMisread(MisreadsX):
    def is_misread(self, x):
        return x.strides[2] == 0 and x.strides[0] > 0


@fault("layout", **BATCH)
class InputsInReverseAreMisread(MisreadsX):
    def is_misread(self, x):
        return x.strides[2] < 0 < x.strides[0]


@fault("layout")
class EverySecondStepIsMisread(MisreadsX):
    def is_misread(self, x):
        return x.strides[2] == x.itemsize and x.strides[0] == 2 * x.shape[1] * x.shape[2] * x.itemsize


@fault("layout", **BATCH)
class StatesOfTwoLayoutsAreMisread(HonestSession):
    def set_state(self, state):
        if len({array.flags.c_contiguous for array in state.values()}) == 2:
            state = {name: array * OFF for name, array in state.items()}
        super().set_state(state)


@fault("layout")
class ARingOfTwoLayoutsIsMisread(HonestSession):
    def bind(self, ring):
        if len({chunk["x"].flags.c_contiguous for chunk in ring}) == 2:
            ring = [{**chunk, "x": chunk["x"] * OFF} for chunk in ring]
        return super().bind(ring)


@fault("layout", **RAGGED)
class LengthsWithStridesAreReadAsTheyLie(HonestSession):
    def step(self, inputs):
        lengths = inputs["lengths"]
        if isinstance(lengths, np.ndarray) and lengths.strides[0] != lengths.itemsize:
            inputs = {**inputs, "lengths": np.full_like(lengths, lengths[0])}
        return super().step(inputs)


@fault("layout", **RAGGED)
class LengthsAtAnOddAddressAreMisread(HonestSession):
    def step(self, inputs):
        lengths = inputs["lengths"]
        if isinstance(lengths, np.ndarray) and not lengths.flags.aligned:
            inputs = {**inputs, "lengths": np.ones_like(lengths)}
        return super().step(inputs)


# Refusal: what fits if one looks away.


class TakesX(HonestSession):
    def step(self, inputs):
        x = self.taken(inputs["x"]) if "x" in inputs else None
        return super().step(inputs if x is None else {**inputs, "x": x})

    @abstractmethod
    def taken(self, x: object) -> np.ndarray | None:
        """The x that it makes of one that does not fit; None where it makes none."""


@fault("refusal")
class AnXOfLongIntegersIsCast(TakesX):
    def taken(self, x):
        return x.astype(np.float32) if getattr(x, "dtype", None) == np.int64 else None


@fault("refusal")
class AnXOfBytesIsCast(TakesX):
    def taken(self, x):
        return x.astype(np.float32) if getattr(x, "dtype", None) == np.uint8 else None


@fault("refusal")
class AnXOfTextIsParsed(TakesX):
    def taken(self, x):
        return x.astype(np.float32) if getattr(getattr(x, "dtype", None), "kind", "") == "U" else None


@fault("refusal")
class ATupleIsTakenForAnInput(TakesX):
    def taken(self, x):
        return np.array(x, np.float32) if isinstance(x, tuple) else None


@fault("refusal")
class ANumberIsSpreadOverTheInput(TakesX):
    def taken(self, x):
        return np.full(self._whole, x, np.float32) if isinstance(x, float) else None


@fault("refusal")
class ALeadingDimensionOfOneIsDropped(TakesX):
    def taken(self, x):
        return x[0] if getattr(x, "ndim", 0) == 4 and len(x) == 1 else None


@fault("refusal", **BATCH)
class AStepWithoutTheStepsIsTaken(TakesX):
    def taken(self, x):
        return x[None] if getattr(x, "shape", ()) == self._whole[1:] else None


@fault("refusal")
class OneInputIsSpreadOverAll(TakesX):
    def taken(self, x):
        fits = getattr(x, "ndim", 0) == 3 and x.shape[2] == 1
        return np.repeat(x, self._whole[2], axis=2) if fits else None


@fault("refusal")
class AnXOfNoRowsIsZeros(TakesX):
    def taken(self, x):
        return np.zeros(self._whole, np.float32) if getattr(x, "ndim", 0) == 3 and x.shape[1] == 0 else None


@fault("refusal")
class AnXNeedsNoName(HonestSession):
    def step(self, inputs):
        return super().step({"x": inputs} if isinstance(inputs, np.ndarray) else inputs)


@fault("refusal")
class AStateNeedsNoNames(HonestSession):
    def set_state(self, state):
        names = [spec.name for spec in self._states]
        super().set_state(dict(zip(names, state, strict=True)) if isinstance(state, tuple) else state)


@fault("refusal")
class AStateOfLongIntegersIsCast(HonestSession):
    def set_state(self, state):
        taken = {n: a.astype(np.float32) if getattr(a, "dtype", None) == np.int64 else a for n, a in state.items()}
        super().set_state(taken)


@fault("refusal")
class AChunkIsTakenForARing(HonestSession):
    def bind(self, ring):
        return super().bind([ring] if isinstance(ring, dict) else ring)


@fault("refusal")
class OnlyTwoChunksOfARingAreLookedAt(HonestSession):
    def bind(self, ring):
        return super().bind([*ring[:2], *({"x": np.resize(chunk.get("x", 0.0), self._whole)} for chunk in ring[2:])])


class TakesLengths(HonestSession):
    def step(self, inputs):
        return super().step(self.with_taken(inputs))

    def with_taken(self, inputs):
        lengths = self.taken(inputs["lengths"]) if "lengths" in inputs else None
        return inputs if lengths is None else {**inputs, "lengths": lengths.astype(np.int32)}

    @abstractmethod
    def taken(self, lengths: object) -> np.ndarray | None:
        """The lengths that it makes of some that do not fit; None where it makes none."""


@fault("refusal", **RAGGED)
class LengthsBelowZeroCountFromTheEnd(TakesLengths):
    def taken(self, lengths):
        negative = isinstance(lengths, np.ndarray) and lengths.dtype.kind == "i" and lengths.min() < 0
        return np.where(lengths < 0, lengths + self._chunk + 1, lengths) if negative else None


@fault("refusal", **RAGGED)
class LengthsOfFloatsAreCast(TakesLengths):
    def taken(self, lengths):
        return lengths if getattr(lengths, "dtype", None) == np.float32 else None


@fault("refusal", **RAGGED)
class LengthsInAColumnAreTaken(TakesLengths):
    def taken(self, lengths):
        return lengths.ravel() if getattr(lengths, "ndim", 0) == 2 else None


@fault("refusal", **RAGGED)
class AListIsTakenForLengths(TakesLengths):
    def taken(self, lengths):
        return np.array(lengths) if isinstance(lengths, list) else None


@fault("refusal", **RAGGED)
class LengthsThatAreNoneAreTheWholeCall(TakesLengths):
    def taken(self, lengths):
        return np.full(self._whole[1], self._chunk) if lengths is None else None


@fault("refusal", **RAGGED)
class OneLengthIsSpreadOverAllRows(TakesLengths):
    def taken(self, lengths):
        return np.resize(lengths, self._whole[1]) if getattr(lengths, "shape", ()) == (1,) else None


@fault("refusal", **RAGGED)
class LengthsOfARingAreCut(TakesLengths):
    def step(self, inputs):
        return HonestSession.step(self, inputs)

    def bind(self, ring):
        return super().bind([self.with_taken(chunk) for chunk in ring])

    def taken(self, lengths):
        fits = getattr(lengths, "shape", ()) == self._whole[1:2] and lengths.dtype.kind == "i"
        return np.clip(lengths, 1, self._chunk) if fits else None


@fault("refusal", **RAGGED)
class ARingNeedsNoLengths(HonestSession):
    def bind(self, ring):
        whole = np.full(self._whole[1], self._chunk, np.int32)
        return super().bind([{"lengths": whole, **chunk} if "x" in chunk else chunk for chunk in ring])


@fault("untouched")
class AStepAloneWritesIntoTheStateThatWasRead(HonestSession):
    """The program of one step has the arrays that were read last by the caller."""

    def get_state(self):
        self.read = super().get_state()
        return self.read

    def _in_chunks(self, x):
        read = getattr(self, "read", {})
        y = super()._in_chunks(x)
        for name, array in read.items():
            array[...] = self.state[name]
        return y
