"""The timed path, counted while it is sampled so that what it computed can be checked."""

from __future__ import annotations

import numpy as np

from rnnbench.backends.base import Bound, Session
from rnnbench.conformance.oracle import RING, Oracle
from rnnbench.conformance.tolerance import Errors
from rnnbench.results.record import CheckResult

COUNTS = 3
"""Random numbers of calls that the step count is tried at."""


class Timed:
    """A session with its ring bound. Whoever calls `bound` says so in `called`."""

    def __init__(self, session: Session, oracle: Oracle) -> None:
        self.session = session
        self.bound: Bound = session.bind(oracle.ring)
        self._oracle = oracle
        self._random = np.random.default_rng(oracle.trial.seed)
        self._position = 0
        self._unbroken = 0

    def called(self, times: int) -> None:
        self._position = (self._position + times) % RING
        self._unbroken += times

    def start(self) -> None:
        """Put the session into the state that is not zero."""
        if self._oracle.streams:
            self.session.set_state(self._oracle.start)
        self._unbroken = 0

    def verify(self) -> CheckResult:
        """Where the calls so far have led; then, from the given state, one call and a random number of calls.

        One, because a network forgets: many calls later a state that was never taken over no longer shows.
        """
        errors = Errors()
        if self._unbroken >= self._oracle.of_ring.settled_after > 0:
            self._compare_settled(errors)
        self._call((RING - self._position) % RING)
        self.start()
        ring, done = self._oracle.of_ring, 0
        for calls in (1, int(self._random.integers(2, len(ring.y) + 1))):
            self._call(calls - done)
            self._compare(errors, f"after {calls} calls", calls, ring.y, ring.states)
            done = calls
        return errors.verdict()

    def verify_counts(self) -> CheckResult:
        """Where random numbers of calls lead, without a pause between them; then a public call, and a reset."""
        errors, oracle, ring = Errors(), self._oracle, self._oracle.of_ring
        for calls in self._random.integers(2, len(ring.y) + 1, COUNTS):
            self._call((RING - self._position) % RING)
            self.start()
            self._call(int(calls))
            self._compare(errors, f"after {calls} calls at once", int(calls), ring.y, ring.states)
        if oracle.streams:
            self._call((RING - self._position) % RING)
            self.start()
            self._call(1)
            y = self.session.step(oracle.ring[1])["y"]
            errors.add("y of a public call after a bound one", y, ring.y[1], self._rounding(2))
            self._call((RING - self._position) % RING)
            self.session.reset()
            self._call(1)
            chunk = oracle.trial.strategy.chunk
            from_zeros = oracle.from_zeros().y[:chunk]
            errors.add("y of the first call after a reset", self.bound.output()["y"], from_zeros, self._rounding(1))
        return errors.verdict()

    def _rounding(self, calls: int) -> float:
        return self._oracle.rounding_at(calls * self._oracle.trial.strategy.chunk - 1)

    def _compare_settled(self, errors: Errors) -> None:
        ring = self._oracle.of_ring
        last = (self._position - 1) % RING + 1
        self._compare(errors, f"after {self._unbroken} timed calls", last, ring.orbit_y, ring.orbit_states)

    def _compare(self, errors: Errors, when: str, calls: int, y: np.ndarray, states: dict[str, np.ndarray]) -> None:
        expected = self._rounding(calls)
        errors.add(f"y {when}", self.bound.output()["y"], y[calls - 1], expected)
        for name, array in self.session.get_state().items():
            errors.add(f"state {name} {when}", array, states[name][calls - 1], expected)

    def _call(self, times: int) -> None:
        for _ in range(times):
            self.bound()
        self.bound.sync()
        self.called(times)
