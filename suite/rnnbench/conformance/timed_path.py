"""The timed paths: calls are counted while they are sampled, so that their results can be checked afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle

import numpy as np

from rnnbench.backends import Arrays, Bound, Session
from rnnbench.conformance.long_runs import exact_after, rounding_after
from rnnbench.conformance.ring_trajectory import RING
from rnnbench.conformance.rounding import Y
from rnnbench.conformance.tolerance import Errors
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult

COUNTS = 3
"""How many random numbers of calls are checked."""
FIRST_CALLS = (1, 3)
"""The calls of a fresh process whose results are checked. By the third call, a runtime that compiles anew after the
first call (PyTorch's profiling executor) has done so."""


class TimedPath:
    """A session with its ring bound. Code that calls `bound` must report the number of calls to `called`."""

    where = ""
    """The end of a failure's description that names the path."""

    def __init__(self, session: Session, reference: ReferenceTrajectories) -> None:
        self.session = session
        self.bound: Bound = self._bind(session, reference.ring)
        self._reference = reference
        self._random = np.random.default_rng(reference.trial.seed)
        self._position = 0
        self._calls_since_start = 0

    def called(self, times: int) -> None:
        self._position = (self._position + times) % RING
        self._calls_since_start += times

    def start(self) -> None:
        """Put the session into the reference's start state, which is not zero."""
        if self._reference.is_stream:
            self.session.set_state(self._reference.start)
        self._calls_since_start = 0

    def start_at(self, chunk: int) -> None:
        """Start, and make the calls before this chunk of the ring. The path must be at the ring's first chunk."""
        self.start()
        self._call(chunk)

    def verify(self) -> CheckResult:
        """Check the results of the calls so far, then of one call and of a random number of calls from the start state.

        The single call shows a state that was not set. After many calls the network has forgotten its start.
        """
        errors = Errors()
        if self._calls_since_start >= self._reference.ring_trajectory.settled_after > 0:
            self._compare_settled(errors)
        self._call((RING - self._position) % RING)
        self._follow(errors, (1, int(self._random.integers(2, len(self._reference.ring_trajectory.y) + 1))))
        return errors.verdict()

    def verify_as_timed(self, time_calls: Callable[[int], object]) -> CheckResult:
        """Check random numbers of calls in the timed loop. `time_calls` makes them, and reports them to `called`.

        In `verify`, a slow program makes too few timed calls to reach the trajectory that repeats itself, so these are
        not compared. And a program may behave differently while Python's garbage collector is off.
        """
        errors, known = Errors(), len(self._reference.ring_trajectory.y)
        for calls in self._random.integers(2, known + 1, COUNTS):
            self._call((RING - self._position) % RING)
            self.start()
            self._make_as_timed(int(calls), time_calls)
            self._compare_with_ring(errors, f"in the loop that times them, after {calls} calls", int(calls))
        return errors.verdict()

    def verify_block(self, what: str, make: Callable[[], int]) -> CheckResult:
        """Check a block from the start state. `make` makes a few of its calls, and returns their number."""
        errors = Errors()
        self._call((RING - self._position) % RING)
        self.start()
        calls = make()
        self.called(calls)
        self._compare_with_ring(errors, f"after {calls} {what} calls", calls)
        return errors.verdict()

    def verify_first_calls(self) -> CheckResult:
        """Check the first calls. The path must not have been called yet."""
        errors = Errors()
        self._follow(errors, FIRST_CALLS)
        return errors.verdict()

    def verify_counts(self) -> CheckResult:
        """Check random numbers of calls that are not waited for, each followed by a public call; then a reset."""
        errors, reference, ring = Errors(), self._reference, self._reference.ring_trajectory
        for calls in self._random.integers(2, len(ring.y) + 1, COUNTS):
            self._call((RING - self._position) % RING)
            self.start()
            self._call(int(calls))
            self._compare_with_ring(errors, f"after {calls} calls at once", int(calls))
            if reference.is_stream and calls < len(ring.y):
                y = self.session.step(reference.ring[calls % RING])["y"]
                what = f"y of a public call after {calls} bound ones"
                errors.add(what, y, ring.y[calls], self._rounding(int(calls) + 1))
        if reference.is_stream:
            self._call((RING - self._position) % RING)
            self.session.reset()
            self._call(1)
            chunk = reference.trial.strategy.chunk
            from_zeros = reference.from_zeros().y[:chunk]
            errors.add("y of the first call after a reset", self.bound.output()["y"], from_zeros, self._rounding(1))
        return errors.verdict()

    def _bind(self, session: Session, ring: Sequence[Arrays]) -> Bound:
        return session.bind(ring)

    def _make_as_timed(self, calls: int, time_calls: Callable[[int], object]) -> None:
        time_calls(calls)

    def _rounding(self, calls: int, array: str = Y) -> np.ndarray:
        return rounding_after(self._reference, calls, array)

    def _follow(self, errors: Errors, counts: Iterable[int]) -> None:
        """Compare after each of `counts` calls, which rise, from the start state and the ring's first chunk."""
        self.start()
        calls_made = 0
        for calls in counts:
            self._call(calls - calls_made)
            self._compare_with_ring(errors, f"after {calls} calls", calls)
            calls_made = calls

    def _compare_settled(self, errors: Errors) -> None:
        ring, last, calls = self._reference.ring_trajectory, (self._position - 1) % RING, self._calls_since_start
        exact = {Y: ring.orbit_y[last], **{name: array[last] for name, array in ring.orbit_states.items()}}
        self._compare(errors, f"after {calls} timed calls", calls, exact)

    def _compare_with_ring(self, errors: Errors, when: str, calls: int) -> None:
        """Compare after `calls` calls from the start state and the ring's first chunk."""
        exact = exact_after(self._reference, calls)
        assert exact is not None, "the first passes are known"
        self._compare(errors, when, calls, exact)

    def _compare(self, errors: Errors, when: str, calls: int, exact: Mapping[str, np.ndarray]) -> None:
        errors.add(f"y {when}{self.where}", self.bound.output()["y"], exact[Y], self._rounding(calls))
        for name, array in self.session.get_state().items():
            errors.add(f"state {name} {when}{self.where}", array, exact[name], self._rounding(calls, name))

    def _call(self, times: int) -> None:
        for _ in range(times):
            self.bound()
        self.bound.sync()
        self.called(times)


class PublicPath(TimedPath):
    """A session whose public calls are timed. Code that calls `timed_call` must report the number of calls."""

    where = " on the public path"

    def __init__(self, session: Session, reference: ReferenceTrajectories) -> None:
        self._calls = PublicCalls(session, reference.ring)
        self.timed_call = self._calls.timed_call
        super().__init__(session, reference)

    def verify(self) -> CheckResult:
        self._call(1)  # Timed calls drop what they return.
        return super().verify()

    def _bind(self, session: Session, ring: Sequence[Arrays]) -> Bound:
        return self._calls

    def _make_as_timed(self, calls: int, time_calls: Callable[[int], object]) -> None:
        time_calls(calls - 1)
        self._call(1)  # Timed calls drop what they return.


class PublicCalls:
    """Public calls with the chunks of a ring in turn. `timed_call` drops its output; calling the object keeps it."""

    def __init__(self, session: Session, ring: Sequence[Arrays]) -> None:
        step, next_chunk = session.step, cycle(ring).__next__
        self._y: Arrays = {}

        def timed_call() -> None:
            step(next_chunk())

        def kept_call() -> None:
            self._y = step(next_chunk())

        self.timed_call = timed_call
        self._kept_call = kept_call

    def __call__(self) -> None:
        self._kept_call()

    def sync(self) -> None:
        """A public call is complete when it returns."""

    def output(self) -> Arrays:
        return self._y
