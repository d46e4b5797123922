"""Long-running checks: the outputs of 10,000 steps, and the memory, descriptors and threads over 10,000 calls.

Each check may take `limits.endurance` seconds. Its result says how many calls it made. With `limits.enough` it stops
after that time if it has the calls that its verdict needs, and always after the calls in which all known faults show.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from rnnbench.backends import Arrays, Session
from rnnbench.conformance.budget import Budget, planned_turns
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.garbage import only_new_garbage
from rnnbench.conformance.long_runs import (
    calls_before_settled,
    exact_after,
    followed_calls,
    rounding_after,
    settled_start,
)
from rnnbench.conformance.ring_trajectory import RING
from rnnbench.conformance.rounding import Y
from rnnbench.conformance.tolerance import Errors
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.measure import read_holdings, resident_in_use
from rnnbench.results import CheckResult

STEPS = CALLS = 10_000
STEPS_ENOUGH, CALLS_ENOUGH = 1_600, 320
"""With `limits.enough`, the steps of `drift` and the calls of `memory`. All known faults show in them, except those of
LONG_CALL, which follows only after all STEPS."""
PUBLIC_EVERY = 4
"""Every fourth pass over the ring is made of public calls."""
BLOCK = 4 * RING + 1
"""Calls between two comparisons of the state, so that each chunk of the ring is the last one in turn."""
UNSEEN, LOOKS = 8 * BLOCK, (BLOCK, 3 * BLOCK, 8 * BLOCK)
"""The last calls, whose outputs are not read, so that they may overlap; and after how many of them an output is read.
The last reading comes after more calls than a queue of 128 places holds."""
LONG_CALL = 1_030
"""Steps of one public call after all others: more than a byte can count, and than a buffer of 1,024 steps holds."""
LEAST_FED = 8 * RING
"""With fewer calls, `drift` says nothing: a network forgets its start within some 40 calls, and other checks feed as
many."""
WINDOWS = 5
"""Parts of the calls. The first one warms up. A leak grows in each of the others."""
NOISE = 64 << 10
"""Bytes by which each window may grow. An allocator takes memory in large pieces, but not in every window."""
SUSPECTED = 256
"""Bytes for each round by which memory must grow in each window to be measured in windows that are long enough."""
SESSIONS = 4
"""Sessions per window. Earlier checks have opened many sessions, so that no first-time cost is left."""
OTHERS, OTHERS_ENOUGH = 32, 20
"""Rounds per window of looks, states that are set, resets, rests and refused calls: at most, and with `limits.enough`.
With 17 rounds a leak of one page per round shows. All windows together may take `limits.endurance`."""
LEAST_CALLS = 2 * WINDOWS * NOISE // 4096
"""With fewer calls, `memory` says nothing. With so many, a leak of half a page per call grows by NOISE per window."""


def _drift(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Feed the ring over and over, and compare the output of every call. Every fourth pass is made of public calls.

    The growth is the largest error of the last RING comparisons over that of the first RING.
    """
    chunk = reference.trial.strategy.chunk
    total = min(followed_calls(reference, STEPS), -(-STEPS // chunk))
    limits = reference.trial.limits
    least = min(LEAST_FED, total)
    planned = planned_turns(limits, total, max(least, -(-STEPS_ENOUGH // chunk)))
    budget = Budget("calls", planned, least, limits.endurance, enough=limits.enough)
    session, before = open_session(), calls_before_settled(reference)
    bound, comparison = session.bind(reference.ring), _Comparison(reference, session, before)
    if reference.is_stream:
        session.set_state(settled_start(reference))
    seen = total - UNSEEN - total % RING if total >= 8 * UNSEEN else total
    for call in budget:
        if call < seen and call // RING % PUBLIC_EVERY == PUBLIC_EVERY - 1:
            comparison.look(call + 1, session.step(reference.ring[call % RING])["y"])
            continue
        bound()
        if call < seen or call + 1 - seen in LOOKS or call + 1 == total:
            bound.sync()
            comparison.look(call + 1, bound.output()["y"])
    bound.sync()
    if reference.is_stream and budget.done == total:
        _compare_long_call(comparison.errors, session, reference, before + total)
    steps = budget.done * chunk
    verdict, figures = comparison.errors.verdict(), {"steps": float(steps), "compared": float(comparison.compared)}
    detail = f"fed {steps:,} steps in {budget.sentence()}, and compared {comparison.compared:,} calls"
    first, last = max(comparison.largest[:RING]), max(comparison.largest[-RING:])
    if first > 0 and np.isfinite(last):
        figures["growth"] = last / first
        detail += f"; the error at the end is {last / first:.2g} times that of the beginning"
    return budget.result(verdict.model_copy(update={"detail": verdict.detail or detail, "figures": figures}))


def _compare_long_call(errors: Errors, session: Session, reference: ReferenceTrajectories, calls: int) -> None:
    """After `calls` calls, feed LONG_CALL steps in one public call, and compare the parts whose outputs are known."""
    chunk = reference.trial.strategy.chunk
    numbers = range(calls, calls + math.ceil(LONG_CALL / chunk))
    y = session.step({"x": np.concatenate([reference.ring[number % RING]["x"] for number in numbers])})["y"]
    for number, part in zip(numbers, np.split(y, len(numbers)), strict=True):
        if (exact := exact_after(reference, number + 1)) is not None:
            what = f"y of chunk {number - calls} of one call of {len(numbers) * chunk} steps"
            errors.add(what, part, exact[Y], rounding_after(reference, number + 1))


class _Comparison:
    """Compares a long run with the reference, call by call."""

    def __init__(self, reference: ReferenceTrajectories, session: Session, before: int) -> None:
        """`before` is the number of calls after which the reference had the state from which the session began."""
        self.errors = Errors()
        self.largest: list[float] = []
        """The largest error of each comparison."""
        self.compared = 0
        self._reference = reference
        self._session = session
        self._before = before

    def look(self, calls: int, y: np.ndarray) -> None:
        """Compare y after `calls` calls, and in the first pass and after each BLOCK of calls also the state."""
        exact = exact_after(self._reference, self._before + calls)
        if exact is None:
            return
        self.compared += 1
        got = {Y: y}
        if calls <= RING or calls % BLOCK == 0:
            got |= self._session.get_state()
        off = {name: _off(array, exact[name]) for name, array in got.items()}
        self.largest.append(max(float(error.max()) for error in off.values()))
        # `errors.add` takes ten times as long as finding the largest error, so it is called for new errors only.
        for name, array in got.items():
            rounding = rounding_after(self._reference, self._before + calls, name)
            if calls <= RING or not (off[name] <= self.errors.rounding * rounding).all():
                what = f"{name or 'y'} after {calls * self._reference.trial.strategy.chunk} steps"
                self.errors.add(what, array, exact[name], rounding)


def _off(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    return np.abs(got - exact) if got.shape == exact.shape else np.array(np.inf)


def _memory(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Make public and bound calls in turn, then open and close sessions, then use everything but whole chunks."""
    limits = reference.trial.limits
    planned = planned_turns(limits, 2 * WINDOWS * (CALLS // 2 // WINDOWS), CALLS_ENOUGH)
    budget = Budget("calls", planned, min(LEAST_CALLS, planned), limits.endurance, enough=limits.enough)
    gc.collect()
    with only_new_garbage():
        call = _both_paths(open_session, reference)
        of_calls = _grown_twice(call, lambda: _window(call, budget))
        of_sessions = _grown_twice(lambda: _come_and_go(open_session, reference), lambda: SESSIONS)
        of_others = _grown_twice(*_rounds_of_others(open_session, reference))
    budget.done = calls = 2 * of_calls.rounds
    growth = of_calls.per_thousand("memory") / 2
    figures = {"calls": float(calls), "growth": growth}
    leaks = [
        *of_calls.sentences("rounds of two calls"),
        *of_sessions.sentences("sessions"),
        *of_others.sentences("rounds of looks, states that are set, resets, rests and refused calls"),
    ]
    if leaks:
        return budget.result(CheckResult(verdict="fail", detail="; ".join(leaks), figures=figures))
    detail = (
        f"resident memory grew by {growth:,.0f} bytes for every 1,000 calls, over {budget.sentence()}, and by "
        f"{of_sessions.per_thousand('memory'):,.0f} for every 1,000 sessions, over {of_sessions.rounds}, and by "
        f"{of_others.per_thousand('memory'):,.0f} for every 1,000 looks, resets and refusals, over {of_others.rounds}"
    )
    return budget.result(CheckResult(verdict="pass", detail=detail, figures=figures))


@dataclass(frozen=True)
class _Growth:
    """The growth of what the process holds, by name, in each window after the first; and the number of rounds."""

    rounds: int
    windows: dict[str, np.ndarray]

    @property
    def leaks(self) -> list[str]:
        """The names of what grew in every window: memory by more than NOISE, everything else by at least 1."""
        return [name for name, grown in self.windows.items() if (grown > (NOISE if name == "memory" else 0)).all()]

    def per_thousand(self, name: str) -> float:
        """Growth per 1,000 rounds."""
        return float(np.median(self.windows[name])) * WINDOWS * 1_000 / self.rounds

    def sentences(self, what: str) -> Iterator[str]:
        """A sentence for each leak."""
        for name in self.leaks:
            grows, bytes_ = ("grows", " bytes") if name == "memory" else ("grow", "")
            yield (
                f"{name} {grows} without end: {self.per_thousand(name):,.0f}{bytes_} for every 1,000 {what}, over "
                f"{self.rounds:,} of them"
            )


def _both_paths(open_session: OpenSession, reference: ReferenceTrajectories) -> Callable[[], None]:
    step, bound = open_session().step, open_session().bind(reference.ring)
    chunks: Callable[[], Arrays] = cycle(reference.ring).__next__

    def call() -> None:
        step(chunks())
        bound()
        bound.sync()

    return call


def _come_and_go(open_session: OpenSession, reference: ReferenceTrajectories) -> None:
    """Open a session, use it on both paths and close it."""
    session = open_session()
    bound = session.bind(reference.ring)
    bound()
    bound.sync()
    session.step(reference.ring[0])
    session.get_state()
    open_session.close(session)


def _rounds_of_others(
    open_session: OpenSession, reference: ReferenceTrajectories
) -> tuple[Callable[[], None], Callable[[], int]]:
    """Two functions: one round of everything but whole chunks, and the first window, which returns its rounds."""
    session, chunk = open_session(), reference.ring[0]
    bound = session.bind(reference.ring)
    refused = {**chunk, "x": chunk["x"][:, 0]}

    def work() -> None:
        bound()
        bound.output()
        with suppress(Exception):
            session.step(refused)
        if reference.is_stream:
            session.step({"x": chunk["x"][:1]})
            session.set_state(session.get_state())
        session.reset()

    def window() -> int:
        rounds, begun = 0, time.perf_counter()
        while rounds < most and (not rounds or time.perf_counter() - begun < seconds / WINDOWS):
            work()
            rounds += 1
        return rounds

    seconds = reference.trial.limits.endurance
    most = planned_turns(reference.trial.limits, OTHERS, OTHERS_ENOUGH)
    return work, window


def _grown_twice(work: Callable[[], None], rounds: Callable[[], int]) -> _Growth:
    """Measure growth, and if there is a leak, measure it again: a cache stops growing, a leak does not.

    Where every window grows, but by less than NOISE, there may be a leak in too few rounds: windows are then made so
    long that it must show.
    """
    size = rounds()
    grown = _growth(work, size)
    if grown.leaks:
        return _growth(work, rounds())
    least = int(grown.windows["memory"].min())
    return _growth(work, size * math.ceil(1.5 * NOISE / least)) if least >= SUSPECTED * size else grown


def _growth(work: Callable[[], None], size: int) -> _Growth:
    """The growth in the windows after the first one. Each has `size` rounds."""
    held = [_read_held()]
    for _ in range(WINDOWS - 1):
        for _ in range(size):
            work()
        held.append(_read_held())
    windows = {name: np.diff([reading[name] for reading in held]) for name in held[0]}
    return _Growth(size * WINDOWS, windows)


def _read_held() -> dict[str, int]:
    return {"memory": resident_in_use(), **read_holdings()}


def _window(call: Callable[[], None], budget: Budget) -> int:
    """Run the first window, for half of its share of the time. Returns its rounds of two calls."""
    rounds, begun = 0, time.perf_counter()
    while 2 * WINDOWS * rounds < budget.planned:
        call()
        rounds += 1
        budget.done = 2 * WINDOWS * rounds
        if time.perf_counter() - begun >= budget.time() / (2 * WINDOWS):
            break
    return rounds


ENDURANCE = (
    Check(
        "drift",
        "Over 10,000 steps no output is off by more than the expected rounding.",
        _drift,
        long_running=True,
        compares=True,
    ),
    Check(
        "memory",
        "Over 10,000 calls, and as sessions open and close, the process does not hold more and more memory.",
        _memory,
        long_running=True,
    ),
)
