"""What every trial of one model and workload must compute: the float64 trajectories, worked out once and shared.

Three trajectories are kept. The stream is fed from zeros and, beside it, from a state that is not zero. The ring is
RING distinct chunks fed over and over from that state, as the timed path is fed. Beside them stands the error that
rounding alone is expected to make in the trial's own dtype.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from rnnbench.backends.base import Arrays
from rnnbench.cases.trial import Trial
from rnnbench.conformance.rounding import Rounding, expected_rounding, steps_measured
from rnnbench.rnn.dtypes import rounded
from rnnbench.rnn.reference import Trajectory, run_reference
from rnnbench.rnn.weights import Weights, draw_inputs, draw_lengths, draw_state, draw_weights

RING = 8
"""Distinct chunks of a ring. Fed one chunk for ever, an LSTM reaches its fixed point in some 40 calls."""
PASSES = 2
"""Passes over the ring that are followed exactly: the second shows whether the ring wraps where it should."""
LONG_RING = 64
"""Steps of a ring over which rounding is measured where the stream is shorter."""
SETTLE_STEPS = 4096
"""Steps after which a ring that has not come to repeat itself is taken not to: its long-run state is not checked."""
SETTLED, SETTLED_FLOAT64 = 1e-12, 1e-15
"""Largest change of the state between passes at which the ring repeats itself: far below float32's rounding; for a
trial in float64, as near as the reference's own rounding lets it come."""


@dataclass(frozen=True)
class RingOracle:
    """Outputs and states after each bound call that starts from the given state at the ring's first chunk."""

    y: np.ndarray
    """[calls, chunk, batch, width] for PASSES · RING calls; for state `none`, for RING."""
    states: dict[str, np.ndarray]
    """[calls, layers·directions, batch, size]."""
    settled_after: int
    """Calls after which the trajectory repeats itself with the ring, twice those it took from the ring's first chunk,
    since a block may start at another; 0 where it was not seen to."""
    orbit_y: np.ndarray
    """[RING, …]: the output of each call of the last pass that was followed; likewise `orbit_states`."""
    orbit_states: dict[str, np.ndarray]
    followed: int
    """Calls that were followed, the last pass among them, whether or not it had settled by then."""


@dataclass(frozen=True)
class Answer:
    """Some inputs, and what comes of them."""

    x: np.ndarray
    y: np.ndarray
    rounding: np.ndarray
    """[steps]: the largest error that rounding is expected to have made by each step, as `Oracle.rounding_at`."""


