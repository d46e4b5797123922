"""A program that is ready to be sampled: what is timed of it, what it is asked between blocks, and how it is tested."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rnnbench.backends import Arrays, Bound, InStream, Program
from rnnbench.conformance import RING, PublicPath, ReferenceTrajectories, TimedPath, worst
from rnnbench.measure import (
    LatencyPath,
    TimedCall,
    bound_beforehand,
    lazy_result,
    put_off_work,
    remembered_work,
    sample_block,
)
from rnnbench.results import CheckResult
from rnnbench.worker.new_arrays import NewArrays

LONG_CALL_S = 0.001
"""Seconds of a call that shows by itself whether its result was known. Of shorter ones a pass over the ring does."""
MANY_CALLS, LONG_CALLS = 4 * RING, 2
"""Calls after which a look is compared with one after a single call. A network needs some 40 steps to forget, so with
one step a call none of these calls can be left out. Of long calls, each one shows."""
SETTLING_CALLS, SETTLING_S = 64 * RING, 0.02
"""Calls after which the states of a ring come again to the bit, so that a table of results has them all; and the most
seconds for them."""
DEVICE_CALLS = 20
"""Calls that the device's own events time, one at a time."""
Clock = Callable[[Callable[[], object]], float]
OpenClock = Callable[[int], Clock]
"""`DeviceKind.open_clock`."""


class PreparedProgram:
    """A program ready to be sampled: its bound path, and the public path on a session of its own."""

    def __init__(self, program: Program, reference: ReferenceTrajectories, evict: Callable[[], object]) -> None:
        self.timed = TimedPath(program.open(), reference)
        self._program = program
        self.public = PublicPath(program.open(), reference)
        self._reference = reference
        self._new = NewArrays(reference.trial.seed)
        self._device_clock: Clock | None = None
        bound = self.timed.bound
        self._calls = {
            "bound": TimedCall(bound, bound.sync, evict),
            "public": TimedCall(self.public.timed_call, _do_nothing, evict),
        }

    def verify_first_calls(self) -> CheckResult:
        """Check the first calls of both paths, before any is timed."""
        return worst(self.timed.verify_first_calls(), self.public.verify_first_calls())

    def verify(self) -> CheckResult:
        """Check what the timed calls of both paths came to."""
        return worst(
            self.timed.verify(),
            self.timed.verify_as_timed(self._timed_bound_calls),
            self.public.verify(),
            self.public.verify_as_timed(self._timed_public_calls),
        )

    def timed_call(self, path: LatencyPath) -> TimedCall:
        return self._calls[path.entry]

    def sync(self) -> None:
        """Returns once the device has done what the bound calls have queued. A stopped process does not stop it."""
        self.timed.bound.sync()

    def open_device_clock(self, open_clock: OpenClock) -> None:
        """Where the adapter names the stream of its calls, open the device's clock of it. Raises UnmeasuredError."""
        if isinstance(self.timed.bound, InStream):
            self._device_clock = open_clock(self.timed.bound.stream)

    def device_seconds(self) -> float | None:
        """Seconds of a bound call by the device's own events, a median; None where no clock was opened."""
        if self._device_clock is None:
            return None
        self.timed.start()
        seconds = [self._device_clock(self.timed.bound) for _ in range(DEVICE_CALLS)]
        self.timed.called(DEVICE_CALLS)
        self.timed.start()
        return statistics.median(seconds)

    def copy_state(self) -> None:
        """The state's round trip through NumPy, there and back again."""
        session = self.public.session
        session.set_state(session.get_state())

    def look_at_bound(self) -> None:
        """Read what the bound calls led to."""
        self.timed.bound.output()
        self.timed.session.get_state()

    def look_at_public(self) -> None:
        """Read what the public calls led to."""
        self.public.session.get_state()

    def moved_work(self, call_s: float | None) -> Iterator[str]:
        """What shows that the work of calls is done at another time, a sentence each.

        `call_s` is what a bound call takes; None where none was timed in this process.
        """
        new = self._new
        start: Arrays = self._reference.start
        is_short = call_s is None or call_s < LONG_CALL_S
        many, calls = (MANY_CALLS, RING) if is_short else (LONG_CALLS, 1)
        ring: Sequence[Arrays] = self._reference.ring[:calls]
        yield put_off_work("bound", self._timed_bound_calls, self.look_at_bound, many)
        yield put_off_work("public", self._timed_public_calls, self.look_at_public, many)
        if call_s is not None:
            settle = partial(self._timed_bound_calls, max(1, min(SETTLING_CALLS, int(SETTLING_S / call_s))))
            on_ring = partial(self._calls_on_ring, max(1, calls - 1))
            yield remembered_work("bound, new ring", on_ring, self.timed.bound, self._bound_to_new_ring, settle)
        if self._reference.is_stream:
            bound_calls = partial(self._bound_calls, calls)
            for _ in range(0, RING, calls):
                bound_calls(start)
            yield remembered_work("bound", bound_calls, start, lambda: new.like(start))
        elif call_s is not None:
            yield bound_beforehand(self._binding, RING, call_s)
        self._public_calls((start, ring))
        yield remembered_work(
            "public", self._public_calls, (start, ring), lambda: (new.like(start), [new.like(chunk) for chunk in ring])
        )
        yield lazy_result(self.public.session.step(ring[0])["y"])
        self.timed.start()
        self.public.start()

    def _timed_bound_calls(self, calls: int) -> float:
        """So many bound calls, in the loop in which a block times them, and their seconds."""
        block = sample_block(self.timed.bound, self.timed.bound.sync, 0.0, calls_per_sample=calls, rewarm=False)
        self.timed.called(calls)
        return calls * float(block.seconds[0])

    def _timed_public_calls(self, calls: int) -> float:
        block = sample_block(self.public.timed_call, _do_nothing, 0.0, calls_per_sample=calls, rewarm=False)
        self.public.called(calls)
        return calls * float(block.seconds[0])

    def _bound_to_new_ring(self) -> Bound:
        """The timed session, bound to a ring of new chunks too, and called once: a first call may prepare something."""
        bound = self.timed.session.bind([self._new.like(chunk) for chunk in self._reference.ring])
        self._calls_on_ring(1, bound)
        return bound

    def _calls_on_ring(self, calls: int, bound: Bound) -> None:
        for _ in range(calls):
            bound()
        bound.sync()
        if bound is self.timed.bound:
            self.timed.called(calls)

    def _bound_calls(self, calls: int, state: Arrays) -> None:
        """So many calls from a state, with the ring's chunks from wherever the bound calls have got to."""
        self.timed.session.set_state(state)
        for _ in range(calls):
            self.timed.bound()
        self.timed.bound.sync()
        self.timed.called(calls)

    def _public_calls(self, start: tuple[Arrays, Sequence[Arrays]]) -> None:
        state, chunks = start
        if self._reference.is_stream:
            self.public.session.set_state(state)
        for chunk in chunks:
            self.public.session.step(chunk)

    def _binding(self, chunks: int) -> Callable[[], object]:
        """What binds a ring of so many new chunks, in a session of its own."""
        ring = [self._new.like(chunk) for chunk in self._reference.ring[:chunks]]
        session = self._program.open()
        return lambda: session.bind(ring)


def _do_nothing() -> None:
    """A public call is complete when it returns."""
