"""The check of streams that go back: to a state that the session returned, and by resets without calls in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from rnnbench.backends import Arrays, Session
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import called, first_outputs, output_pairs, undisturbed_outputs
from rnnbench.conformance.tolerance import Pair, same_bits
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult

Turn = Callable[[Session], None]
SHORT = 2
"""The most steps of a call that is shorter than a chunk. Its second step continues from the first one's state."""
LONGEST_REST = 4
"""The most steps beyond a chunk in a call before a reset."""


def _rewind(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    return same_bits(
        [
            *_taken_back(open_session, reference),
            *_in_turn(open_session, reference),
            *_after_rests(open_session, reference),
            *_one_array_changed(open_session, reference),
        ]
    )


def _taken_back(open_session: OpenSession, reference: ReferenceTrajectories) -> Iterator[Pair]:
    """After calls on either path, give a session a state that it returned. The same calls must give the same y."""
    session, bound_session = open_session(), open_session()
    bound = bound_session.bind(reference.ring)
    session.set_state(reference.start)
    session.step(reference.ring[0])
    state = session.get_state()
    ahead = first_outputs(session, reference)
    for time in ("first", "second"):
        session.set_state(state)
        what = f"taken back to its own state for the {time} time, y of call"
        yield from output_pairs(what, first_outputs(session, reference), ahead)
    bound_session.set_state(reference.start)
    states, outputs = list[Arrays](), list[np.ndarray]()
    for _ in reference.ring:
        states.append(bound_session.get_state())
        outputs.append(called(bound))
    for call, (state, y) in enumerate(zip(states, outputs, strict=True)):
        bound_session.set_state(state)
        yield f"taken back to its own state before each call, y of bound call {call}", called(bound), y


def _in_turn(open_session: OpenSession, reference: ReferenceTrajectories) -> Iterator[Pair]:
    """Reset a session and set its state, without a call in between. The last of these counts.

    The calls before and after are of a whole chunk, and shorter ones if possible, since another program may run those.
    """
    session, chunk = open_session(), reference.trial.strategy.chunk
    whole, short = reference.ring[0], {"x": reference.ring[1]["x"][: min(chunk - 1, SHORT)]}
    session.step(whole)
    after: dict[tuple[Turn, int], tuple[Arrays, np.ndarray, np.ndarray]] = {}
    for what, before, last in _turns(reference):
        for call in (short, whole) if chunk > 1 else (whole,):
            steps = len(call["x"])
            if (last, steps) not in after:
                once = open_session()
                last(once)
                after[last, steps] = once.get_state(), once.step(call)["y"], once.step(whole)["y"]
            states, of_call, of_next = after[last, steps]
            session.step(call)
            for turn in (*before, last):
                turn(session)
            yield from ((f"{what}, state {name}", array, states[name]) for name, array in session.get_state().items())
            yield f"{what}, y of a call of {steps} steps", session.step(call)["y"], of_call
            yield f"{what}, y of the call after it", session.step(whole)["y"], of_next


def _after_rests(open_session: OpenSession, reference: ReferenceTrajectories) -> Iterator[Pair]:
    """A reset, and a state that is set, after calls of a chunk and each number of steps beyond it."""
    session, chunk = open_session(), reference.trial.strategy.chunk
    x = np.concatenate([inputs["x"] for inputs in reference.ring[:2]])
    for turn, what, from_start in ((_reset, "a reset", False), (_set(reference.start), "a state that was set", True)):
        right = undisturbed_outputs(open_session, reference, from_start=from_start)[0]
        for rest in range(1, min(chunk, LONGEST_REST + 1)):
            session.step({"x": x[: chunk + rest]})
            turn(session)
            when = f"after a call of {chunk + rest} steps and {what}"
            yield f"{when}, y of call 0", session.step(reference.ring[0])["y"], right


def _one_array_changed(open_session: OpenSession, reference: ReferenceTrajectories) -> Iterator[Pair]:
    """Give a session the state that it returned after a call, with one array changed. A fresh one must go on alike."""
    session, fresh = open_session(), open_session()
    x, chunk = reference.ring[0]["x"], reference.trial.strategy.chunk
    for steps in sorted({min(max(chunk - 1, 1), SHORT), chunk}):
        for name, array in reference.start.items():
            session.step({"x": x[:steps]})
            state = {**session.get_state(), name: array}
            outputs = []
            for one in (session, fresh):
                one.set_state(state)
                outputs.append(one.step({"x": x[:steps]})["y"])
            yield f"from its own state after a call of {steps} steps, but for {name}, y", outputs[0], outputs[1]


def _turns(reference: ReferenceTrajectories) -> Iterator[tuple[str, tuple[Turn, ...], Turn]]:
    """Resets and states without a call in between: the description, the turns before the last one, and the last one."""
    start, zeros = _set(reference.start), _set(reference.zeros)
    yield "after a reset", (), _reset
    yield "after two resets", (_reset,), _reset
    yield "after a state was set and a reset", (start,), _reset
    yield "after a reset and a state that was set", (_reset,), start
    yield "after a state that was set and zeros", (start,), zeros
    near = _set({name: _next(array) for name, array in reference.start.items()})
    yield "after two states that were set and differ in a last bit", (start,), near
    if len(reference.start) > 1:
        for name in reference.start:
            part = _set({**reference.start, name: reference.zeros[name]})
            yield f"after two states that were set and differ in {name} alone", (start,), part


def _next(array: np.ndarray) -> np.ndarray:
    """The array with another last bit of its last number; whole numbers stay unchanged, since they have a range."""
    other = array.copy()
    if array.dtype.kind == "f":
        other.flat[-1] = np.nextafter(other.flat[-1], other.dtype.type(1))
    return other


def _reset(session: Session) -> None:
    session.reset()


def _set(state: Arrays) -> Turn:
    def turn(session: Session) -> None:
        session.set_state(state)

    return turn


REWINDING = (
    Check(
        "rewind",
        "A session goes back to a state that it returned. Of resets and states that are set, the last one counts.",
        _rewind,
        streams_only=True,
    ),
)
