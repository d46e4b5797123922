"""Reference trajectories: the right results of one model and workload in float64, computed once and shared by trials.

There are three. One run of the stream starts from zeros, another one from `start`, a state that is not zero. The third
feeds the ring, which has RING distinct chunks, over and over from `start`, as the timed path does. With them comes the
rounding error that is expected in the trial's dtype.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from rnnbench.backends import Arrays
from rnnbench.cases import Trial
from rnnbench.conformance.array_files import ArrayStore, key_digest
from rnnbench.conformance.kept_references import KeptReferences
from rnnbench.conformance.ring_trajectory import PASSES, RING, RingReference, RingTrajectory, side_by_side
from rnnbench.conformance.rounding import Rounding, Y, expected_rounding, run_and_rounding, steps_measured
from rnnbench.rnn import (
    Trajectory,
    Weights,
    draw_inputs,
    draw_lengths,
    draw_state,
    draw_weights,
    rounded,
    run_reference,
)

WAIT_SHARE = 0.5
"""Share of the limit of a reference for which a worker waits for another one that computes it. The rest is for
computing it itself."""
LONG_RING = 64
"""If the stream is shorter than the ring, rounding is measured over at most this many steps of the ring."""

Rows = np.ndarray | slice
"""An index of rows of a batch."""


@dataclass(frozen=True)
class ReferenceRun:
    """Some inputs and the reference's outputs."""

    x: np.ndarray
    """[steps, batch, input]."""
    y: np.ndarray
    """[steps, batch, width]."""
    rounding: np.ndarray
    """[steps, 1, width]: the largest rounding error of y that is expected up to each step."""
    final: Mapping[str, np.ndarray] = field(default_factory=dict)
    """The state after the last step, by name."""
    final_rounding: Mapping[str, np.ndarray] = field(default_factory=dict)
    """The rounding error that is expected of each array of `final`."""


