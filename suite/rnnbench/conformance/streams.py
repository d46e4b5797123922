"""Checks of streams as users have them: one buffer for all inputs, kept results, sessions that come and go."""

from __future__ import annotations

import gc
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, cycle, pairwise

import numpy as np

from rnnbench.backends import Arrays, Bound, Session
from rnnbench.conformance.budget import GOES_ON, Budget, planned_turns
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import (
    aligned,
    called,
    first_outputs,
    output_pairs,
    overwrite,
    undisturbed_bound_outputs,
    undisturbed_calls,
    undisturbed_outputs,
)
from rnnbench.conformance.garbage import only_new_garbage
from rnnbench.conformance.long_runs import compare_outputs, settled_start
from rnnbench.conformance.ring_trajectory import RING
from rnnbench.conformance.rings import RINGS
from rnnbench.conformance.tolerance import Errors, Pair, same_bits, worst
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.measure import resident
from rnnbench.results import CheckResult

KEPT_CALLS, KEPT_ENOUGH, KEPT_BYTES, KEPT_S = 4_000, 160, 16 << 20, 0.03
"""Calls whose results are kept: at most, with `limits.enough`, the most bytes of them, and the seconds of the check. A
program that takes less than 10 µs per call makes all of them."""
KEPT_LEAST = 2 * RING + 1
"""The least of these calls: more than the buffers of a ring and one call, and few enough for 1 ms per call."""
KEPT_APART = 8 * RING
"""Further calls, in which each path feeds its own chunks: fewer of a program that takes more than 4 ms per call."""
OPENED, OPENED_ENOUGH, OPENED_LEAST, OPENED_S = 1_000, 180, 13, 0.025
"""Sessions that are opened: at most, with `limits.enough`, at least, and the seconds of the check."""
OPEN_AT_ONCE, OPEN_LEAST, OPEN_BYTES = 132, 12, 64 << 20
"""Sessions that are open at once: more than a table of 128 entries holds. Fewer, but at least OPEN_LEAST, if the copies
of the weights would need more than OPEN_BYTES; and no more once the process has half of the trial's memory."""
WEIGHED_AFTER = 4
"""Sessions that are opened between two readings of the memory."""
RESETS, RESETS_ENOUGH, RESETS_LEAST, RESETS_S = 2_000, 110, 10, 0.02
"""Resets: at most, with `limits.enough`, at least, and the seconds of the check."""
READ_BACK, READ_BACK_ENOUGH = 2_000, 800
"""Resets and states that are set and read back without a call, within RESETS_S. With enough of them, a fault of every
256th reset of a session shows: each fourth turn is a reset, and some 80 were made before."""
IN_A_ROW = 9
"""The most resets, or states that are set, without a call between: more than a queue of eight places holds."""
FILES = 4
"""Files that are opened between a session's first close and its second."""


