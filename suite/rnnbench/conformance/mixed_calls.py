"""The check of calls of every kind in one stream: bound and public, with a rest, not waited for, read twice.

Two sessions follow the same plan, the second one action behind the first. So their calls alternate.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from itertools import islice, product, zip_longest

import numpy as np

from rnnbench.backends import Session
from rnnbench.conformance.budget import Budget, planned_turns
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import FEW_CALLS, called, undisturbed_bound_outputs
from rnnbench.conformance.garbage import only_new_garbage
from rnnbench.conformance.ring_trajectory import RING
from rnnbench.conformance.rounding import Y
from rnnbench.conformance.tolerance import Errors, Pair, same_bits, worst
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult

BOUND, UNREAD, TWICE = "a bound call", "a bound call that is not waited for", "a bound call that is read twice"
AT_ONCE = "a bound call that is read before it is waited for"
PUBLIC, LONG = "a public call", "a public call of two chunks"
REST_FIRST, REST_LAST = (
    "public calls with a rest, the longer one first",
    "public calls with a rest, the longer one last",
)
STATE, COLLECTION, BINDING = "a look at the state", "a collection of garbage", "another ring that is bound"
OPENING = "another session that is opened, called on both paths, reset and closed"
CHUNKS = {
    **dict.fromkeys((BOUND, UNREAD, TWICE, AT_ONCE, PUBLIC), 1),
    **dict.fromkeys((LONG, REST_FIRST, REST_LAST), 2),
    **dict.fromkeys((STATE, COLLECTION, BINDING, OPENING), 0),
}
"""How many chunks each action feeds."""
RING_ACTIONS = (BOUND, UNREAD, TWICE, AT_ONCE)
PLAN = (
    *(OPENING, BOUND, REST_LAST, BOUND, LONG, TWICE, BOUND, COLLECTION, UNREAD, PUBLIC, UNREAD, OPENING, STATE),
    *(UNREAD, REST_FIRST, UNREAD, BINDING, AT_ONCE, STATE),
)
"""The actions of a session. They feed the chunks of the first two passes over the ring."""
QUEUES = tuple(places + 3 for places in (8, 16, 32, 64, 128))
"""Calls that are not waited for, in one queue after the other: a few more than it may have places, so that the network
has not forgotten a call that did not fit."""
QUEUED, QUEUED_ENOUGH, QUEUED_S = sum(QUEUES), sum(QUEUES[:-1]), 0.02
"""All of these calls: at most, with `limits.enough`, and the seconds in which as many are made one by one."""
LOOKS, MOST_LOOKS = 9, 67
"""Looks at one output, one after the other, and looks at one state: a few more than 64."""
BEFORE_RESET = 3
"""Bound calls before a reset or a state that is set: less than a pass over the ring."""


def _mixed(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    errors = Errors()
    with only_new_garbage():
        first, second = (_Follower(open_session, reference, errors) for _ in range(2))
        for ahead, behind in zip_longest(PLAN, (None, *PLAN)):
            first.follow(ahead)
            second.follow(behind)
    _reset_within_ring(open_session, reference, errors)
    verdict = errors.verdict()
    if verdict.verdict == "fail":
        return verdict
    return worst(verdict, _at_once(open_session, reference), same_bits(_read_later(open_session, reference)))


def _read_later(open_session: OpenSession, reference: ReferenceTrajectories) -> Iterator[Pair]:
    """Read the output of a session's last call again after each action that is no call of this session, and read one
    after a sync of another ring alone.
    """
    session, beside, ring = open_session(), open_session(), reference.ring
    bound = session.bind(ring)
    bound()
    y = bound.output()["y"].copy()
    states = {name: array.copy() for name, array in session.get_state().items()}
    for look in range(LOOKS):
        bound.sync()
        yield f"of a bound call that was waited for {look + 1} times, y", bound.output()["y"], y
    yield from ((f"of a bound call, y at look {look}", bound.output()["y"], y) for look in range(LOOKS))
    for look in range(MOST_LOOKS):
        yield from ((f"state {name} at look {look}", a, states[name]) for name, a in session.get_state().items())
    turns: dict[str, Callable[[], object]] = {
        "a look at the state": session.get_state,
        "a reset": session.reset,
        "another ring that is bound": lambda: session.bind(ring[::-1]),
        "another session's call": lambda: beside.step(ring[1]),
        "another session's bound call": lambda: called(beside.bind(ring[::-1])),
        "another session's end": lambda: open_session.close(beside),
    }
    if reference.is_stream:
        turns["a state that is set"] = lambda: session.set_state(reference.start)
    for what, turn in turns.items():
        turn()
        yield f"of a bound call whose output is read after {what}, y", bound.output()["y"], y
    session = open_session()
    bound, idle = session.bind(ring), session.bind(ring[::-1])
    expected = undisturbed_bound_outputs(open_session, reference)[:FEW_CALLS]
    for _ in expected:
        bound()
    idle.sync()
    yield "of a bound call after a sync of a ring without calls, y", bound.output()["y"], expected[-1]


def _at_once(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Many calls that are not waited for must give the same bits as calls that are waited for one by one."""
    one_by_one, at_once = open_session(), open_session()
    bound, other, pairs = one_by_one.bind(reference.ring), at_once.bind(reference.ring), list[Pair]()
    turns = iter(Budget("", planned_turns(reference.trial.limits, QUEUED, QUEUED_ENOUGH), 0, QUEUED_S))
    for queue in QUEUES:
        calls = 0
        for _ in islice(turns, queue):
            bound()
            bound.sync()
            calls += 1
        if not calls:
            break
        for _ in range(calls):
            other()
        other.sync()
        what = f"after {calls} calls that nobody waited for"
        states, expected = at_once.get_state(), one_by_one.get_state()
        pairs.append((f"{what}, y", other.output()["y"], bound.output()["y"]))
        pairs += [(f"{what}, state {name}", states[name], expected[name]) for name in expected]
    return same_bits([*pairs, *_after_bound_calls(open_session, at_once, one_by_one, reference)])


