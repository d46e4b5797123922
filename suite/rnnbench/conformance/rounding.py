"""The rounding error that is expected in a dtype, step by step, and the steps at which no comparison is possible.

It is measured on the network itself, which is run in the dtype with several orders of summation, and in float64 with
random roundings. The runs are rows of one batch (`rnn/arithmetic.py`). The largest error of all runs counts. It is
measured for each column of y and of each state: one may be a million times as large as another. A long run is measured
at its beginning and extrapolated.

If x and h enter products as int8, the error of float32 and the error of int8 are measured separately. Saturation of
values beyond a fixed range is no error, since the reference does the same. Nor is the quantisation of weights: the
reference has the dequantised weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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

Y = ""
"""The name of y among the arrays of a run. A state may be called y."""
SUMMATIONS = (0, 1)
"""Seeds of the orders of summation that are tried."""
ROWS, MOST_ROWS = 8, 64
"""The least and the most rows of the batch that are measured, spread evenly over it. More than the least are measured
if they are cheap, or have fixed ranges: in a network of few relu units, all rows but one may have no error."""
SAMPLES = 16
"""Runs with random roundings over these rows. With fewer, a network of one unit may have no error in any of them."""
MEASURED_STEPS = 512
"""The most steps that are measured. Most networks have forgotten their start by then."""
WORK = 2e9
"""The most multiplications of a weight and a value in one measurement. With large weights fewer steps are measured."""
INT8_FACTORS: Mapping[Activations, float] = {"dynamic": 5.0, "static": 2.0}
"""The largest int8 error that passes, in units of the largest error of random roundings to 8 bits. Honest programs were
off by up to 1, and by up to 3.3 with 7 bits (torch's `reduce_range`). With fixed ranges no program has fewer than 8."""
CHEAP = 1e8
"""Multiplications up to which more than ROWS rows are measured."""
FEWEST_STEPS = 32
"""Steps that are always measured, if the run has as many."""


@dataclass(frozen=True)
class Rounding:
    """The rounding error expected of each column of an array in a run, by step."""

    measured: np.ndarray
    """[steps, …, 1, columns], with 1 in the place of the batch: the largest error up to each step. Infinite from the
    first incomparable step on, or from the first one at which the column is beyond the dtype's range."""
    dtype: str
    forgets: bool = False
    """Whether the network forgets its start, and so its errors too: they do not grow exponentially."""

    def at(self, step: int) -> np.ndarray:
        """The error […, 1, columns] at a step. Beyond the measured steps it is extrapolated.

        It grows on as it grew over the second half of the measured steps: as a power of the steps. A power above 1 may
        be the beginning of an exponential, and counts as one unless the network forgets. A column grows at least as
        fast as the largest error of all columns, and not beyond it.
        """
        measured_steps = len(self.measured)
        last: np.ndarray = self.measured[min(step, measured_steps - 1)]
        if step < measured_steps:
            return last
        if not last.any():  # a counter, whose inputs and state are at most 4
            return np.full_like(last, 0.0 if 4 * (step + 2) <= _largest_exact_integer(self.dtype) else np.inf)
        known = np.isfinite(last)
        if measured_steps == 1 or not known.any():
            return last
        half, steps = self.measured[measured_steps // 2 - 1], (step + 1) / measured_steps
        whole = last[known].max()
        growth_of_whole = np.log2(whole / half[known].max())
        with np.errstate(over="ignore", invalid="ignore"):
            growth = np.maximum(np.log2(last / half), growth_of_whole)
            grown = last * np.exp2(self._doublings(growth, steps))
            most = whole * np.exp2(self._doublings(growth_of_whole, steps))
        least: np.ndarray = np.where(known, np.minimum(grown, most), np.inf)
        return least

    def over(self, steps: int) -> np.ndarray:
        """The error at each of the first steps [steps, …, 1, columns]."""
        return np.stack([self.at(step) for step in range(steps)])

    def _doublings(self, growth: np.ndarray, steps: float) -> np.ndarray:
        """How often an error doubles after what was measured, which is one of `steps` parts. It doubled `growth` times
        over the second half."""
        is_power = self.forgets | (growth <= 1)
        return growth * np.where(is_power, np.log2(steps), 2 * (steps - 1))


def steps_measured(network: Network, steps: int) -> int:
    """The number of steps that are measured, from the first, in a run of `steps` steps."""
    affordable = int(min(WORK / ((ROWS + SAMPLES) * network.reference_work), MEASURED_STEPS))
    return min(steps, max(FEWEST_STEPS, affordable))


def _rows_measured(network: Network, steps: int, batch: int, activations: Activations) -> np.ndarray:
    """Indices of the rows that are measured [rows]. Each is run exactly, and with random roundings.

    In fixed ranges the error of a row is its own: equal numbers are all rounded up, or all down, and add up.
    """
    cheap = int(CHEAP / (2 * steps * network.reference_work))
    number = MOST_ROWS if activations == "static" else min(max(ROWS, cheap), MOST_ROWS)
    return np.unique(np.linspace(0, batch - 1, number).round().astype(int))


def expected_rounding(
    network: Network,
    weights: Weights,
    x: np.ndarray,
    state: Mapping[str, np.ndarray] | None,
    dtype: str,
    seed: int,
    lengths: np.ndarray | None = None,
) -> Mapping[str, Rounding]:
    """Measure the rounding of a run over x [steps, batch, input] from `state` (None: zeros): of Y and each state.

    With `lengths` [batch], each row ends after so many steps.
    """
    return _measure(network, weights, x, state, dtype, seed, lengths).of_array


def run_and_rounding(
    network: Network,
    weights: Weights,
    x: np.ndarray,
    state: Mapping[str, np.ndarray] | None,
    dtype: str,
    seed: int,
    lengths: np.ndarray | None = None,
) -> tuple[Trajectory, Mapping[str, Rounding]]:
    """As `expected_rounding`, and the run itself. If all of it is measured, it is not computed twice."""
    measured = _measure(network, weights, x, state, dtype, seed, lengths)
    exact = measured.exact
    if exact is None:
        exact = run_reference(network, weights, x, state, lengths=lengths)
    return exact, measured.of_array


def _measure(
    network: Network,
    weights: Weights,
    x: np.ndarray,
    state: Mapping[str, np.ndarray] | None,
    dtype: str,
    seed: int,
    lengths: np.ndarray | None,
) -> _Measured:
    if network.is_exact:
        of_counter = _of_counter(x, state, dtype)
        return _Measured({Y: of_counter, **dict.fromkeys(network.state_shapes(1), of_counter)}, None)
    steps, kind = steps_measured(network, len(x)), DTYPES[dtype]
    activations = kind.activations or network.activations
    rows = _rows_measured(network, steps, x.shape[1], activations)
    runs = _Runs(network, weights, x[:steps], state, lengths, rows)
    measured = runs.measured(kind.base or network.arithmetic_of(dtype), seed)
    errors = {name: _of_columns(error, kind.unit * measured.scale[name]) for name, error in measured.error.items()}
    if activations:
        rounded = runs.measured(f"int8_{activations}", seed)
        share = INT8_FACTORS[activations] / FACTOR
        errors = {name: error + share * _of_columns(rounded.error[name]) for name, error in errors.items()}
    if not network.can_stream:
        errors = {name: np.full_like(error, error[-1]) for name, error in errors.items()}
    largest = np.max([_whole(error) for error in errors.values()], axis=0)
    scale = np.max([_whole(np.where(np.isfinite(errors[n]), a, 0)) for n, a in measured.scale.items()], axis=0)
    in_range = np.all([np.isfinite(e).reshape(steps, -1).all(axis=1) for e in errors.values()], axis=0)
    of_all = np.where(in_range, largest, np.inf)
    meaningless = incomparable(largest, scale)
    if measured.exact.margin is not None:
        meaningless |= undecided(of_all, measured.exact.margin)
    # A program may flush results below the smallest normal number of float32 to zero. No backend does so in float16.
    flushed = min(kind.tiny, DTYPES["float32"].tiny)

    def rounding(error: np.ndarray) -> Rounding:
        unknown = meaningless.reshape(-1, *[1] * (error.ndim - 1)) | ~np.isfinite(error)
        return Rounding(np.where(unknown, np.inf, np.maximum(error, flushed / FACTOR)), dtype)

    is_whole = steps == len(x) and len(runs.rows) == x.shape[1]
    others = dict.fromkeys(measured.exact.final, rounding(of_all[:, None, None]))
    of_array = {**others, **{name: rounding(error) for name, error in errors.items()}}
    return _Measured(of_array, measured.exact if is_whole else None)


class _Measured(NamedTuple):
    """The rounding of a run."""

    of_array: Mapping[str, Rounding]
    """By array: Y and the states. A state of whole numbers, or whose steps are not known, has the largest of all."""
    exact: Trajectory | None
    """The run without rounding, if all of its rows and steps were measured."""


class _RunResults(NamedTuple):
    """The results of the runs in one arithmetic, by step."""

    error: Mapping[str, np.ndarray]
    """[steps, …, 1, columns] by array, y and the rounded states: the largest error of any run up to each step."""
    scale: Mapping[str, np.ndarray]
    """[steps, …, 1, columns] by array: the largest value up to each step."""
    exact: Trajectory
    """The rows without rounding."""


@dataclass(frozen=True)
class _Runs:
    """Runs of the reference over some rows of x [steps, batch, input]."""

    network: Network
    weights: Weights
    x: np.ndarray
    state: Mapping[str, np.ndarray] | None
    lengths: np.ndarray | None
    rows: np.ndarray

    def measured(self, dtype: str, seed: int) -> _RunResults:
        count = len(self.rows)
        copies = np.resize(np.arange(count), max(SAMPLES, count))
        noisy = self._run(RandomRounding(dtype, seed, count), np.concatenate([self.rows, self.rows[copies]]))
        sampled, whole = self._arrays(noisy)
        exact, counts = ({name: array[..., :count, :] for name, array in each.items()} for each in (sampled, whole))
        errors = {
            name: _largest(array[..., count:, :] - exact[name][..., copies, :]) for name, array in sampled.items()
        }
        differing = _differing((array[..., count:, :], counts[name][..., copies, :]) for name, array in whole.items())
        for summation in SUMMATIONS:
            got, got_whole = self._arrays(self._run(Arithmetic(dtype, summation), self.rows))
            errors = {name: np.maximum(error, _largest(got[name] - exact[name])) for name, error in errors.items()}
            differing = differing + _differing((array, counts[name]) for name, array in got_whole.items())
        errors = {name: error + np.reshape(differing, (-1, *[1] * (error.ndim - 1))) for name, error in errors.items()}
        errors = {name: np.maximum.accumulate(error) for name, error in errors.items()}
        scale = {name: np.maximum.accumulate(_largest(array)) for name, array in exact.items()}
        return _RunResults(errors, scale, _first_rows(noisy, count))

    def _arrays(self, run: Trajectory) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """y and the states by step, by name: first those that are rounded, then those of whole numbers."""
        states = run.states or {}
        rounded = {name: a for name, a in states.items() if self.network.state_dtype(name, "float32") in DTYPES}
        whole = {name: array for name, array in states.items() if name not in rounded}
        return {Y: run.y, **rounded}, whole

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
    """The steps [steps] at which a right program may decide otherwise, given the expected error and the margins.

    `margin` [steps, rows] is `Trajectory.margin`. Two scores may each be off by FACTOR errors. After the first such
    step, a program's results depend on its rounding, so all later steps are among them.
    """
    close = margin.min(axis=1) <= 2 * FACTOR * error
    from_there_on: np.ndarray = np.logical_or.accumulate(close)
    return from_there_on


def _of_counter(x: np.ndarray, state: Mapping[str, np.ndarray] | None, dtype: str) -> Rounding:
    """The rounding of a counter: zero while the dtype has every integer up to the largest count, and then infinite."""
    counts = np.cumsum(x, axis=0, dtype=np.float64) + (0.0 if state is None else state["h"][0])
    largest = np.maximum.accumulate(_largest(counts))
    is_exact = _whole(largest)[:, None, None] <= _largest_exact_integer(dtype)
    return Rounding(np.where(is_exact, 0.0, np.inf), dtype)


def _largest_exact_integer(dtype: str) -> float:
    """The integer up to which the dtype has every integer."""
    return 2.0 ** DTYPES[dtype].digits


def incomparable(error: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The steps [steps] at which a comparison is meaningless, given the largest error and value up to each step.

    All steps after such a step are among them: the error relative to the values has grown until the tolerance is as
    large as the values (chaos).
    """
    share = np.divide(error, scale, out=np.zeros_like(error), where=scale > 0)
    first = share[share > 0][:1]
    meaningless = (share >= 1 / FACTOR) & (share >= FACTOR * first.sum())
    from_there_on: np.ndarray = np.logical_or.accumulate(meaningless)
    return from_there_on


def _differing(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray | float:
    """Infinite at each step [steps] at which whole numbers differ, so that nothing can be compared; zero elsewhere."""
    differs = [(a != e).reshape(len(a), -1).any(axis=1) for a, e in pairs]
    return np.where(np.any(differs, axis=0), np.inf, 0.0) if differs else 0.0


def _largest(array: np.ndarray) -> np.ndarray:
    """The largest absolute value of each column at each step [steps, …, 1, columns]. NaN if a value is NaN."""
    largest: np.ndarray = np.abs(array).max(axis=-2, keepdims=True)
    return largest


def _whole(of_columns: np.ndarray) -> np.ndarray:
    """The largest of all columns at each step [steps]; of those that are finite."""
    finite = np.where(np.isfinite(of_columns), of_columns, 0)
    largest: np.ndarray = finite.reshape(len(finite), -1).max(axis=1)
    return largest


def _of_columns(error: np.ndarray, least: np.ndarray | float = 0.0) -> np.ndarray:
    """The error of each column, and of the whole array for a column in which no run has had one yet.

    The relu of a unit may be 0, or its sigmoid 1, in every run, and not in the program that is compared.
    """
    errors = np.maximum(error, least)
    whole = _whole(errors).reshape(-1, *[1] * (error.ndim - 1))
    return np.where(error == 0, whole, errors)
