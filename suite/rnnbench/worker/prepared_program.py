"""A program that is ready to be sampled: its timed calls, the looks at its results between blocks, and its checks."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from time import perf_counter
from typing import NamedTuple

import numpy as np

from rnnbench.backends import Arrays, Bound, InStream, Program, TakesStream
from rnnbench.conformance import RING, PublicPath, ReferenceTrajectories, TimedPath, worst
from rnnbench.devices import DeviceKind, UnmeasuredError
from rnnbench.measure import (
    BlockPlan,
    LatencyPath,
    TimedCall,
    bound_beforehand,
    lazy_result,
    put_off_work,
    remembered_work,
    sample_block,
)
from rnnbench.results import CheckResult

LONG_CALL_S = 0.001
"""A call of at least these seconds shows by itself whether its result was remembered. Shorter ones need a pass over
the ring."""
MANY_CALLS, LONG_CALLS = 4 * RING, 2
"""A look after this many calls (short ones, long ones) is compared with a look after one call. A network forgets within
some 40 steps, so with one step per call none of the short calls can be left out."""
SETTLING_CALLS, SETTLING_S = 64 * RING, 0.02
"""Calls after which the states on a ring repeat exactly, so that a table of results would have all of them; and the
most seconds for these calls."""
DEVICE_CALLS = 20
"""Calls that are timed with the device's own events, one at a time."""
CHECKED_DEVICE_CALLS = RING - 3
"""Further calls that are timed so, from the start state. What they led to is checked."""
Clock = Callable[[Callable[[], object]], float]
FIRST_CALLS = 2 * RING
"""Calls in a stream of the suite that are not counted: a runtime may record something in each chunk's first two."""
NO_STREAM = "The runtime of {} has streams of its own: it names none to its caller, and takes none."
OTHER_CALL = "The device's events are further apart than the host saw the call take: they are not of this call."
OTHER_STREAM = "Most of the call's work came after the device's last event: it is in another stream than the events."
OTHER_RESULT = "The calls between the device's events do not what the program's other calls do: {}."


class DeviceCall(NamedTuple):
    """Seconds of one call, which has one event before it and one after it in a stream of the device."""

    device: float
    """Between the two events, by the device's clock."""
    host: float
    """By the host's clock, until the second event has come."""
    rest: float
    """By the host's clock, from the second event until all of the device's work is done."""