def _after_bound_calls(
    open_session: OpenSession, first: Session, second: Session, reference: ReferenceTrajectories
) -> Iterator[Pair]:
    """What comes after many bound calls of two sessions that have the same state, without a public one between."""
    chunk, fresh, zeros = reference.ring[0], open_session(), open_session()
    if reference.is_stream:
        fresh.set_state(first.get_state())
    yield "of a public call after many bound ones, y", first.step(chunk)["y"], fresh.step(chunk)["y"]
    second.reset()
    yield "after many bound calls and a reset, y", second.step(chunk)["y"], zeros.step(chunk)["y"]


class _Follower:
    """A session that follows PLAN from `start`, and is compared with the reference's ring."""

    def __init__(self, open_session: OpenSession, reference: ReferenceTrajectories, errors: Errors) -> None:
        self._open_session = open_session
        self._session = session = open_session()
        self._reference = reference
        self._errors = errors
        self._fed = 0
        """Chunks that were fed so far."""
        at = np.cumsum([0, *(CHUNKS[action] for action in PLAN)])
        numbers = [number for number, action in zip(at, PLAN, strict=False) if action in RING_ACTIONS]
        self._bound = session.bind([reference.ring[number % RING] for number in numbers])
        if reference.is_stream:
            session.set_state(reference.start)

    def follow(self, action: str | None) -> None:
        """Carry out an action, and compare its result. None does nothing."""
        if action is None:
            return
        inputs = [self._reference.ring[(self._fed + number) % RING] for number in range(CHUNKS[action])]
        self._fed += len(inputs)
        if action == STATE:
            self._compare_state()
        elif action == COLLECTION:
            gc.collect()
        elif action == BINDING:
            self._session.bind(self._reference.ring)
        elif action == OPENING:
            another = self._open_session()
            another.step(self._reference.ring[0])
            called(another.bind(self._reference.ring))
            another.reset()
            self._open_session.close(another)
        elif action in RING_ACTIONS:
            self._call_bound(action)
        elif action == PUBLIC or not self._reference.is_stream:
            self._compare(action, np.concatenate([self._session.step(chunk)["y"] for chunk in inputs]))
        else:
            chunk = self._reference.trial.strategy.chunk
            cut = {LONG: 0, REST_FIRST: chunk + 1, REST_LAST: chunk - 1}[action]
            parts = np.split(np.concatenate([chunk["x"] for chunk in inputs]), [cut])
            self._compare(action, np.concatenate([self._session.step({"x": x})["y"] for x in parts if len(x)]))

    def _call_bound(self, action: str) -> None:
        self._bound()
        if action == UNREAD:
            return
        for _ in range(2 if action == TWICE else 1):
            if action != AT_ONCE:
                self._bound.sync()
            self._compare(action, self._bound.output()["y"])

    def _compare(self, action: str, y: np.ndarray) -> None:
        """Compare y with the reference's of the last chunks."""
        count = max(1, len(y) // self._reference.trial.strategy.chunk)
        exact = self._reference.ring_trajectory.y
        expected = np.concatenate([exact[number % len(exact)] for number in range(self._fed - count, self._fed)])
        self._errors.add(
            f"y of {action} after {self._fed - count} chunks of every kind", y, expected, self._rounding(Y)
        )

    def _compare_state(self) -> None:
        for name, array in self._session.get_state().items():
            exact = self._reference.ring_trajectory.states[name][self._fed - 1]
            self._errors.add(f"state {name} after {self._fed} chunks of every kind", array, exact, self._rounding(name))

    def _rounding(self, array: str) -> np.ndarray:
        calls = self._fed if self._reference.is_stream else 1
        return self._reference.rounding_at(calls * self._reference.trial.strategy.chunk - 1, array)


def _reset_within_ring(open_session: OpenSession, reference: ReferenceTrajectories, errors: Errors) -> None:
    """Reset in the middle of a ring, and set a state there. Neither changes which chunk comes next.

    This also holds if the calls before were not waited for.
    """
    rounding = reference.rounding_at(reference.trial.strategy.chunk - 1)
    expected: dict[bool, np.ndarray] = {}
    for waited, sets in product((True, False), (False, True)):
        if sets and not reference.is_stream:
            continue
        session = open_session()
        if sets not in expected:
            fresh = open_session()
            _start_again(fresh, reference, from_start=sets)
            expected[sets] = fresh.step(reference.ring[BEFORE_RESET])["y"].astype(np.float64)
            open_session.close(fresh)
        if reference.is_stream:  # A reset does not go back to the state in which the ring was bound.
            session.set_state(reference.start)
        bound = session.bind(reference.ring)
        for _ in range(BEFORE_RESET):
            bound()
        if waited:
            bound.sync()
        _start_again(session, reference, from_start=sets)
        y = called(bound)
        what = f"y of bound call {BEFORE_RESET}, after {'a state that was set' if sets else 'a reset'}"
        when = "" if waited else " that did not wait for the calls before"
        errors.add(f"{what}{when}", y, expected[sets], rounding)
        open_session.close(session)


def _start_again(session: Session, reference: ReferenceTrajectories, *, from_start: bool) -> None:
    if from_start:
        session.set_state(reference.start)
    else:
        session.reset()


MIXED_CALLS = (
    Check("mixed", "Calls of every kind, reads and resets in any order make one stream.", _mixed, compares=True),
)
