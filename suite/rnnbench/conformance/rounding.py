"""The rounding error that a computation is expected to suffer in its dtype, step by step; and where that says nothing.

It is measured on the network itself: evaluated in the dtype over several orders of summation, and in float64 with
random roundings, many runs at once as rows of one batch (`rnn/arithmetic.py`). The largest error of all of them counts.
Long runs are measured at their beginning and carried on from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rnnbench.conformance.tolerance import FACTOR
from rnnbench.rnn.arithmetic import Arithmetic, RandomRounding
from rnnbench.rnn.dtypes import DTYPES
from rnnbench.rnn.reference import Trajectory, run_in
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights

SUMMATIONS = (0, 1)
"""Seeds of the orders of summation that are tried."""
ROWS, MOST_ROWS = 8, 64
"""Rows of the batch that are measured, evenly over it; and how many of them at most where that is cheap, since a
network of few units may be lucky (each a relu that is 0) in all but one of many."""
SAMPLES = 16
"""Runs with random roundings, over these rows: with fewer, a network of one unit may be lucky in all of them."""
MEASURED_STEPS = 512
"""Steps that are measured of a longer run, most networks having forgotten their start by then."""
WORK = 2e9
"""Products of a weight and a value that a measurement may take: with large weights fewer steps are measured …"""
CHEAP = 1e8
"""The same, within which more than the fewest rows are measured."""
FEWEST_STEPS = 32
"""… but never fewer."""


@dataclass(frozen=True)
class Rounding:
    """Expected rounding of a run, by step."""

    measured: np.ndarray
    """[steps]: the largest error so far. Infinite from where comparing has no meaning: see `incomparable`."""
    dtype: str

    def at(self, step: int) -> float:
        """Beyond what was measured the error grows as it last did: by the power of the steps that its growth over the
        last half of them shows, at most one; an error that grew faster, as an exponential."""
        known = len(self.measured)
        last = float(self.measured[-1])
        if step < known:
            return float(self.measured[step])
        if last == 0:  # a counter, whose inputs and state are 4 at most
            return 0.0 if 4 * (step + 2) <= _whole(self.dtype) else np.inf
        growth = float(np.log2(last / self.measured[known // 2 - 1])) if known > 1 and last < np.inf else 0.0
        steps = (step + 1) / known
        doublings = np.log2(steps) if growth <= 1 else 2 * (steps - 1)
        with np.errstate(over="ignore"):
            return float(last * np.exp2(growth * doublings))

    def over(self, steps: int) -> np.ndarray:
        return np.array([self.at(step) for step in range(steps)])


def steps_measured(model: Model, weights: Weights, steps: int) -> int:
    """Of a run of so many steps, the first ones: as many as are cheap."""
    affordable = int(min(WORK / ((ROWS + SAMPLES) * _elements(model, weights)), MEASURED_STEPS))
    return min(steps, max(FEWEST_STEPS, affordable))


def _rows_measured(model: Model, weights: Weights, steps: int, batch: int) -> np.ndarray:
    """Their indices [rows]. Each is run once exactly, and once with random roundings."""
    cheap = int(CHEAP / (2 * steps * _elements(model, weights)))
    number = min(max(ROWS, cheap), MOST_ROWS)
    return np.unique(np.linspace(0, batch - 1, number).round().astype(int))


def _elements(model: Model, weights: Weights) -> int:
    return max(sum(array.size for _, array in weights.named(model)), 1)


def expected_rounding(
    model: Model,
    weights: Weights,
    x: np.ndarray,
    state: Mapping[str, np.ndarray] | None,
    dtype: str,
    seed: int,
    lengths: np.ndarray | None = None,
) -> Rounding:
    """For x [steps, batch, input] from `state` (zeros where None), of each row its first `lengths` [batch] steps."""
    if model.cell == "counter":
        return _of_counter(x, state, dtype)
    steps = steps_measured(model, weights, len(x))
    rows = _rows_measured(model, weights, steps, x.shape[1])
    copies = np.resize(np.arange(len(rows)), max(SAMPLES, len(rows)))
    all_rows = np.concatenate([rows, rows[copies]])

    def run(arithmetic: Arithmetic, rows: np.ndarray) -> Trajectory:
        initial = None if state is None else {name: array[:, rows] for name, array in state.items()}
        ends = None if lengths is None else np.minimum(lengths[rows], steps)
        return run_in(arithmetic, model, weights, x[:steps, rows], initial, ends)

    sampled = _arrays(run(RandomRounding(dtype, seed, len(rows)), all_rows))
    exact = [array[..., : len(rows), :] for array in sampled]
    error = _largest([array[..., len(rows) :, :] - e[..., copies, :] for array, e in zip(sampled, exact, strict=True)])
    for summation in SUMMATIONS:
        got = _arrays(run(Arithmetic(dtype, summation), rows))
        error = np.maximum(error, _largest([a - e for a, e in zip(got, exact, strict=True)]))
    scale = np.maximum.accumulate(_largest(exact))
    error = np.maximum.accumulate(np.maximum(error, DTYPES[dtype].unit * scale))
    if model.direction != "forward":
        error[:] = error[-1]
    return Rounding(np.where(incomparable(error, scale), np.inf, error), dtype)


def _of_counter(x: np.ndarray, state: Mapping[str, np.ndarray] | None, dtype: str) -> Rounding:
    """None while the dtype has every whole number up to the largest count; beyond, nothing can be compared."""
    counts = np.cumsum(x, axis=0, dtype=np.float64) + (0.0 if state is None else state["h"][0])
    largest = np.maximum.accumulate(_largest([counts]))
    return Rounding(np.where(largest <= _whole(dtype), 0.0, np.inf), dtype)


def _whole(dtype: str) -> float:
    """Up to which every whole number is one of the dtype's."""
    return 2.0 ** DTYPES[dtype].digits


def incomparable(error: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """From which step on [steps] no comparison has a meaning, given the largest error and the largest value so far.

    There the tolerance would be as large as the values, the error's share of them having grown to that from what the
    first steps make of it (chaos); or the dtype's range is exceeded.
    """
    share = np.divide(error, scale, out=np.zeros_like(error), where=scale > 0)
    first = share[share > 0][:1]
    lost = ~np.isfinite(error) | ((share >= 1 / FACTOR) & (share >= FACTOR * first.sum()))
    ever: np.ndarray = np.logical_or.accumulate(lost)
    return ever


def _arrays(run: Trajectory) -> list[np.ndarray]:
    """Outputs and states by step, all that a backend may be asked for."""
    return [run.y, *(run.states or {}).values()]


def _largest(arrays: list[np.ndarray]) -> np.ndarray:
    """Largest absolute value of each step [steps]; infinite where one is not finite."""
    largest = np.max([np.abs(array).reshape(len(array), -1).max(axis=1) for array in arrays], axis=0)
    return np.where(np.isnan(largest), np.inf, largest)
