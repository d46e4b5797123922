"""Checks that go on for long: what adds up over ten thousand steps, and what stays behind of ten thousand calls.

Both stop when their time is up, and say how far they came.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle

import numpy as np

from rnnbench.backends.base import Arrays
from rnnbench.conformance.check import Check, Open
from rnnbench.conformance.oracle import RING, Oracle
from rnnbench.conformance.tolerance import Errors
from rnnbench.measure.memory import resident_in_use
from rnnbench.results.record import CheckResult

STEPS = CALLS = 10_000
BLOCK = 4 * RING + 1
"""Calls between two comparisons: every chunk of the ring has its turn to be the last."""
WINDOWS = 5
"""Parts of the calls; the first is for warming up. Memory that is lost with each call grows in every other one."""
NOISE = 64 << 10
"""Bytes that a window may grow by: an allocator takes memory in lumps, but does not need one in every window."""


def endurance(budget_s: float) -> tuple[Check, ...]:
    """The two checks, with the seconds that each may take."""
    return (
        Check(
            "drift",
            "Over ten thousand steps the error does not grow beyond the rounding expected.",
            partial(_drift, budget_s),
            streams_only=True,
        ),
        Check(
            "memory",
            "Over ten thousand calls the process does not grow with every thousand.",
            partial(_memory, budget_s),
        ),
    )


def _drift(budget_s: float, open_session: Open, oracle: Oracle) -> CheckResult:
    """The ring over and over through the timed path, compared at each call of the first pass, and then again and again.

    The growth of the error is that of the last comparisons over the first ones, a pass of each.
    """
    chunk, errors, worst = oracle.trial.strategy.chunk, Errors(), list[float]()
    session = open_session()
    bound = session.bind(oracle.ring)
    session.set_state(oracle.start)
    calls, total, deadline = 0, min(_known_calls(oracle), -(-STEPS // chunk)), time.perf_counter() + budget_s
    while calls < total and (calls < RING or time.perf_counter() < deadline):
        for _ in range(min(1 if calls < RING else BLOCK, total - calls)):
            bound()
            calls += 1
            if calls > RING and time.perf_counter() > deadline:
                break
        bound.sync()
        if exact := exact_after(oracle, calls):
            got = {"y": bound.output()["y"], **session.get_state()}
            for name, array in got.items():
                errors.add(f"{name} after {calls * chunk} steps", array, exact[name], _rounding(oracle, calls))
            worst.append(max(float(np.abs(array - exact[name]).max()) for name, array in got.items()))
    verdict, figures = errors.verdict(), {"steps": float(calls * chunk)}
    first, last = max(worst[:RING]), max(worst[-RING:])
    fed = f"fed {calls * chunk:,} steps"
    if first > 0 and np.isfinite(last):
        figures["growth"] = last / first
        fed += f"; the error at the end is {last / first:.2g} times that of the beginning"
    return verdict.model_copy(update={"detail": verdict.detail or fed, "figures": figures})


def _rounding(oracle: Oracle, calls: int) -> float:
    """Expected after so many calls. Once the ring repeats itself the start is forgotten, and rounding with it."""
    chunk, settled = oracle.trial.strategy.chunk, oracle.of_ring.settled_after
    if not settled or calls < settled:
        return oracle.rounding_at(calls * chunk - 1)
    return oracle.rounding_at(settled * chunk - 1)


def _known_calls(oracle: Oracle) -> int:
    """How many calls the reference can be followed for: without end where it repeats itself, or only counts."""
    ring = oracle.of_ring
    return STEPS if ring.settled_after or oracle.trial.model.cell == "counter" else ring.followed


def exact_after(oracle: Oracle, calls: int) -> dict[str, np.ndarray] | None:
    """y and the state after so many calls, from `start` at the ring's first chunk; None where they are not known."""
    ring, last = oracle.of_ring, (calls - 1) % RING
    if calls <= len(ring.y):
        return {"y": ring.y[calls - 1], **{name: array[calls - 1] for name, array in ring.states.items()}}
    if oracle.trial.model.cell == "counter":
        rise = (calls - 1) // RING * np.sum([chunk["x"].sum(axis=0, dtype=np.float64) for chunk in oracle.ring], axis=0)
        return {"y": ring.y[last] + rise, "h": ring.states["h"][last] + rise}
    settled = ring.settled_after and calls >= ring.settled_after
    if settled or ring.followed - RING < calls <= ring.followed:
        return {"y": ring.orbit_y[last], **{name: array[last] for name, array in ring.orbit_states.items()}}
    return None


def _memory(budget_s: float, open_session: Open, oracle: Oracle) -> CheckResult:
    """Public and timed calls in turn. What looks like a leak is looked at again: a leak goes on, a cache is full."""
    call, grown = _both_paths(open_session, oracle), np.zeros(0)
    with _frozen():
        for _ in range(2):
            calls, grown = _growth(call, budget_s / 2)
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
    """The collector leaves alone what is here by now: to look at a framework's objects takes longer than the calls."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _both_paths(open_session: Open, oracle: Oracle) -> Callable[[], None]:
    step, bound = open_session().step, open_session().bind(oracle.ring)
    chunks: Callable[[], Arrays] = cycle(oracle.ring).__next__

    def call() -> None:
        step(chunks())
        bound()
        bound.sync()

    return call


def _growth(call: Callable[[], None], budget_s: float) -> tuple[int, np.ndarray]:
    """Calls that were made, and bytes by which memory in use grew in each window but the first."""
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
    """Run the first window, as many of CALLS as there is time for. Returns how many rounds of two calls it had."""
    rounds, deadline = 0, time.perf_counter() + budget_s / WINDOWS
    while rounds < CALLS // 2 // WINDOWS and (rounds == 0 or time.perf_counter() < deadline):
        call()
        rounds += 1
    return rounds
