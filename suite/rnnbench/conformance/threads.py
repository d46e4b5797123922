"""The check of sessions that several threads use, at once or one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import chain, cycle
from threading import Barrier, BrokenBarrierError

import numpy as np

from rnnbench.backends import Arrays, Bound, Session
from rnnbench.conformance.budget import Budget, planned_turns
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import (
    FEW_CALLS,
    called,
    first_bound_outputs,
    output_pairs,
    undisturbed_bound_outputs,
    undisturbed_outputs,
)
from rnnbench.conformance.thread_switches import switching_every
from rnnbench.conformance.tolerance import Pair, same_bits
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult

THREAD_CALLS, THREAD_CALLS_ENOUGH, THREAD_CALLS_LEAST, THREADS_S = 500, 320, 9, 0.02
"""Outputs and states of each of two threads: at most, with `limits.enough`, at least, and the seconds of the check."""
PUBLIC_PASS, BOUND_PASS = 0, 1
"""The two kinds of passes over a thread's calls."""
Named = tuple[str, np.ndarray]
"""An output or a state, with its description."""
AT_ONCE = 4
"""Threads with a session each that live at once: more than a program has room for that expects two."""
SWITCH_S = 1e-6
"""Python's switch interval while threads make calls, in seconds: far less than a call takes."""