class Oracle:
    """The reference's answers for one trial, kept under `directory` for all trials that ask the same."""

    def __init__(self, trial: Trial, directory: Path) -> None:
        self.trial = trial
        self.directory = directory
        self.streams = trial.strategy.state != "none"
        self._loaded: dict[Path, dict[str, np.ndarray]] = {}
        self.seconds = 0.0
        """Spent on answers that no earlier trial had asked for."""

    @cached_property
    def weights(self) -> Weights:
        return draw_weights(self.trial.model, self.trial.seed, self.trial.dtype)

    @cached_property
    def x(self) -> np.ndarray:
        """The stream [steps, batch, input]."""
        return self._inputs(self.trial.steps)

    @cached_property
    def ring(self) -> list[Arrays]:
        x = self._inputs(RING * self.trial.strategy.chunk)
        if self.lengths is None:
            return [{"x": part} for part in np.split(x, RING)]
        return [{"x": part, "lengths": own} for part, own in zip(np.split(x, RING), self.lengths, strict=True)]

    @cached_property
    def lengths(self) -> np.ndarray | None:
        """Of the rows of each chunk of the ring [RING, batch], where they have lengths of their own."""
        trial = self.trial
        return draw_lengths(trial.strategy.chunk, trial.batch, RING, trial.seed) if trial.lengths == "ragged" else None

    @cached_property
    def start(self) -> dict[str, np.ndarray]:
        """A state that is not zero."""
        return draw_state(self.trial.model, self.trial.batch, self.trial.seed, self.trial.dtype)

    @cached_property
    def zeros(self) -> dict[str, np.ndarray]:
        return {name: np.zeros_like(array) for name, array in self.start.items()}

    def from_zeros(self) -> Trajectory:
        """The stream from zeros."""
        return self._half(0)

    def from_start(self) -> Trajectory:
        """The stream from `start`."""
        return self._half(1)

    @cached_property
    def rounding(self) -> Rounding:
        """What rounding is expected to do to any run of inputs such as the stream's and the ring's."""
        if self.streams:
            # As far as a stream or a ring goes, so long as that is not far: the same for most chunks that a case has.
            ring = min(PASSES * RING * self.trial.strategy.chunk, LONG_RING)
            steps = 1 << (max(self.trial.steps, ring) - 1).bit_length()
            steps = steps_measured(self.trial.model, self.weights, steps)
            return self._rounding("rounding", *self._doubled(self._inputs(steps)))
        return self._rounding("rounding", self._side_by_side(), None)

    def rounding_at(self, step: int) -> float:
        """Expected rounding at a step of such a run; infinite where no comparison has a meaning."""
        return self.rounding.at(step)

    def scaled(self, scale: float) -> Answer:
        """Inputs far outside, or far below, what a network is used to. With state `none`, one call of them."""
        steps = self.trial.steps if self.streams else self.trial.strategy.chunk
        return self.answer(
            f"scaled by {scale:g}", rounded(self._inputs(steps).astype(np.float64) * scale, self.trial.dtype)
        )

    def answer(self, what: str, x: np.ndarray, state: Arrays | None = None) -> Answer:
        """What comes of x, as long as the ring's first chunk where rows have lengths, from `state` (zeros where None);
        kept under the name `what`, which must say all about both.
        """

        def compute() -> dict[str, np.ndarray]:
            lengths = None if self.lengths is None else self.lengths[0]
            exact = run_reference(self.trial.model, self.weights, x, state, lengths=lengths)
            trial = self.trial
            expected = expected_rounding(trial.model, self.weights, x, state, trial.dtype, trial.seed, lengths)
            return {"y": exact.y, "rounding": expected.over(len(x))}

        key = {**self.stream_key, "steps": len(x), "what": what}
        arrays = self._kept("answer", key, compute)
        return Answer(x, arrays["y"], arrays["rounding"])

    @cached_property
    def of_ring(self) -> RingOracle:
        key = {**self.stream_key, "chunk": self.trial.strategy.chunk, "streams": self.streams}
        arrays = self._kept("ring", key, self._compute_ring)
        names = list(self.start) if self.streams else []
        return RingOracle(
            y=arrays["y"],
            states={n: arrays[f"state_{n}"] for n in names},
            settled_after=int(arrays["settled_after"]),
            orbit_y=arrays["orbit_y"],
            orbit_states={n: arrays[f"orbit_{n}"] for n in names},
            followed=int(arrays["followed"]),
        )

    @property
    def _settled(self) -> float:
        return SETTLED_FLOAT64 if self.trial.dtype == "float64" else SETTLED

    @property
    def stream_key(self) -> dict[str, object]:
        """What the stream and all that comes of it depend on."""
        trial = self.trial
        return {
            "model": trial.model.model_dump(),
            "steps": trial.steps,
            "batch": trial.batch,
            "dtype": trial.dtype,
            "seed": trial.seed,
            "lengths": trial.lengths,
        }

    def _inputs(self, steps: int) -> np.ndarray:
        return draw_inputs(self.trial.model, steps, self.trial.batch, self.trial.seed, self.trial.dtype)

    def _half(self, index: int) -> Trajectory:
        """One of the two runs over the stream, which travel side by side as rows of one batch."""
        arrays = self._kept("stream", self.stream_key, self._compute_stream)
        rows = slice(index * self.trial.batch, (index + 1) * self.trial.batch)
        names = list(self.start)
        return Trajectory(
            y=arrays["y"][:, rows],
            final={n: arrays[f"final_{n}"][:, rows] for n in names},
            states={n: arrays[f"states_{n}"][:, :, rows] for n in names} if f"states_{names[0]}" in arrays else None,
        )

    def _doubled(self, x: np.ndarray) -> tuple[np.ndarray, Arrays]:
        """x twice, as rows of one batch, and the states it is to be fed from: zeros, and `start`."""
        state = {n: np.concatenate([self.zeros[n], self.start[n]], axis=1) for n in self.start}
        return np.concatenate([x, x], axis=1), state

    def _compute_stream(self) -> dict[str, np.ndarray]:
        run = run_reference(self.trial.model, self.weights, *self._doubled(self.x))
        arrays = {"y": run.y, **{f"final_{n}": a for n, a in run.final.items()}}
        if run.states is not None:
            arrays |= {f"states_{n}": a for n, a in run.states.items()}
        return arrays

    def _rounding(self, what: str, x: np.ndarray, state: Arrays | None) -> Rounding:
        trial = self.trial

        def compute() -> dict[str, np.ndarray]:
            lengths = None if self.lengths is None else self.lengths.ravel()
            expected = expected_rounding(trial.model, self.weights, x, state, trial.dtype, trial.seed, lengths)
            return {"measured": expected.measured}

        key = {**self.stream_key, "steps": len(x), "streams": self.streams}
        return Rounding(self._kept(what, key, compute)["measured"], trial.dtype)

    def _compute_ring(self) -> dict[str, np.ndarray]:
        if not self.streams:
            return self._compute_separate_calls()
        x = np.concatenate([chunk["x"] for chunk in self.ring])
        passes = [self._pass(x, self.start)]
        limit = max(PASSES, SETTLE_STEPS // len(x))
        change = np.inf
        while len(passes) < PASSES or (change > self._settled and len(passes) < limit):
            before = passes[-1]
            passes.append(self._pass(x, {n: before[f"state_{n}"][-1] for n in self.start}))
            change = max(float(np.abs(passes[-1][f"state_{n}"] - before[f"state_{n}"]).max()) for n in self.start)
        settled_after = 2 * self._first_settled(passes) if change <= self._settled else 0
        kept = {name: np.concatenate([p[name] for p in passes[:PASSES]]) for name in passes[0]}
        orbit = {name.replace("state_", "orbit_"): a for name, a in passes[-1].items() if name != "y"}
        ends = {"settled_after": np.array(settled_after), "followed": np.array(RING * len(passes))}
        return {**kept, **orbit, "orbit_y": passes[-1]["y"], **ends}

    def _first_settled(self, passes: list[dict[str, np.ndarray]]) -> int:
        """The first call from which on every state is that of the last pass."""
        away = np.zeros(RING * len(passes))
        for name in self.start:
            apart = np.concatenate([np.abs(p[f"state_{name}"] - passes[-1][f"state_{name}"]) for p in passes])
            away = np.maximum(away, apart.reshape(len(away), -1).max(axis=1))
        return int(np.flatnonzero(away > self._settled).max(initial=-1)) + 2

    def _pass(self, x: np.ndarray, state: Arrays) -> dict[str, np.ndarray]:
        """Outputs and states after each call of one pass over the ring."""
        chunk = self.trial.strategy.chunk
        run = run_reference(self.trial.model, self.weights, x, state)
        assert run.states is not None, "a stream runs forward"
        arrays = {f"state_{n}": a[chunk - 1 :: chunk] for n, a in run.states.items()}
        return {"y": run.y.reshape(RING, chunk, *run.y.shape[1:]), **arrays}

    def _compute_separate_calls(self) -> dict[str, np.ndarray]:
        """State `none`: every chunk from zeros."""
        x = self._side_by_side()
        lengths = None if self.lengths is None else self.lengths.ravel()
        y = run_reference(self.trial.model, self.weights, x, lengths=lengths).y
        y = np.stack(np.split(y, RING, axis=1))
        return {"y": y, "orbit_y": y, "settled_after": np.array(1), "followed": np.array(RING)}

    def _side_by_side(self) -> np.ndarray:
        """All chunks of the ring as rows of one batch [chunk, RING·batch, input]."""
        return np.concatenate([chunk["x"] for chunk in self.ring], axis=1)

    def _kept(
        self, what: str, key: dict[str, object], compute: Callable[[], dict[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """Arrays from an earlier trial's file, or computed now and filed under a digest of what they depend on."""
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
        path = self.directory / f"{what}-{digest}.npz"
        if path not in self._loaded:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                partial = path.with_name(f"{path.stem}.{os.getpid()}.npz")
                np.savez(partial, **self._timed(compute))  # type: ignore[arg-type]  # its one option could be shadowed; no array is so named
                partial.replace(path)
            with np.load(path) as arrays:
                self._loaded[path] = dict(arrays)
        return self._loaded[path]

    def _timed(self, compute: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        start = time.perf_counter()
        try:
            return compute()
        finally:
            self.seconds += time.perf_counter() - start
