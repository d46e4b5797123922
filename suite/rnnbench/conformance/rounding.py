"""The rounding error that is expected in a dtype, step by step, and where no comparison is possible.

It is measured on the network itself: computed in the dtype with several orders of summation, and in float64 with random
roundings. Many runs are made at once, as rows of one batch (`rnn/arithmetic.py`). The largest error of all these runs
counts. A long run is measured at its beginning and extrapolated.

Where x and h enter products in 8 bits, the error of float32 alone and that of the 8 bits are measured apart. That what
is beyond a fixed range saturates is no error: the reference does the same. The
weights of the reference are the dequantised ones, so their quantisation is no error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rnnbench.conformance.tolerance import FACTOR
from rnnbench.rnn import (
    DTYPES,
    Activations,
    Arithmetic,
    Network,
    RandomRounding,
    Trajectory,
    Weights,
    run_in,
    run_reference,
)

SUMMATIONS = (0, 1)
"""Seeds of the orders of summation that are tried."""
ROWS, MOST_ROWS = 8, 64
"""Fewest rows of the batch that are measured, spread evenly over it, and most rows where they are cheap. In a network
of few units, each a relu that is 0, all rows but one may have no error."""
SAMPLES = 16
"""Runs with random roundings, over these rows. With fewer, a network of one unit may have no error in any of them."""
MEASURED_STEPS = 512
"""Most steps that are measured. Most networks have forgotten their start by then."""
WORK = 2e9
"""Multiplications of a weight and a value that a measurement may take. With large weights fewer steps are measured."""
INT8_FACTORS: Mapping[Activations, float] = {"dynamic": 5.0, "static": 2.0}
"""Largest error that passes, in units of the largest error seen of random roundings to 8 bits. One honest program is
one such rounding: those measured were off by up to 1, and by up to 3.3 with 7 bits (torch's `reduce_range`). Where the
ranges are fixed, nobody has fewer bits."""
CHEAP = 1e8
"""Multiplications up to which more than the fewest rows are measured."""
FEWEST_STEPS = 32
"""Steps that are always measured, if the run has as many."""


@dataclass(frozen=True)
class Rounding:
    """The rounding error expected in a run, by step."""

    measured: np.ndarray
    """[steps]: the largest error up to each step. Infinite from the step on where `incomparable` is true."""
    dtype: str

    def at(self, step: int) -> float:
        """The error at a step. Beyond the measured steps it is extrapolated.

        Its growth over the last half of the measured steps gives a power of the steps, of 1 at most. An error that grew
        faster grows on as an exponential.
        """
        measured_steps = len(self.measured)
        last = float(self.measured[-1])
        if step < measured_steps:
            return float(self.measured[step])
        if last == 0:  # a counter, whose inputs and state are at most 4
            return 0.0 if 4 * (step + 2) <= _largest_exact_integer(self.dtype) else np.inf
        growth = (
            float(np.log2(last / self.measured[measured_steps // 2 - 1]))
            if measured_steps > 1 and last < np.inf
            else 0.0
        )
        steps = (step + 1) / measured_steps
        doublings = np.log2(steps) if growth <= 1 else 2 * (steps - 1)
        with np.errstate(over="ignore"):
            return float(last * np.exp2(growth * doublings))

    def over(self, steps: int) -> np.ndarray:
        """The error at each of the first steps [steps]."""
        return np.array([self.at(step) for step in range(steps)])


def steps_measured(network: Network, steps: int) -> int:
    """How many steps are measured, from the first, of a run of `steps` steps."""
    affordable = int(min(WORK / ((ROWS + SAMPLES) * network.reference_work), MEASURED_STEPS))
    return min(steps, max(FEWEST_STEPS, affordable))


def _rows_measured(network: Network, steps: int, batch: int) -> np.ndarray:
    """Indices of the rows that are measured [rows]. Each is run exactly, and with random roundings."""
    cheap = int(CHEAP / (2 * steps * network.reference_work))
    number = min(max(ROWS, cheap), MOST_ROWS)
    return np.unique(np.linspace(0, batch - 1, number).round().astype(int))


def expected_rounding(
    network: Network,
    weights: Weights,
    x: np.ndarray,
    state: Mapping[str, np.ndarray] | None,
    dtype: str,
    seed: int,
    lengths: np.ndarray | None = None,
) -> Rounding:
    """Measure the rounding of a run over x [steps, batch, input] from `state` (zeros where None).

    With `lengths` [batch], each row ends after so many steps.
    """
    return _measure(network, weights, x, state, dtype, seed, lengths)[0]


def run_and_rounding(
    network: Network,
    weights: Weights,
    x: np.ndarray,
    state: Mapping[str, np.ndarray] | None,
    dtype: str,
    seed: int,
    lengths: np.ndarray | None = None,
) -> tuple[Trajectory, Rounding]:
    """As `expected_rounding`, with the run itself: where all of it is measured, it is among the runs that are made."""
    rounding, exact = _measure(network, weights, x, state, dtype, seed, lengths)
    if exact is None:
        exact = run_reference(network, weights, x, state, lengths=lengths)
    return exact, rounding


def _measure(
    network: Network,
    weights: Weights,
    x: np.ndarray,
    state: Mapping[str, np.ndarray] | None,
    dtype: str,
    seed: int,
    lengths: np.ndarray | None,
) -> tuple[Rounding, Trajectory | None]:
    """The rounding, and the exact run where all of its rows and steps were measured."""
    if network.is_exact:
        return _of_counter(x, state, dtype), None
    steps = steps_measured(network, len(x))
    runs = _Runs(network, weights, x[:steps], state, lengths, _rows_measured(network, steps, x.shape[1]))
    kind = DTYPES[dtype]
    found = runs.measured(kind.base or network.arithmetic_of(dtype), seed)
    error = np.maximum(found.error, kind.unit * found.scale)
    if activations := kind.activations or network.activations:
        rounded = runs.measured(f"int8_{activations}", seed)
        error = error + INT8_FACTORS[activations] / FACTOR * rounded.error
    error = np.maximum.accumulate(error)
    if not network.can_stream:
        error[:] = error[-1]
    meaningless = incomparable(error, found.scale)
    if found.exact.margin is not None:
        meaningless |= undecided(error, found.exact.margin)
    # A program may flush results below the smallest normal number of float32 to zero. No backend does so in float16.
    flushed = min(kind.tiny, DTYPES["float32"].tiny)
    rounding = Rounding(np.where(meaningless, np.inf, np.maximum(error, flushed / FACTOR)), dtype)
    is_whole = steps == len(x) and len(runs.rows) == x.shape[1]
    return rounding, found.exact if is_whole else None


class _Measured(NamedTuple):
    """Of the runs in one arithmetic, by step."""

    error: np.ndarray
    """[steps]: the largest error of any run."""
    scale: np.ndarray
    """[steps]: the largest value up to each step."""
    exact: Trajectory
    """The rows without rounding."""


@dataclass(frozen=True)
class _Runs:
    """Runs of the reference over x [steps, batch, input], of some rows of its batch."""

    network: Network
    weights: Weights
    x: np.ndarray
    state: Mapping[str, np.ndarray] | None
    lengths: np.ndarray | None
    rows: np.ndarray

    def measured(self, dtype: str, seed: int) -> _Measured:
        count = len(self.rows)
        copies = np.resize(np.arange(count), max(SAMPLES, count))
        noisy = self._run(RandomRounding(dtype, seed, count), np.concatenate([self.rows, self.rows[copies]]))
        sampled, whole = self._arrays(noisy)
        exact, counts = ([array[..., :count, :] for array in arrays] for arrays in (sampled, whole))
        error = _largest([array[..., count:, :] - e[..., copies, :] for array, e in zip(sampled, exact, strict=True)])
        error += _differing([array[..., count:, :] for array in whole], [e[..., copies, :] for e in counts])
        for summation in SUMMATIONS:
            got, got_whole = self._arrays(self._run(Arithmetic(dtype, summation), self.rows))
            error = np.maximum(error, _largest([a - e for a, e in zip(got, exact, strict=True)]))
            error += _differing(got_whole, counts)
        return _Measured(error, np.maximum.accumulate(_largest(exact)), _first_rows(noisy, count))

    def _arrays(self, run: Trajectory) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Outputs and states by step, all that a backend may return: those that are rounded, and whole numbers."""
        states = run.states or {}
        rounds = {name: self.network.state_dtype(name, "float32") in DTYPES for name in states}
        whole = [array for name, array in states.items() if not rounds[name]]
        return [run.y, *(array for name, array in states.items() if rounds[name])], whole

    def _run(self, arithmetic: Arithmetic, rows: np.ndarray) -> Trajectory:
        initial = None if self.state is None else {name: array[:, rows] for name, array in self.state.items()}
        ends = None if self.lengths is None else np.minimum(self.lengths[rows], len(self.x))
        return run_in(arithmetic, self.network, self.weights, self.x[:, rows], initial, ends)


def _first_rows(run: Trajectory, count: int) -> Trajectory:
    """The first rows of a run's batch."""
    return Trajectory(
        y=run.y[:, :count],
        final={name: array[:, :count] for name, array in run.final.items()},
        states=None if run.states is None else {name: array[:, :, :count] for name, array in run.states.items()},
        margin=None if run.margin is None else run.margin[:, :count],
    )


def undecided(error: np.ndarray, margin: np.ndarray) -> np.ndarray:
    """At which steps [steps] a right program may decide otherwise, given the error expected and the margins.

    `margin` [steps, rows] is `Trajectory.margin`. Two scores may each be off by FACTOR errors. From the first such step
    on, what a program computes depends on its rounding.
    """
    close = margin.min(axis=1) <= 2 * FACTOR * error
    from_there_on: np.ndarray = np.logical_or.accumulate(close)
    return from_there_on


def _of_counter(x: np.ndarray, state: Mapping[str, np.ndarray] | None, dtype: str) -> Rounding:
    """No rounding while the dtype has every integer up to the largest count. Beyond, nothing can be compared."""
    counts = np.cumsum(x, axis=0, dtype=np.float64) + (0.0 if state is None else state["h"][0])
    largest = np.maximum.accumulate(_largest([counts]))
    return Rounding(np.where(largest <= _largest_exact_integer(dtype), 0.0, np.inf), dtype)


def _largest_exact_integer(dtype: str) -> float:
    """Every integer up to this one is a number of the dtype."""
    return 2.0 ** DTYPES[dtype].digits


def incomparable(error: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """At which steps [steps] a comparison is meaningless, given the largest error and the largest value up to each.

    From one such step on, all are. Either the error, relative to the values, has grown from its first size until the
    tolerance is as large as the values (chaos), or the values exceed the dtype's range.
    """
    share = np.divide(error, scale, out=np.zeros_like(error), where=scale > 0)
    first = share[share > 0][:1]
    meaningless = ~np.isfinite(error) | ((share >= 1 / FACTOR) & (share >= FACTOR * first.sum()))
    from_there_on: np.ndarray = np.logical_or.accumulate(meaningless)
    return from_there_on


def _differing(arrays: list[np.ndarray], exact: list[np.ndarray]) -> np.ndarray | float:
    """Infinite at each step [steps] where whole numbers differ, else zero: from there on nothing can be compared."""
    differs = [(a != e).reshape(len(a), -1).any(axis=1) for a, e in zip(arrays, exact, strict=True)]
    return np.where(np.any(differs, axis=0), np.inf, 0.0) if differs else 0.0


def _largest(arrays: list[np.ndarray]) -> np.ndarray:
    """Largest absolute value at each step [steps]. Infinite where a value is NaN."""
    largest = np.max([np.abs(array).reshape(len(array), -1).max(axis=1) for array in arrays], axis=0)
    return np.where(np.isnan(largest), np.inf, largest)
