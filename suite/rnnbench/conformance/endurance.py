"""Long-running checks: the error over 10,000 steps, and the memory over 10,000 calls.

Each may take `limits.endurance` seconds. It stops when this time is over, and its result says how far it came.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle

import numpy as np

from rnnbench.backends import Arrays
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.tolerance import Errors
from rnnbench.conformance.trajectories import RING, ReferenceTrajectories
from rnnbench.measure import resident_in_use
from rnnbench.results import CheckResult

STEPS = CALLS = 10_000
BLOCK = 4 * RING + 1
"""Calls between two comparisons, so that each chunk of the ring is in turn the last one."""
WINDOWS = 5
"""Parts of the calls. The first one warms up. A leak grows in every other one."""
NOISE = 64 << 10
"""Bytes that a window may grow by. An allocator takes memory in large pieces, but not in every window."""


def _drift(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Feed the ring over and over through the timed path. Compare every call of the first pass, then one in BLOCK.

    The growth is the largest error of the last RING comparisons over that of the first RING.
    """
    chunk, errors, largest_errors = reference.trial.strategy.chunk, Errors(), list[float]()
    budget_s = reference.trial.limits.endurance
    session = open_session()
    bound = session.bind(reference.ring)
    session.set_state(reference.start)
    calls, total, deadline = 0, min(_followed_calls(reference), -(-STEPS // chunk)), time.perf_counter() + budget_s
    while calls < total and (calls < RING or time.perf_counter() < deadline):
        for _ in range(min(1 if calls < RING else BLOCK, total - calls)):
            bound()
            calls += 1
            if calls > RING and time.perf_counter() > deadline:
                break
        bound.sync()
        if exact := exact_after(reference, calls):
            got = {"y": bound.output()["y"], **session.get_state()}
            for name, array in got.items():
                errors.add(f"{name} after {calls * chunk} steps", array, exact[name], _rounding(reference, calls))
            largest_errors.append(max(float(np.abs(array - exact[name]).max()) for name, array in got.items()))
    verdict, figures = errors.verdict(), {"steps": float(calls * chunk)}
    first, last = max(largest_errors[:RING]), max(largest_errors[-RING:])
    detail = f"fed {calls * chunk:,} steps"
    if first > 0 and np.isfinite(last):
        figures["growth"] = last / first
        detail += f"; the error at the end is {last / first:.2g} times that of the beginning"
    return verdict.model_copy(update={"detail": verdict.detail or detail, "figures": figures})


def _rounding(reference: ReferenceTrajectories, calls: int) -> float:
    """Rounding expected after so many calls. It grows no more once the ring repeats itself: the start is forgotten."""
    chunk, settled = reference.trial.strategy.chunk, reference.ring_trajectory.settled_after
    if not settled or calls < settled:
        return reference.rounding_at(calls * chunk - 1)
    return reference.rounding_at(settled * chunk - 1)


def _followed_calls(reference: ReferenceTrajectories) -> int:
    """Calls whose exact results are known: all of them where the reference repeats itself, or is a counter."""
    ring = reference.ring_trajectory
    return STEPS if ring.settled_after or reference.trial.model.cell == "counter" else ring.followed_calls


def exact_after(reference: ReferenceTrajectories, calls: int) -> dict[str, np.ndarray] | None:
    """y and the state after so many calls, from `start` at the ring's first chunk. None where they are not known."""
    ring, last = reference.ring_trajectory, (calls - 1) % RING
    if calls <= len(ring.y):
        return {"y": ring.y[calls - 1], **{name: array[calls - 1] for name, array in ring.states.items()}}
    if reference.trial.model.cell == "counter":
        rise = (
            (calls - 1) // RING * np.sum([chunk["x"].sum(axis=0, dtype=np.float64) for chunk in reference.ring], axis=0)
        )
        return {"y": ring.y[last] + rise, "h": ring.states["h"][last] + rise}
    settled = ring.settled_after and calls >= ring.settled_after
    if settled or ring.followed_calls - RING < calls <= ring.followed_calls:
        return {"y": ring.orbit_y[last], **{name: array[last] for name, array in ring.orbit_states.items()}}
    return None


def _memory(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Public and timed calls in turn. Growth is measured a second time before it is a leak: a cache fills up, a leak
    goes on."""
    call, grown = _both_paths(open_session, reference), np.zeros(0)
    with _frozen():
        for _ in range(2):
            calls, grown = _growth(call, reference.trial.limits.endurance / 2)
            if (grown <= NOISE).any():
                break
    per_thousand = float(np.median(grown)) * WINDOWS * 1_000 / calls
    figures = {"calls": float(calls), "growth": per_thousand}
    made = f"{per_thousand:,.0f} bytes for every 1,000 calls, over {calls:,} of them"
    if (grown > NOISE).all():
        return CheckResult(verdict="fail", detail=f"memory grows without end: {made}", figures=figures)
    return CheckResult(verdict="pass", detail=f"resident memory grew by {made}", figures=figures)


@contextmanager
def _frozen() -> Iterator[None]:
    """Garbage collection skips the objects that exist now: a framework's objects would take longer than the calls."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _both_paths(open_session: OpenSession, reference: ReferenceTrajectories) -> Callable[[], None]:
    step, bound = open_session().step, open_session().bind(reference.ring)
    chunks: Callable[[], Arrays] = cycle(reference.ring).__next__

    def call() -> None:
        step(chunks())
        bound()
        bound.sync()

    return call


def _growth(call: Callable[[], None], budget_s: float) -> tuple[int, np.ndarray]:
    """Calls that were made, and the bytes by which memory in use grew in each window after the first."""
    size, grown = _window(call, budget_s), []
    before = resident_in_use()
    for _ in range(WINDOWS - 1):
        for _ in range(size):
            call()
        after = resident_in_use()
        grown.append(after - before)
        before = after
    return 2 * size * WINDOWS, np.array(grown)


def _window(call: Callable[[], None], budget_s: float) -> int:
    """Run the first window, with as many of CALLS as there is time for. Returns its rounds of two calls."""
    rounds, deadline = 0, time.perf_counter() + budget_s / WINDOWS
    while rounds < CALLS // 2 // WINDOWS and (rounds == 0 or time.perf_counter() < deadline):
        call()
        rounds += 1
    return rounds


ENDURANCE = (
    Check(
        "drift",
        "Over ten thousand steps the error does not grow beyond the rounding expected.",
        _drift,
        streams_only=True,
        long_running=True,
    ),
    Check(
        "memory",
        "Over ten thousand calls the process does not grow with every thousand.",
        _memory,
        long_running=True,
    ),
)