def _refilled(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Call with one buffer for x (and lengths), and overwrite it after each call and before the state is read."""
    pairs = []
    for steps in sorted(
        {1, reference.trial.strategy.chunk} if reference.is_stream else {reference.trial.strategy.chunk}
    ):
        expected, refilled = undisturbed_calls(open_session, reference, from_start=True, steps=steps), open_session()
        buffers = {name: aligned(array[:steps] if name == "x" else array) for name, array in reference.ring[0].items()}
        read_only = _read_only(buffers)
        if reference.is_stream:
            pairs += _start_from_buffers(refilled, reference)
        for call, (chunk, expected_y) in enumerate(zip(reference.ring, expected.outputs, strict=False)):
            for name, array in chunk.items():
                np.copyto(buffers[name], array[:steps] if name == "x" else array)
            y = refilled.step(read_only if call < len(expected.outputs) // 2 else buffers)["y"]
            overwrite(buffers)
            pairs.append((f"from one buffer of {steps} steps that is refilled, y of call {call}", y, expected_y))
        pairs += [
            (f"with the buffer overwritten after the last call, state {name}", array, expected.states[name])
            for name, array in refilled.get_state().items()
        ]
    return same_bits(pairs)


def _start_from_buffers(session: Session, reference: ReferenceTrajectories) -> list[Pair]:
    """Set zeros and then `start`, twice from the same buffers, and overwrite the buffers. Returns pairs of the state.

    The first time they are passed as read-only views. The caller writes to them all the same.
    """
    state = {name: aligned(array) for name, array in reference.zeros.items()}
    read: Arrays = {}
    for given in (_read_only(state), state):
        for values in (reference.zeros, reference.start):
            for name, array in values.items():
                np.copyto(state[name], array)
            session.set_state(given)
        read = read or session.get_state()
    overwrite(state)
    return [(f"from a buffer that is refilled, state {name}", read[name], reference.start[name]) for name in read]


def _read_only(arrays: Arrays) -> Arrays:
    """Read-only views of the arrays."""
    views = {name: array.view() for name, array in arrays.items()}
    for view in views.values():
        view.flags.writeable = False
    return views


def _call(session: Session, bound: Bound | None, inputs: Arrays) -> np.ndarray:
    """y of a call of `bound`; None makes a public call."""
    return session.step(inputs)["y"] if bound is None else called(bound)


def _closing(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Close sessions one after the other, each twice and the oldest first, while others go on. Drop one unclosed."""
    alone = undisturbed_outputs(open_session, reference)
    alone_bound = undisturbed_bound_outputs(open_session, reference)
    sessions, ragged = [open_session() for _ in range(4)], _longer(reference)
    goes_on, bound_goes_on = sessions[1], sessions[3].bind(reference.ring)
    newest: list[Session] = []
    sessions[2].bind(reference.ring)()
    sessions[2].reset()
    first, pairs = open_session().step(ragged)["y"], []
    for call, closed in enumerate((sessions[0], sessions[2], open_session())):
        kept = {"y": closed.step(ragged)["y"], **closed.get_state()}
        before = {name: array.copy() for name, array in kept.items()}
        newest.append(open_session())
        newest[-1].step(reference.ring[0])
        open_session.close(closed)
        with _files_in_between() as harmed:
            closed.close()  # A second time does nothing.
        when = f"with {call + 1} sessions closed, call {call} of another:"
        if harmed:
            detail = "a session that was closed a second time closed files that others have opened since"
            return CheckResult(verdict="fail", detail=detail)
        if call == 1:  # This session is never closed.
            _drop_one(open_session, ragged)
            pairs += _of_a_session_that_is_dropped(open_session, reference, alone_bound)
        pairs += [
            (f"{when} y", goes_on.step(reference.ring[call])["y"], alone[call]),
            (f"{when} y of a bound call", called(bound_goes_on), alone_bound[call]),
            (f"{when} y of the one that was opened last", newest[-1].step(reference.ring[1])["y"], alone[1]),
            (f"with {call} sessions closed, y of a call with a rest", before["y"], first),
            *((f"{name} that a closed session had returned", kept[name], before[name]) for name in kept),
        ]
    return same_bits(pairs)


@contextmanager
def _files_in_between() -> Iterator[list[int]]:
    """Open files, which get the descriptors that were freed last. The list then has those that somebody has closed."""
    files, harmed = [os.open(os.devnull, os.O_RDONLY) for _ in range(FILES)], list[int]()
    try:
        yield harmed
    finally:
        for file in files:
            try:
                os.close(file)
            except OSError:
                harmed.append(file)


def _of_a_session_that_is_dropped(
    open_session: OpenSession, reference: ReferenceTrajectories, alone: Sequence[np.ndarray]
) -> list[Pair]:
    """Pairs of y of bound calls after the caller has dropped its reference to the session."""
    with only_new_garbage():
        session = open_session()
        bound = session.bind(reference.ring)
        open_session.forget(session)
        del session
        gc.collect()
    return output_pairs("of a session that the caller dropped, y of bound call", [called(bound)], list(alone[:1]))


def _drop_one(open_session: OpenSession, inputs: Arrays) -> None:
    """Use a session, and drop it without closing it."""
    with only_new_garbage():
        session = open_session()
        session.step(inputs)
        open_session.forget(session)
        del session
        gc.collect()


def _longer(reference: ReferenceTrajectories) -> Arrays:
    """The inputs of a call with a ragged rest, so that the rest's program is used too. With state `none`, a chunk."""
    if not reference.is_stream:
        return reference.ring[0]
    return {"x": np.concatenate([reference.ring[0]["x"], reference.ring[1]["x"][:1]])}


def _kept(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Keep the results of very many public and bound calls in turn, and states, and check that they do not change.

    The calls make one stream of the ring; the bound calls have every second chunk. The outputs are compared with the
    reference's, which it soon repeats with each pass. In further calls each path feeds its own chunks, which gives
    other outputs.
    """
    ring = [{name: array.copy() for name, array in chunk.items()} for chunk in reference.ring]
    session, chunks = open_session(), cycle(ring)
    bound = session.bind(ring[1::2])
    if reference.is_stream:
        session.set_state(settled_start(reference))
    size = reference.ring_trajectory.y[0].size * reference.x.itemsize
    most = planned_turns(reference.trial.limits, KEPT_CALLS, KEPT_ENOUGH)
    planned = min(most, max(KEPT_BYTES // size, RING))
    budget = Budget("kept outputs", planned, min(KEPT_LEAST, planned), GOES_ON * KEPT_S, enough=KEPT_S)
    kept: list[np.ndarray] = []
    sums: list[int] = []
    outputs: list[np.ndarray] = []
    for call in budget:
        outputs.append(_call(session, bound if call % 2 else None, next(chunks)))
        results = [outputs[-1], *session.get_state().values()] if call % RING == 0 else [outputs[-1]]
        kept += results
        sums += [_checksum(array) for array in results]
    of_all, chunks = session.bind(ring), cycle(ring)
    for call in Budget("", KEPT_APART, KEPT_APART, GOES_ON * KEPT_S, enough=KEPT_S):
        kept.append(_call(session, of_all if call % 2 else None, next(chunks)))
        sums.append(_checksum(kept[-1]))
    changed = [index for index, array in enumerate(kept) if _checksum(array) != sums[index]]
    if changed:
        detail = (
            f"{len(changed)} of {len(kept)} results that were kept changed later, the first of them number {changed[0]}"
        )
        return CheckResult(verdict="fail", detail=detail)
    for index, (chunk, expected) in enumerate(zip(ring, reference.ring, strict=True)):
        if written := [name for name, array in chunk.items() if _checksum(array) != _checksum(expected[name])]:
            detail = f"{written[0]} of chunk {index} was written to by some of the calls"
            return CheckResult(verdict="fail", detail=detail)
    read_only = [index for index, array in enumerate(kept) if not array.flags.writeable]
    if read_only:
        detail = f"results number {read_only[0]} and {len(read_only) - 1} others are read-only: the caller owns them"
        return CheckResult(verdict="fail", detail=detail)
    if shared := _sharing_memory(kept):
        return CheckResult(verdict="fail", detail=f"results number {shared[0]} and {shared[1]} are in the same memory")
    return budget.result(_as_reference(outputs, reference))


def _as_reference(outputs: Sequence[np.ndarray], reference: ReferenceTrajectories) -> CheckResult:
    """Compare y of each call with the reference. With state `none`, y must also be the same in every pass."""
    errors = Errors()
    compare_outputs(errors, "call", outputs, reference)
    verdict = errors.verdict()
    if verdict.verdict == "fail" or reference.is_stream:
        return verdict
    pairs = zip(outputs[RING:], outputs, strict=False)
    return worst(verdict, same_bits((f"y of call {RING + call}", y, before) for call, (y, before) in enumerate(pairs)))


def _checksum(array: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(array).data)


def _sharing_memory(arrays: Sequence[np.ndarray]) -> tuple[int, int] | None:
    """The indices of two arrays that share memory; None if no neighbours in memory do."""
    order = sorted(range(len(arrays)), key=lambda index: arrays[index].ctypes.data)
    for one, other in pairwise(order):
        if np.shares_memory(arrays[one], arrays[other]):
            return min(one, other), max(one, other)
    return None


def _sessions(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Open very many sessions, some at a time, and keep one open throughout. Each must begin like the first one."""
    stays, others = open_session(), deque[Session]()
    first, second, *_ = undisturbed_outputs(open_session, reference)
    weight_bytes = sum(array.nbytes for _, array in reference.weights.named(reference.trial.model))
    at_once = max(OPEN_LEAST, min(OPEN_AT_ONCE, OPEN_BYTES // max(1, weight_bytes)))
    stays.step(reference.ring[0])
    planned = planned_turns(reference.trial.limits, OPENED, OPENED_ENOUGH)
    budget = Budget("sessions", planned, OPENED_LEAST, GOES_ON * OPENED_S, enough=OPENED_S)
    for number in budget:
        if number <= at_once and number % WEIGHED_AFTER == 0 and resident() > reference.trial.limits.memory // 2:
            at_once = len(others)
        session = open_session()
        others.append(session)
        began = same_bits([(f"y of session {number}", session.step(reference.ring[0])["y"], first)])
        if began.verdict == "fail":
            return began
        if len(others) > at_once:
            open_session.close(others.popleft() if number % 2 else others.pop())
    went_on = [session.step(reference.ring[1])["y"] for session in (stays, *others)]
    return budget.result(same_bits(output_pairs("second y of open session", went_on, [second] * len(went_on))))


def _resets(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Reset one session very often, or set its state. It must begin each time like the first time."""
    session = open_session()
    first = session.step(reference.ring[0])["y"]
    started = first
    if reference.is_stream:
        session.set_state(reference.start)
        started = session.step(reference.ring[0])["y"]
    planned = planned_turns(reference.trial.limits, RESETS, RESETS_ENOUGH)
    budget = Budget("resets", planned, RESETS_LEAST, GOES_ON * RESETS_S, enough=RESETS_S)
    for number in budget:
        if number % 3 == 1 and reference.is_stream:
            session.set_state(reference.start)
            right = started
        else:
            session.reset()
            right = first
        result = same_bits([(f"y after reset {number}", session.step(reference.ring[0])["y"], right)])
        if result.verdict == "fail":
            return result
    more = _resets_in_a_row(session, reference, first, started)
    if reference.is_stream:
        more = chain(more, _states_read_back(session, reference))
    for result in more:
        if result.verdict == "fail":
            return result
    session.reset()
    outputs, expected = first_outputs(session, reference), undisturbed_outputs(open_session, reference)
    return budget.result(same_bits(output_pairs("after all resets, y of call", outputs, expected)))


def _resets_in_a_row(
    session: Session, reference: ReferenceTrajectories, first: np.ndarray, started: np.ndarray
) -> Iterator[CheckResult]:
    """After several resets or set states in a row, a call must have the bits of `first`, or of `started`."""
    turns: list[tuple[str, Callable[[], None], np.ndarray]] = [("resets", session.reset, first)]
    if reference.is_stream:
        turns.append(("states that were set", lambda: session.set_state(reference.start), started))
    for count in range(2, IN_A_ROW + 1):
        for what, turn, right in turns:
            for _ in range(count):
                turn()
            yield same_bits([(f"y after {count} {what} in a row", session.step(reference.ring[0])["y"], right)])


def _states_read_back(session: Session, reference: ReferenceTrajectories) -> Iterator[CheckResult]:
    """Set states and reset in turn, and read the state each time. No call is made, so there is time for many."""
    turns: tuple[tuple[str, Callable[[], None], Arrays], ...] = (
        ("a state was set", lambda: session.set_state(reference.start), reference.start),
        ("a reset", session.reset, reference.zeros),
        ("a state was set", lambda: session.set_state(reference.start), reference.start),
        ("zeros were set", lambda: session.set_state(reference.zeros), reference.zeros),
    )
    for number in Budget("", planned_turns(reference.trial.limits, READ_BACK, READ_BACK_ENOUGH), 0, RESETS_S):
        what, turn, right = turns[number % len(turns)]
        turn()
        when = f"after {what}, in turn {number + 1} of states and resets"
        read = session.get_state()
        if turn == session.reset:  # Zeros may have either sign.
            read = {name: np.where(array == 0, right[name], array) for name, array in read.items()}
        yield same_bits((f"{when}, state {name}", array, right[name]) for name, array in read.items())


STREAMS = (
    Check("refilled", "The caller may refill one buffer for all calls.", _refilled),
    *RINGS,
    Check("closing", "Sessions go on while others are closed, and results of a closed one stay valid.", _closing),
    Check("kept", "Results of thousands of calls are right, and do not change later.", _kept, compares=True),
    Check("sessions", "A thousand sessions begin alike, and one that stays open goes on.", _sessions),
    Check("resets", "A thousand resets begin alike.", _resets),
)
