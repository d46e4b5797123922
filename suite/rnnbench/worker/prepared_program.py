"""A program that is ready to be sampled: what is timed of it, what it is asked between blocks, and how it is tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rnnbench.backends import Arrays, Program
from rnnbench.conformance import RING, PublicPath, ReferenceTrajectories, TimedPath, worst
from rnnbench.measure import LatencyPath, TimedCall, bound_beforehand, lazy_result, remembered_work
from rnnbench.results import CheckResult
from rnnbench.worker.new_arrays import NewArrays


class PreparedProgram:
    """A program ready to be sampled: its bound path, and the public path on a session of its own."""

    def __init__(self, program: Program, reference: ReferenceTrajectories, evict: Callable[[], object]) -> None:
        self.timed = TimedPath(program.open(), reference)
        self._program = program
        self.public = PublicPath(program.open(), reference)
        self._reference = reference
        self._new = NewArrays(reference.trial.seed)
        bound = self.timed.bound
        self._calls = {
            "bound": TimedCall(bound, bound.sync, evict),
            "public": TimedCall(self.public.timed_call, _do_nothing, evict),
        }

    def verify(self) -> CheckResult:
        """Check what the timed calls of both paths came to."""
        return worst(self.timed.verify(), self.public.verify())

    def timed_call(self, path: LatencyPath) -> TimedCall:
        return self._calls[path.entry]

    def sync(self) -> None:
        """Returns once the device has done what the bound calls have queued. A stopped process does not stop it."""
        self.timed.bound.sync()

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
        ring: Sequence[Arrays] = self._reference.ring
        if self._reference.is_stream:
            yield remembered_work("bound", self._bound_calls, start, lambda: new.like(start))
        elif call_s is not None:
            yield bound_beforehand(self._binding, RING, call_s)
        yield remembered_work(
            "public", self._public_calls, (start, ring), lambda: (new.like(start), [new.like(chunk) for chunk in ring])
        )
        yield lazy_result(self.public.session.step(ring[0])["y"])
        self.timed.start()
        self.public.start()

    def _bound_calls(self, state: Arrays) -> None:
        """A pass over the ring, from wherever the bound calls have got to."""
        self.timed.session.set_state(state)
        for _ in range(RING):
            self.timed.bound()
        self.timed.bound.sync()
        self.timed.called(RING)

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
