"""Adapters that are wrong in rows of a batch, for what is not a number, and for huge and tiny inputs."""

from __future__ import annotations

import numpy as np
from honest_adapter import HonestSession
from planted import BATCH, fault

# Rows of a batch, what is not a number, huge and tiny inputs.


@fault("batch", **BATCH)
class RowsLeakIntoEachOther(HonestSession):
    def compute(self, x):
        others = x.copy()
        others[:, 0] += np.float32(1e-3) * (x[:, -1] + np.flip(x, 0)[:, -1])
        return super().compute(others)


@fault("batch", **BATCH)
class SecondRowTakesTheFirstsOutput(HonestSession):
    def compute(self, x):
        y = super().compute(x)
        y[:, 1] = y[:, 0]
        return y


@fault("batch", **BATCH)
class ACallWhoseFirstRowIsZeroIsSkipped(HonestSession):
    """As padding."""

    def compute(self, x):
        y = super().compute(x)
        return y if x[:, 0].any() else y * 0


@fault("nan", **BATCH)
class NanSpreadsOverTheBatch(HonestSession):
    def compute(self, x):
        return super().compute(x) + np.float32(0) * x.sum()


@fault("nan")
class NanSurvivesAReset(HonestSession):
    def reset(self):
        self.state = {name: array * 0 for name, array in self.state.items()} or self.state
        if not self.state:
            super().reset()


@fault("saturation")
class TanhByTwoExponentials(HonestSession):
    def compute(self, x):
        y = super().compute(x)
        return np.where(np.abs(x).max() > 1e3, np.float32(np.nan), y)


@fault("saturation")
class InputsClampedAtAThousand(HonestSession):
    def compute(self, x):
        return super().compute(np.clip(x, -1e3, 1e3) * np.where(np.abs(x).max() > 1e3, 1e-3, 1).astype(np.float32))


@fault("denormals")
class DenormalsBecomeNan(HonestSession):
    def compute(self, x):
        tiny = (np.abs(x) < np.finfo(np.float32).tiny) & (x != 0)
        return super().compute(np.where(tiny, np.float32(np.nan), x))


@fault("denormals")
class InputsScaledToTheirLargest(HonestSession):
    def compute(self, x):
        largest = np.abs(x).max()
        return super().compute(x / largest if 0 < largest < 1e-30 else x)


@fault("saturation")
class ForgetGateNeverQuiteOne(HonestSession):
    """A hard limit on the gate, which a long memory feels and a short one does not."""

    def compute(self, x):
        before = {name: array.copy() for name, array in self.state.items()}
        y = super().compute(x)
        if self._pinned(x):
            self.state = before
            y = np.repeat(y[:1], len(y), axis=0)
        return y

    def _pinned(self, x):
        forget = x @ self.weights.layers[0].w_ih[self.model.hidden : 2 * self.model.hidden].T
        return bool((np.abs(forget) > 50).any() and np.abs(x).max() < 1e3)


@fault("saturation")
class PinnedForgetGateStillRemembers(HonestSession):
    def compute(self, x):
        y = super().compute(x)
        forget = x @ self.weights.layers[0].w_ih[self.model.hidden : 2 * self.model.hidden].T
        return y + np.float32(1e-4) * ((forget < -50).any() and np.abs(x).max() < 1e3)


@fault("batch", **BATCH)
class BatchOfTheExportAlone(HonestSession):
    """Right for its first row, and the others are fed the first's input."""

    def compute(self, x):
        return super().compute(np.repeat(x[:, :1], x.shape[1], axis=1))


@fault("batch", **BATCH)
class RowsOfTheStateInAnotherOrder(HonestSession):
    def _write_state(self, state):
        super()._write_state({name: np.roll(array, 1, axis=1) for name, array in state.items()})


@fault("batch", **BATCH)
class InputsScaledByTheBatchsLargest(HonestSession):
    """Quantised together: what a row is worth depends on its neighbours."""

    def compute(self, x):
        scale = np.abs(x).max() / np.float32(2**15)
        return super().compute(np.round(x / scale) * scale if scale > 0 else x)


@fault("nan", **BATCH)
class NanInTheStateSpreads(HonestSession):
    def _write_state(self, state):
        super()._write_state({name: array + 0 * array.sum() for name, array in state.items()})


@fault("nan")
class MinusInfinitySurvivesAReset(HonestSession):
    poisoned = False

    def compute(self, x):
        self.poisoned = self.poisoned or bool(np.isneginf(x).any())
        return super().compute(x) * np.float32(np.nan if self.poisoned and np.isfinite(x).all() else 1)


@fault("magnitudes")
class SmallNumbersOfAStateAreReadAsZeros(HonestSession):
    """Small, and far above the smallest normal number."""

    def _read_state(self):
        state = super()._read_state()
        return {name: np.where(np.abs(array) < 1e-20, 0, array).astype(array.dtype) for name, array in state.items()}