class PreparedProgram:
    """A program ready to be sampled: its bound path, and the public path on a session of its own."""

    def __init__(self, program: Program, reference: ReferenceTrajectories, evict: Callable[[], object]) -> None:
        self.timed = TimedPath(program.open(), reference)
        self._program = program
        self.public = PublicPath(program.open(), reference)
        self._reference = reference
        bound = self.timed.bound
        self._random = np.random.default_rng(reference.trial.seed)
        self._device_clock: Clock | None = None
        self._open_device_call: Callable[[], AbstractContextManager[Callable[[], object]]] = lambda: nullcontext(bound)
        self._first_device_calls = 0
        self._waiting = dict[LatencyPath, None]()
        """The sampled paths that wait before each bound call, or empty caches there."""
        self._calls = {
            "bound": TimedCall(bound, bound.sync, evict),
            "public": TimedCall(self.public.timed_call, _do_nothing, evict),
        }

    def verify_first_calls(self) -> CheckResult:
        """Check the first calls of both paths, before any is timed."""
        return worst(self.timed.verify_first_calls(), self.public.verify_first_calls())

    def verify(self) -> CheckResult:
        """Check the outputs and states that the timed calls of both paths led to."""
        return worst(
            self.timed.verify(),
            self.timed.verify_as_timed(self._timed_bound_calls),
            *(self.timed.verify_block(path.name, partial(self._shortest_block, path)) for path in self._waiting),
            self.public.verify(),
            self.public.verify_as_timed(self._timed_public_calls),
        )

    def timed_call(self, path: LatencyPath) -> TimedCall:
        if path.setting and path.entry == "bound":
            self._waiting[path] = None
        return self._calls[path.entry]

    def sync(self) -> None:
        """Wait until the device has finished all queued bound calls. Stopping the process would not stop the device."""
        self.timed.bound.sync()

    def open_device_clock(self, kind: DeviceKind) -> None:
        """Open the clock of a device that has one, for the stream of the adapter's calls. Raises UnmeasuredError."""
        if kind.open_clock is None:
            return
        bound = self.timed.bound
        if isinstance(bound, InStream):
            self._device_clock = kind.open_clock(bound.stream)
        elif isinstance(bound, TakesStream) and kind.open_stream is not None:
            stream = kind.open_stream()
            self._device_clock = kind.open_clock(stream)
            self._open_device_call = lambda: bound.in_stream(stream)
            self._first_device_calls = FIRST_CALLS
        else:
            raise UnmeasuredError(NO_STREAM.format(self._reference.trial.target.backend))

    def device_seconds(self) -> float | None:
        """The median seconds of a bound call by the device's own events; None if no clock was opened.

        Raises UnmeasuredError.
        """
        if self._device_clock is None:
            return None
        first, clock = self._first_device_calls, self._device_clock
        with self._open_device_call() as call:
            self.timed.start()
            calls = [self._device_call(clock, call) for _ in range(first + DEVICE_CALLS)]
            self.timed.called(len(calls))
            result = self.timed.verify_block("device's", partial(self._checked_device_calls, clock, call))
        self.timed.start()
        if result.verdict == "fail":
            raise UnmeasuredError(OTHER_RESULT.format(result.detail))
        return believed(calls[first:])

    def _checked_device_calls(self, clock: Clock, call: Callable[[], object]) -> int:
        """Make a few calls as they are timed. Returns their number."""
        for _ in range(CHECKED_DEVICE_CALLS):
            self._device_call(clock, call)
        return CHECKED_DEVICE_CALLS

    def _device_call(self, clock: Clock, call: Callable[[], object]) -> DeviceCall:
        start = perf_counter()
        device = clock(call)
        after = perf_counter()
        self.sync()
        return DeviceCall(device, after - start, perf_counter() - after)

    def copy_state(self) -> None:
        """Read the state into NumPy arrays, and set it from them."""
        session = self.public.session
        session.set_state(session.get_state())

    def look_at_bound(self) -> None:
        """Read the output and state that the bound calls led to."""
        self.timed.bound.output()
        self.timed.session.get_state()

    def look_at_public(self) -> None:
        """Read the state that the public calls led to."""
        self.public.session.get_state()

    def moved_work(self, call_s: float | None) -> Iterator[str]:
        """Signs that the work of timed calls is done at another time. Each is a sentence, or empty.

        `call_s` is the seconds of a bound call; None if none was timed in this process.
        """
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
            yield remembered_work("bound", bound_calls, start, lambda: self._shuffled(start))
        elif call_s is not None:
            yield bound_beforehand(self._binding, RING, call_s)
        self._public_calls((start, ring))
        yield remembered_work(
            "public",
            self._public_calls,
            (start, ring),
            lambda: (self._shuffled(start), [self._shuffled(chunk) for chunk in ring]),
        )
        yield lazy_result(self.public.session.step(ring[0])["y"])
        self.timed.start()
        self.public.start()

    def _shuffled(self, arrays: Arrays) -> Arrays:
        """Arrays that the program has not seen: the floats in another order, so that calls with them cost the same."""
        return {
            name: self._random.permutation(array.ravel()).reshape(array.shape) if array.dtype.kind == "f" else array
            for name, array in arrays.items()
        }

    def _timed_bound_calls(self, calls: int) -> float:
        """Make bound calls in the loop that times blocks. Returns the seconds of all of them."""
        block = sample_block(self.timed.bound, self.timed.bound.sync, 0.0, calls_per_sample=calls, rewarm=False)
        self.timed.called(calls)
        return calls * float(block.seconds[0])

    def _shortest_block(self, path: LatencyPath) -> int:
        """Make the calls of the shortest block. Returns their number."""
        setting = path.value(self._reference.trial.measure.settings)
        return path.sample(self._calls[path.entry], BlockPlan(0.0, setting=setting)).calls

    def _timed_public_calls(self, calls: int) -> float:
        block = sample_block(self.public.timed_call, _do_nothing, 0.0, calls_per_sample=calls, rewarm=False)
        self.public.called(calls)
        return calls * float(block.seconds[0])

    def _bound_to_new_ring(self) -> Bound:
        """Bind the timed session to a ring of new chunks too. It is called once: a first call may prepare something."""
        bound = self.timed.session.bind([self._shuffled(chunk) for chunk in self._reference.ring])
        self._calls_on_ring(1, bound)
        return bound

    def _calls_on_ring(self, calls: int, bound: Bound) -> None:
        for _ in range(calls):
            bound()
        bound.sync()
        if bound is self.timed.bound:
            self.timed.called(calls)

    def _bound_calls(self, calls: int, state: Arrays) -> None:
        """Make bound calls from `state`. They go on with the ring's chunk that comes next."""
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
        """A function that binds a ring of `chunks` new chunks, in a new session."""
        ring = [self._shuffled(chunk) for chunk in self._reference.ring[:chunks]]
        session = self._program.open()
        return lambda: session.bind(ring)


def _do_nothing() -> None:
    """A public call is complete when it returns."""


def believed(calls: Sequence[DeviceCall]) -> float:
    """The median of the device's seconds. Raises UnmeasuredError where they cannot be those of the calls."""
    median = DeviceCall(*(statistics.median(seconds) for seconds in zip(*calls, strict=True)))
    if median.device > median.host:
        raise UnmeasuredError(OTHER_CALL)
    if median.rest > median.host:
        raise UnmeasuredError(OTHER_STREAM)
    return median.device