def _threads(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Two streams at once. Each begins in this thread, continues in its own thread, and ends in this one again.

    Then each thread makes calls of both paths over and over, and sets and reads its state, since threads seldom take
    turns in the middle of one short call.
    """
    feeds = [reference.ring[:FEW_CALLS], reference.ring[FEW_CALLS : 2 * FEW_CALLS]]
    alone = [undisturbed_outputs(open_session, reference), _outputs_alone(open_session, feeds[1])]
    alone_passes = [_passes_alone(open_session, feed, reference) for feed in feeds]
    sessions, barrier = [open_session() for _ in feeds], Barrier(len(feeds))
    planned = planned_turns(reference.trial.limits, THREAD_CALLS, THREAD_CALLS_ENOUGH)
    budgets = [Budget("calls in each of two threads", planned, THREAD_CALLS_LEAST, THREADS_S) for _ in feeds]
    together = [_outputs(session, feed[:1]) for session, feed in zip(sessions, feeds, strict=True)]
    with switching_every(SWITCH_S), ThreadPoolExecutor(len(feeds)) as pool:
        went_on = list(pool.map(partial(_outputs, barrier=barrier), sessions, [feed[1:-1] for feed in feeds]))
        ended = [_outputs(session, feed[-1:]) for session, feed in zip(sessions, feeds, strict=True)]
        bound = [session.bind(feed) for session, feed in zip(sessions, feeds, strict=True)]
        streams = [partial(_pass, *arguments, reference) for arguments in zip(sessions, bound, feeds, strict=True)]
        repeated = list(pool.map(partial(_repeated, barrier=barrier), streams, alone_passes, budgets))
    pairs = [
        pair
        for began, *others, expected in zip(together, went_on, ended, alone, strict=True)
        for pair in output_pairs("of two streams in two threads, y of call", sum(others, began), expected)
    ]
    for session in sessions:
        open_session.close(session)
    pairs += _bound_elsewhere(open_session, reference)
    pairs += _opened_elsewhere(open_session, feeds[0], alone[0])
    pairs += _in_several_threads(open_session, feeds[0], alone[0])
    pairs += _bound_at_once(open_session, reference)
    return min(budgets, key=lambda budget: budget.done).result(same_bits([*pairs, *chain(*repeated)]))


def _bound_elsewhere(open_session: OpenSession, reference: ReferenceTrajectories) -> list[Pair]:
    """Pairs of bound calls that continue in another thread than the one that bound the ring."""
    there, expected = open_session().bind(reference.ring), undisturbed_bound_outputs(open_session, reference)
    began = first_bound_outputs(there)
    with ThreadPoolExecutor(1) as pool:
        went_on = pool.submit(first_bound_outputs, there).result()
        pairs = output_pairs("that goes on in another thread, y of bound call", [*began, *went_on], expected)
        session = open_session()
        before = session.get_state()
        bound = pool.submit(session.bind, reference.ring).result()
        bound()
        y = pool.submit(bound.output).result()["y"]
        states = pool.submit(session.get_state).result()
        here = session.get_state()
    return [
        *pairs,
        ("of a ring that another thread bound and whose output a thread reads, y", y, expected[0]),
        *((f"state {name} that another thread reads", states[name], here[name]) for name in before),
    ]


def _opened_elsewhere(open_session: OpenSession, feed: Sequence[Arrays], alone: Sequence[np.ndarray]) -> list[Pair]:
    """Pairs of a session that is opened, used and closed in another thread, and of one of this thread that goes on."""
    here = open_session()
    began = _outputs(here, feed[:1])

    def elsewhere() -> list[np.ndarray]:
        session = open_session()
        outputs = _outputs(session, feed)
        open_session.close(session)
        return outputs

    with ThreadPoolExecutor(1) as pool:
        there = pool.submit(elsewhere).result()
    went_on = [*began, *_outputs(here, feed[1:])]
    return [
        *output_pairs("in a session of another thread, y of call", there, list(alone)),
        *output_pairs("with a session closed in another thread, y of call", went_on, list(alone)),
    ]


def _in_several_threads(
    open_session: OpenSession, feed: Sequence[Arrays], alone: Sequence[np.ndarray]
) -> Iterator[Pair]:
    """Pairs of AT_ONCE sessions that call at once, each in a thread of its own."""
    sessions, barrier = [open_session() for _ in range(AT_ONCE)], Barrier(AT_ONCE)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outputs = list(pool.map(partial(_outputs, feed=feed, barrier=barrier), sessions))
    for got in outputs:
        yield from output_pairs(f"of {AT_ONCE} streams in as many threads, y of call", got, list(alone))


def _bound_at_once(open_session: OpenSession, reference: ReferenceTrajectories) -> list[Pair]:
    """Pairs of y of two rings that begin with different chunks, and that two threads bind at once."""
    rings = [reference.ring[:FEW_CALLS], reference.ring[FEW_CALLS : 2 * FEW_CALLS]]
    alone = [[called(open_session().bind(ring))] for ring in rings]
    sessions, barrier = [open_session() for _ in rings], Barrier(len(rings))

    def bind(session: Session, ring: Sequence[Arrays]) -> Bound:
        barrier.wait()
        return session.bind(ring)

    with ThreadPoolExecutor(len(rings)) as pool:
        bound = list(pool.map(bind, sessions, rings))
    pairs = zip(bound, alone, strict=True)
    return [
        pair for one, y in pairs for pair in output_pairs("of rings bound in two threads, y of call", [called(one)], y)
    ]


def _pass(
    session: Session, bound: Bound, feed: Sequence[Arrays], reference: ReferenceTrajectories, kind: int
) -> Iterator[Named]:
    """The outputs of one pass over the feed, then the state.

    A public pass begins from zeros, and ends with a call of one step. A bound pass begins from `start`.
    """
    if kind == BOUND_PASS and reference.is_stream:
        session.set_state(reference.start)
    else:
        session.reset()
    for chunk in feed:
        yield ("y of a bound call", called(bound)) if kind == BOUND_PASS else ("y", session.step(chunk)["y"])
    if reference.is_stream and kind == PUBLIC_PASS:
        yield "y of a call of one step", session.step({"x": feed[0]["x"][:1]})["y"]
    yield from ((f"state {name}", array) for name, array in session.get_state().items())


def _outputs_alone(open_session: OpenSession, feed: Sequence[Arrays]) -> list[np.ndarray]:
    session = open_session()
    outputs = [y.copy() for y in _outputs(session, feed)]
    open_session.close(session)
    return outputs


def _passes_alone(
    open_session: OpenSession, feed: Sequence[Arrays], reference: ReferenceTrajectories
) -> list[list[Named]]:
    session = open_session()
    bound = session.bind(feed)
    passes = [
        [(what, array.copy()) for what, array in _pass(session, bound, feed, reference, kind)]
        for kind in (PUBLIC_PASS, BOUND_PASS)
    ]
    open_session.close(session)
    return passes


def _repeated(
    begin: Callable[[int], Iterator[Named]], alone: Sequence[Sequence[Named]], budget: Budget, barrier: Barrier
) -> list[Pair]:
    """Make passes of both kinds in turn. Returns the pairs of the first pass that differs from `alone`, or the last."""
    pairs: list[Pair] = []
    passes = cycle((PUBLIC_PASS, BOUND_PASS))
    barrier.wait()
    running: Iterator[Named] = iter(())
    expected: Iterator[Named] = iter(())
    for call in budget:
        if (got := next(running, None)) is None:
            if same_bits(pairs).verdict == "fail":
                break
            kind, pairs = next(passes), []
            running, expected = begin(kind), iter(alone[kind])
            got = next(running)
        what, array = got
        pairs.append((f"while another thread runs, {what} at turn {call}", array, next(expected)[1]))
    return pairs


def _outputs(session: Session, feed: Sequence[Arrays], barrier: Barrier | None = None) -> list[np.ndarray]:
    """y of each call. At the barrier, calls begin together with those of the other threads, until a thread raises."""
    got = []
    for chunk in feed:
        if barrier is not None:
            with suppress(BrokenBarrierError):
                barrier.wait()
        try:
            got.append(session.step(chunk)["y"])
        except Exception:
            if barrier is not None:
                barrier.abort()
            raise
    return got


THREADS = (Check("threads", "Two sessions used by two threads at once give what each gives alone.", _threads),)