class ReferenceTrajectories:
    """The reference trajectories of one trial. Trials that need the same ones share their files under `directory`."""

    def __init__(self, trial: Trial, directory: Path, kept: KeptReferences | None = None) -> None:
        """`kept` has the files of earlier runs; None if this run computes everything."""
        self.trial = trial
        self.directory = directory
        self.is_stream = trial.strategy.state != "none"
        """Whether a call continues from the state of the call before."""
        self._store = ArrayStore(directory, kept, WAIT_SHARE * trial.limits.reference)

    @property
    def seconds(self) -> float:
        """Seconds spent on computing trajectories that were not in a file."""
        return self._store.seconds

    @cached_property
    def weights(self) -> Weights:
        return draw_weights(self.trial.model, self.trial.seed, self.trial.dtype)

    @cached_property
    def x(self) -> np.ndarray:
        """The stream [steps, batch, input]."""
        return self._inputs(self.trial.steps)

    @cached_property
    def ring(self) -> list[Arrays]:
        """The inputs of RING calls: `x` [chunk, batch, input], and `lengths` [batch] if the trial is ragged."""
        x = self._inputs(RING * self.trial.strategy.chunk)
        if self.lengths is None:
            return [{"x": part} for part in np.split(x, RING)]
        parts = zip(np.split(x, RING), self.lengths, strict=True)
        return [{"x": part, "lengths": lengths} for part, lengths in parts]

    @cached_property
    def lengths(self) -> np.ndarray | None:
        """The lengths of the rows of each chunk of the ring [RING, batch]; None unless the trial is ragged."""
        trial = self.trial
        return draw_lengths(trial.strategy.chunk, trial.batch, RING, trial.seed) if trial.lengths == "ragged" else None

    @cached_property
    def start(self) -> dict[str, np.ndarray]:
        """A state that is not zero, by name: [layers·directions, batch, size]."""
        return draw_state(self.trial.model, self.trial.batch, self.trial.seed, self.trial.dtype)

    @cached_property
    def zeros(self) -> dict[str, np.ndarray]:
        return {name: np.zeros_like(array) for name, array in self.start.items()}

    @cached_property
    def expected(self) -> np.ndarray | None:
        """y [steps, batch, width] of the stream from zeros that the user expects; None if the user expects none."""
        y = self.trial.model.expected_y(self.trial.batch)
        return None if y is None else y[: self.trial.steps]

    def compute(self) -> None:
        """Compute the trajectories of most checks, unless they are in files. This takes longer than everything else."""
        if self.is_stream:
            self.from_zeros()
        _ = self.ring_trajectory, self.roundings

    def not_finite(self) -> str:
        """Why no program can be compared: the reference's first step has NaN or infinities. Empty if it has none."""
        run = self.from_zeros() if self.is_stream else None
        first = self.ring_trajectory.y[:, 0] if run is None else run.y[0]
        arrays = {"y": first, **({} if run is None or run.states is None else {n: a[0] for n, a in run.states.items()})}
        wrong = [name for name, array in arrays.items() if not np.isfinite(array).all()]
        if not wrong:
            return ""
        weights = self.trial.model.weights_not_finite()
        cause = f"weights of the file are NaN or infinite: {weights}" if weights else "look for a division by zero"
        return (
            f"the float64 reference has NaN or infinities in {', '.join(wrong)} after one step from zeros, so no "
            f"program can be compared with it; {cause}"
        )

    def from_zeros(self) -> Trajectory:
        """The stream from zeros."""
        return self._stream_trajectory(0)

    def from_start(self) -> Trajectory:
        """The stream from `start`."""
        return self._stream_trajectory(1)

    @cached_property
    def roundings(self) -> Mapping[str, Rounding]:
        """The rounding expected in any run over inputs like those of the stream and the ring, of Y and each state."""
        if self.is_stream:
            # The length of the stream or of a short ring, rounded up, so that most chunks of a case share the file.
            ring = min(PASSES * RING * self.trial.strategy.chunk, LONG_RING)
            steps = 1 << (max(self.trial.steps, ring) - 1).bit_length()
            steps = steps_measured(self.trial.model, steps)
            return self._roundings(*self._twice(self._inputs(steps)))
        return self._roundings(side_by_side(self.ring), None)

    def rounding_at(self, step: int, array: str = Y) -> np.ndarray:
        """The expected rounding of each column of y, or of a state, at a step of a run. Infinite if a comparison is
        meaningless."""
        return self.roundings[array].at(step)

    def scaled(self, scale: float) -> ReferenceRun:
        """The run over the stream's inputs times `scale`; with state `none`, over one call.

        It covers only steps whose rounding is measured: if gates are driven to 0 or 1, a later step with a gate in
        between may be coarser than all earlier ones.
        """
        chunk = self.trial.strategy.chunk
        measured = steps_measured(self.trial.model, self.trial.steps)
        steps = max(measured - measured % chunk, min(chunk, measured)) if self.is_stream else chunk
        return self.run(rounded(self._inputs(steps).astype(np.float64) * scale, self.trial.dtype))

    def run(self, x: np.ndarray, state: Arrays | None = None, dtype: str = "") -> ReferenceRun:
        """The run over x [steps, batch, input] from `state` (None: zeros), with the rounding of `dtype` (the trial's).

        It is kept in a file named by the values of x, state and lengths, which trials of one model share. If the trial
        is ragged, the lengths are those of the ring's first chunk, and x must be as long as this chunk. Equal rows are
        run once.
        """
        lengths = None if self.lengths is None else self.lengths[0]
        inputs = {"x": x, **(state or {}), **({} if lengths is None else {"lengths": lengths[None]})}
        first, of_row = _distinct_rows(inputs)

        def compute() -> dict[str, np.ndarray]:
            trial, ends = self.trial, None if lengths is None else lengths[first]
            begins = None if state is None else {name: array[:, first] for name, array in state.items()}
            exact, expected = run_and_rounding(
                trial.model, self.weights, x[:, first], begins, dtype or trial.dtype, trial.seed, ends
            )
            final = {f"final_{name}": array for name, array in exact.final.items()}
            rounding = {f"rounding_{name}": expected[name].at(len(x) - 1) for name in exact.final}
            return {"y": exact.y, "rounding": expected[Y].over(len(x)), **final, **rounding}

        key = {**self.stream_key, "steps": len(x), "inputs": _digest(inputs), "rounding": dtype}
        arrays = self._store.get("run", key, compute)
        names = [name.removeprefix("final_") for name in arrays if name.startswith("final_")]
        final = {name: arrays[f"final_{name}"][:, of_row] for name in names}
        final_rounding = {name: arrays[f"rounding_{name}"] for name in names}
        return ReferenceRun(x, arrays["y"][:, of_row], arrays["rounding"], final, final_rounding)

    @cached_property
    def ring_trajectory(self) -> RingTrajectory:
        arrays = self._store.get("ring", self._ring_key, self._compute_ring)
        return RingTrajectory.of(arrays, list(self.start) if self.is_stream else [])

    @property
    def late_file(self) -> Path:
        """The file with the time limit, in seconds, that has ended this computation, if one has."""
        return self.directory / f"late-{key_digest(self._ring_key)}"

    @property
    def _ring_key(self) -> dict[str, object]:
        """Everything that the ring's trajectory depends on."""
        return {**self.stream_key, "chunk": self.trial.strategy.chunk, "streams": self.is_stream}

    @property
    def stream_key(self) -> dict[str, object]:
        """Everything that the stream and its trajectories depend on."""
        trial = self.trial
        return {
            "model": trial.model.params,
            "steps": trial.steps,
            "batch": trial.batch,
            "dtype": trial.dtype,
            "seed": trial.seed,
            "lengths": trial.lengths,
        }

    def _inputs(self, steps: int) -> np.ndarray:
        return draw_inputs(self.trial.model, steps, self.trial.batch, self.trial.seed, self.trial.dtype)

    def _stream_trajectory(self, index: int) -> Trajectory:
        """One of the two runs over the stream. Both are computed together, as rows of one batch."""
        arrays = self._store.get("stream", self.stream_key, self._compute_stream)
        rows = slice(index * self.trial.batch, (index + 1) * self.trial.batch)
        names = list(self.start)
        return Trajectory(
            y=arrays["y"][:, rows],
            final={n: arrays[f"final_{n}"][:, rows] for n in names},
            states={n: arrays[f"states_{n}"][:, :, rows] for n in names} if f"states_{names[0]}" in arrays else None,
            margin=arrays["margin"][:, rows] if "margin" in arrays else None,
        )

    def _twice(self, x: np.ndarray) -> tuple[np.ndarray, Arrays]:
        """x twice, as rows of one batch, with the two states that the runs start from: zeros and `start`."""
        state = {n: np.concatenate([self.zeros[n], self.start[n]], axis=1) for n in self.start}
        return np.concatenate([x, x], axis=1), state

    def _compute_stream(self) -> dict[str, np.ndarray]:
        run = run_reference(self.trial.model, self.weights, *self._twice(self.x))
        arrays = {"y": run.y, **{f"final_{n}": a for n, a in run.final.items()}}
        if run.states is not None:
            arrays |= {f"states_{n}": a for n, a in run.states.items()}
        if run.margin is not None:
            arrays["margin"] = run.margin
        return arrays

    def _roundings(self, x: np.ndarray, state: Arrays | None) -> Mapping[str, Rounding]:
        trial = self.trial

        def compute() -> dict[str, np.ndarray]:
            lengths = None if self.lengths is None else self.lengths.ravel()
            expected = expected_rounding(trial.model, self.weights, x, state, trial.dtype, trial.seed, lengths)
            return {f"measured_{name}": rounding.measured for name, rounding in expected.items()}

        key = {**self.stream_key, "steps": len(x), "streams": self.is_stream}
        arrays = self._store.get("rounding", key, compute)
        forgets = self.ring_trajectory.settled_after > 0
        return {name.removeprefix("measured_"): Rounding(array, trial.dtype, forgets) for name, array in arrays.items()}

    def _compute_ring(self) -> dict[str, np.ndarray]:
        ring = RingReference(self.trial, self.weights, self.ring, self.start)
        return ring.stream() if self.is_stream else ring.separate_calls(self.lengths)


def _distinct_rows(arrays: Arrays) -> tuple[Rows, Rows]:
    """For arrays [any, batch, …], the distinct rows, and the index of each row among them."""
    numbers: dict[bytes, int] = {}
    of_row, batch = [], next(iter(arrays.values())).shape[1]
    for row in range(batch):
        digest = hashlib.sha256()
        for array in arrays.values():
            digest.update(array[:, row].tobytes())
        of_row.append(numbers.setdefault(digest.digest(), len(numbers)))
    if len(numbers) == batch:
        return slice(None), slice(None)
    return np.unique(of_row, return_index=True)[1], np.array(of_row)


def _digest(arrays: Arrays) -> str:
    """A digest of names and values."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()[:16]
