"""The exact outputs and states after thousands of calls of the ring from `start`, and the comparison with them.

The reference does not compute thousands of calls. A network that forgets repeats itself with the ring, so the last
computed pass is right for all later passes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnnbench.conformance.ring_trajectory import RING
from rnnbench.conformance.rounding import Y
from rnnbench.conformance.tolerance import Errors
from rnnbench.conformance.trajectories import ReferenceTrajectories


def rounding_after(reference: ReferenceTrajectories, calls: int, array: str = Y) -> np.ndarray:
    """The expected rounding of y, or of a state, after `calls` calls. It stops growing when the ring repeats itself.

    A network may forget its start within some calls of the ring, and have its largest values in later ones.
    """
    chunk, settled = reference.trial.strategy.chunk, reference.ring_trajectory.settled_after
    last = calls
    if settled and calls >= settled:
        last = max(settled, RING) if reference.is_stream else settled
    return reference.rounding_at(last * chunk - 1, array)


def followed_calls(reference: ReferenceTrajectories, most: int) -> int:
    """The number of calls whose exact results are known: `most` if the reference repeats itself, or is a counter."""
    ring = reference.ring_trajectory
    return most if ring.settled_after or reference.trial.model.is_exact else ring.followed_calls


def exact_after(reference: ReferenceTrajectories, calls: int) -> dict[str, np.ndarray] | None:
    """y [chunk, batch, width] and the state after `calls` calls from `start`, at the ring's first chunk.

    None if they are not known.
    """
    ring, last = reference.ring_trajectory, (calls - 1) % RING
    if calls <= len(ring.y):
        return {Y: ring.y[calls - 1], **{name: array[calls - 1] for name, array in ring.states.items()}}
    if reference.trial.model.is_exact:
        rise = (
            (calls - 1) // RING * np.sum([chunk["x"].sum(axis=0, dtype=np.float64) for chunk in reference.ring], axis=0)
        )
        return {Y: ring.y[last] + rise, "h": ring.states["h"][last] + rise}
    settled = ring.settled_after and calls >= ring.settled_after
    if settled or ring.followed_calls - RING < calls <= ring.followed_calls:
        return {Y: ring.orbit_y[last], **{name: array[last] for name, array in ring.orbit_states.items()}}
    return None


def settled_start(reference: ReferenceTrajectories) -> dict[str, np.ndarray]:
    """The state from which the ring repeats itself from its first call on; `start` if the network does not forget it.

    It is rounded to the dtype that sessions exchange, and this is forgotten too.
    """
    ring = reference.ring_trajectory
    if not ring.settled_after:
        return reference.start
    return {name: array[-1].astype(reference.start[name].dtype) for name, array in ring.orbit_states.items()}


def calls_before_settled(reference: ReferenceTrajectories) -> int:
    """The calls from `start` to `settled_start`, in whole passes over the ring: 0 if the network does not forget it."""
    return -(-reference.ring_trajectory.settled_after // RING) * RING if reference.is_stream else 0


def compare_outputs(errors: Errors, what: str, outputs: Sequence[np.ndarray], reference: ReferenceTrajectories) -> None:
    """Add the errors of y of the calls of the ring from `settled_start`, of the worst call for each chunk.

    If the network does not forget its start, only the first two passes are compared, and only calls for which a
    rounding is expected.
    """
    ring = reference.ring_trajectory
    if ring.settled_after:
        rounding = rounding_after(reference, ring.settled_after)
        for first, exact in enumerate(ring.orbit_y[: len(outputs)] if np.isfinite(rounding).any() else ()):
            of_chunk = outputs[first::RING]
            worst = _worst(exact, of_chunk, rounding)
            errors.add(f"y of {what} {first + worst * RING}", of_chunk[worst], exact, rounding)
        return
    for call, (y, exact) in enumerate(zip(outputs, ring.y, strict=False)):
        if np.isfinite(rounding := rounding_after(reference, call + 1)).any():
            errors.add(f"y of {what} {call}", y, exact, rounding)


def _worst(exact: np.ndarray, outputs: Sequence[np.ndarray], rounding: np.ndarray) -> int:
    """The index of the output that is furthest from `exact`, in units of the rounding of each column. Another shape or
    NaN counts as furthest."""
    if any(y.shape != exact.shape for y in outputs):
        return next(index for index, y in enumerate(outputs) if y.shape != exact.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(np.stack(outputs) - exact)
        ratios = np.where(np.isfinite(rounding) & (off != 0), off / rounding, 0.0)
    return int(np.argmax(np.where(np.isnan(ratios), np.inf, ratios).reshape(len(outputs), -1).max(axis=1)))
