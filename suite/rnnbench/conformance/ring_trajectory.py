"""The reference of the timed path: a ring of distinct chunks that is fed over and over.

The trajectory begins from a state that is not zero, at the ring's first chunk. It is followed until it repeats itself
with each pass over the ring, or as long as the network allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnnbench.backends import Arrays
from rnnbench.cases import Trial
from rnnbench.rnn import Weights, run_reference

RING = 8
"""Distinct chunks of a ring. With the same chunk over and over, an LSTM reaches its fixed point in about 40 calls, and
no check can then tell a right output from an old one."""
PASSES = 2
"""Passes over the ring that are kept call by call. The second one shows whether the ring starts again."""
TOGETHER = 256
"""Steps of whole passes that the reference of an exact network runs at once: grouping does not change its sums, and it
never settles."""
SETTLED, SETTLED_FLOAT64 = 1e-12, 1e-15
"""The largest change of the state between two passes of a trajectory that repeats itself: far below float32's rounding.
For a trial in float64, as small as the reference's own rounding allows."""
SAME_START = 1e-3
"""The largest difference of two states from which a pass is taken to be the same, as a share of this change."""


@dataclass(frozen=True)
class RingTrajectory:
    """Outputs and states after each bound call, from `start` at the ring's first chunk."""

    y: np.ndarray
    """[calls, chunk, batch, width] for PASSES · RING calls; for state `none`, for RING."""
    states: dict[str, np.ndarray]
    """[calls, layers·directions, batch, size]."""
    settled_after: int
    """Calls after which the trajectory repeats itself with each pass; 0 if it does not.

    It is twice the number seen from the ring's first chunk, since timed calls may start at another chunk.
    """
    orbit_y: np.ndarray
    """[RING, …]: the output of each call of the last pass. `orbit_states` are its states."""
    orbit_states: dict[str, np.ndarray]
    followed_calls: int
    """The number of computed calls, those of the last pass included."""

    @classmethod
    def of(cls, arrays: Arrays, states: Sequence[str]) -> RingTrajectory:
        """The trajectory in the arrays that `RingReference` computes. `states` are the names of its states."""
        return cls(
            y=arrays["y"],
            states={n: arrays[f"state_{n}"] for n in states},
            settled_after=int(arrays["settled_after"]),
            orbit_y=arrays["orbit_y"],
            orbit_states={n: arrays[f"orbit_{n}"] for n in states},
            followed_calls=int(arrays["followed_calls"]),
        )


@dataclass(frozen=True)
class RingReference:
    """What the reference needs for the trajectory of one trial's ring."""

    trial: Trial
    weights: Weights
    ring: Sequence[Arrays]
    start: Arrays

    def stream(self) -> dict[str, np.ndarray]:
        """The arrays of the trajectory, where each call continues from the state of the call before."""
        x = np.concatenate([chunk["x"] for chunk in self.ring])
        passes = self._passes(x, self.start, 1)
        together = max(1, TOGETHER // len(x)) if self.trial.model.is_exact else 1
        limit = max(PASSES, self.trial.model.longest_reference // len(x))
        change = np.inf
        while len(passes) < PASSES or (change > self._settled and len(passes) < limit):
            end = {n: passes[-1][f"state_{n}"][-1] for n in self.start}
            if len(passes) >= PASSES and self._forgets and self._begins_as_before(passes, end):
                passes.append(passes[-1])
            else:
                passes += self._passes(x, end, min(together, max(1, limit - len(passes))))
            before, last = passes[-2:]
            if self._forgets:
                change = max(float(np.abs(last[f"state_{n}"] - before[f"state_{n}"]).max()) for n in self.start)
        settled_after = 2 * self._first_settled(passes) if change <= self._settled else 0
        first_passes = {name: np.concatenate([p[name] for p in passes[:PASSES]]) for name in passes[0]}
        orbit = {f"orbit_{name.removeprefix('state_')}": a for name, a in passes[-1].items() if name != "y"}
        ends = {"settled_after": np.array(settled_after), "followed_calls": np.array(RING * len(passes))}
        return {**first_passes, **orbit, "orbit_y": passes[-1]["y"], **ends}

    def separate_calls(self, lengths: np.ndarray | None) -> dict[str, np.ndarray]:
        """The arrays of the trajectory of state `none`: every chunk from zeros. `lengths` [RING, batch]."""
        y = run_reference(
            self.trial.model,
            self.weights,
            side_by_side(self.ring),
            lengths=None if lengths is None else lengths.ravel(),
        ).y
        y = np.stack(np.split(y, RING, axis=1))
        return {"y": y, "orbit_y": y, "settled_after": np.array(1), "followed_calls": np.array(RING)}

    @property
    def _forgets(self) -> bool:
        """Whether the network may forget its start. Its trajectory may then settle.

        Whole numbers, such as a position, may repeat without being forgotten: they depend on the chunk at which timed
        calls began.
        """
        return all(array.dtype.kind == "f" for array in self.start.values())

    @property
    def _settled(self) -> float:
        return SETTLED_FLOAT64 if self.trial.dtype == "float64" else SETTLED

    def _passes(self, x: np.ndarray, state: Arrays, count: int) -> list[dict[str, np.ndarray]]:
        """The outputs and states after each call of `count` passes over the ring, by pass."""
        chunk = self.trial.strategy.chunk
        run = run_reference(self.trial.model, self.weights, np.concatenate([x] * count), state)
        assert run.states is not None, "a stream runs forward"
        # Copies, since a view would keep the states of all steps in memory.
        arrays = {f"state_{n}": a[chunk - 1 :: chunk].copy() for n, a in run.states.items()}
        arrays["y"] = run.y.reshape(count * RING, chunk, *run.y.shape[1:])
        calls = [slice(first, first + RING) for first in range(0, count * RING, RING)]
        return [{name: array[of_pass] for name, array in arrays.items()} for of_pass in calls]

    def _begins_as_before(self, passes: list[dict[str, np.ndarray]], state: Arrays) -> bool:
        """Whether the state after the last pass is the one before it, but for the reference's own rounding.

        The next pass would then be the last one again. The network has brought two states together that were far apart,
        so it does not drive them apart again.
        """
        before, near = passes[-2], SAME_START * self._settled
        return all(np.abs(state[n] - before[f"state_{n}"][-1]).max() <= near for n in self.start)

    def _first_settled(self, passes: list[dict[str, np.ndarray]]) -> int:
        """The number of the first call from which every state equals that of the last pass."""
        distance = np.zeros(RING * len(passes))
        for name in self.start:
            difference = np.concatenate([np.abs(p[f"state_{name}"] - passes[-1][f"state_{name}"]) for p in passes])
            distance = np.maximum(distance, difference.reshape(len(distance), -1).max(axis=1))
        return int(np.flatnonzero(distance > self._settled).max(initial=-1)) + 2


def side_by_side(ring: Sequence[Arrays]) -> np.ndarray:
    """All chunks of the ring as rows of one batch [chunk, RING·batch, input]."""
    return np.concatenate([chunk["x"] for chunk in ring], axis=1)
