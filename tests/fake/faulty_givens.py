"""Adapters that take what they should refuse, or misread an array that a caller may well give."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from honest_adapter import HonestSession
from planted import BATCH, fault

# Refusal: what does not fit is made to fit.


class Fits(HonestSession):
    """Makes x fit."""

    @abstractmethod
    def fitted(self, x):
        """x, or what is made of it."""

    def step(self, inputs):
        x = inputs.get("x")
        return super().step({**inputs, "x": self.fitted(x)} if isinstance(x, np.ndarray) else inputs)


@fault("refusal")
class AnXOfRankFourIsReshaped(Fits):
    def fitted(self, x):
        return x[..., 0] if x.ndim == 4 else x


@fault("refusal")
class AShorterInputIsPadded(Fits):
    def fitted(self, x):
        missing = self._whole[2] - x.shape[-1]
        return np.pad(x, ((0, 0), (0, 0), (0, missing))) if x.ndim == 3 and missing > 0 else x


@fault("refusal", **BATCH)
class ASmallerBatchIsPadded(Fits):
    """But not one of a single row, which would be spread."""

    def fitted(self, x):
        missing = self._whole[1] - x.shape[1] if x.ndim == 3 and x.shape[1] > 1 else 0
        return np.pad(x, ((0, 0), (0, missing), (0, 0))) if missing > 0 else x


@fault("refusal")
class AnXOfWholeNumbersIsCast(Fits):
    def fitted(self, x):
        return x.astype(self._dtype) if x.dtype.kind in "iu" else x


@fault("refusal")
class TheImaginaryPartIsDropped(Fits):
    def fitted(self, x):
        return x.real.astype(self._dtype) if x.dtype.kind == "c" else x


@fault("refusal", state="none")
class AShortSequenceIsPadded(Fits):
    def fitted(self, x):
        missing = self._whole[0] - len(x)
        return np.pad(x, ((0, missing), (0, 0), (0, 0))) if x.ndim == 3 and len(x) > 0 and missing > 0 else x


@fault("refusal")
class AShortChunkOfARingIsPadded(HonestSession):
    def bind(self, ring):
        return super().bind([{**chunk, "x": self.padded(chunk["x"])} for chunk in ring])

    def padded(self, x):
        missing = self._whole[0] - len(x)
        return np.pad(x, ((0, missing), (0, 0), (0, 0))) if x.ndim == 3 and len(x) and missing > 0 else x


@fault("refusal")
class OnlyTheFirstChunkOfARingIsLookedAt(HonestSession):
    """The others are cut and cast."""

    def bind(self, ring):
        others = [{"x": chunk["x"][: self._chunk].astype(self._dtype)} for chunk in ring[1:]]
        return super().bind([*ring[:1], *others])


@fault("refusal")
class AStateOfNoArrayIsAReset(HonestSession):
    def set_state(self, state):
        if state:
            super().set_state(state)
        else:
            self.reset()


@fault("refusal")
class AStateOfHalfPrecisionIsCast(HonestSession):
    def set_state(self, state):
        halves = {
            name: array.astype(np.float32)
            for name, array in state.items()
            if isinstance(array, np.ndarray) and array.dtype == np.float16
        }
        super().set_state({**state, **halves})


# Layout: an array that lies elsewhere is misread.


class Misreads(HonestSession):
    @abstractmethod
    def is_misread(self, array):
        """Whether an array lies so that it is misread."""

    def step(self, inputs):
        x = inputs["x"]
        return super().step({**inputs, "x": x + np.float32(0.01)} if self.is_misread(x) else inputs)

    def set_state(self, state):
        misread = {name: a + np.float32(0.01) for name, a in state.items() if self.is_misread(a)}
        super().set_state({**state, **misread})


@fault("layout")
class AnOddAddressIsRounded(Misreads):
    def is_misread(self, array):
        return array.ctypes.data % array.itemsize != 0


@fault("layout")
class WhatLiesBetweenRowsIsRead(Misreads):
    """The numbers of a row lie side by side, and the rows do not."""

    def is_misread(self, array):
        of_row = array.shape[1] * array.shape[2] * array.itemsize
        return array.strides[2] == array.itemsize and array.strides[0] > of_row


@fault("contents")
class AStrideOfZeroIsTakenForOne(Misreads):
    def is_misread(self, array):
        return array.size > 1 and 0 in array.strides


# Contents: what random numbers do not have.


class OfEachStep(HonestSession):
    def compute(self, x):
        if not self._streams:
            return super().compute(x)
        return np.concatenate([super(OfEachStep, self).compute(self.step_of(step)[None]) for step in x])

    @abstractmethod
    def step_of(self, x):
        """What is computed of a step [batch, input]."""


@fault("contents")
class StepsOfAHalfAreMasked(OfEachStep):
    def step_of(self, x):
        return x * 0 if (x == 0.5).all() else x


@fault("contents")
class StepsOfWholeNumbersAreCoarse(OfEachStep):
    def step_of(self, x):
        return x + np.float32(1e-3) if (x == np.rint(x)).all() and np.abs(x).max() > 1 else x


@fault("contents")
class StepsWithoutANegativeNumberAreScaled(OfEachStep):
    """They are taken for probabilities."""

    def step_of(self, x):
        return x / max(1, x.sum()) if (x >= 0).all() else x
