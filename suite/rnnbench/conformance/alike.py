"""The check of similar calls: different numbers with the same ends, the same sum, or the same rounded values.

A program that recognises a call by a part of it, by its sum or by its text returns the result of another call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import aligned, called, called_publicly
from rnnbench.conformance.tolerance import Errors
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult
from rnnbench.rnn import rounded

State = dict[str, np.ndarray]


def _other_middle(array: np.ndarray) -> np.ndarray:
    """One changed number, in the middle."""
    return _other_at(array, array.size // 2)


def _other_first(array: np.ndarray) -> np.ndarray:
    """A changed first number. A hash of every second number, from the second on, is the same."""
    return _other_at(array, 0)


def _other_last(array: np.ndarray) -> np.ndarray:
    return _other_at(array, array.size - 1)


def _other_at(array: np.ndarray, place: int) -> np.ndarray:
    other = array.copy()
    other.flat[place] = 1 - other.flat[place]
    return other


def _backwards(array: np.ndarray) -> np.ndarray:
    """The numbers in reverse order. Their sum and norm are the same."""
    return array.ravel()[::-1].reshape(array.shape).copy()


def _half(array: np.ndarray) -> np.ndarray:
    """The numbers rounded to 16 bits. Compared in 16 bits, or printed with three digits, they equal the originals."""
    return array.astype(np.float16).astype(array.dtype)


def _half_of_one(array: np.ndarray) -> np.ndarray:
    """Only the number that rounding to 16 bits changes most is rounded."""
    rounded_all, other = _half(array), array.copy()
    most = int(np.argmax(np.abs(rounded_all - array)))
    other.flat[most] = rounded_all.flat[most]
    return other


def _positive(array: np.ndarray) -> np.ndarray:
    return np.where(array < 0, -array, array)


def _negative(array: np.ndarray) -> np.ndarray:
    return np.where(array > 0, -array, array)


def _level(array: np.ndarray) -> np.ndarray:
    return np.full_like(array, array.flat[0])


def _rising(array: np.ndarray) -> np.ndarray:
    """Numbers that rise evenly, from dimension to dimension."""
    return np.linspace(-1, 1, array.size, dtype=np.float32).reshape(array.shape).astype(array.dtype)


def _single(array: np.ndarray) -> np.ndarray:
    """Zeros, but for the last number."""
    return np.where(np.arange(array.size).reshape(array.shape) == array.size - 1, array, 0).astype(array.dtype)


EQUAL = "all numbers are the first"
"""The calls whose expected rounding is their own: equal numbers of a fixed range are all rounded up, or all down."""
LIKE: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "one number in the middle is another": _other_middle,
    "the first number is another": _other_first,
    "the last number is another": _other_last,
    "the same numbers come backwards": _backwards,
    "all numbers are rounded to 16 bits": _half,
    "one number is rounded to 16 bits": _half_of_one,
    "no number is negative": _positive,
    "no number is positive": _negative,
    EQUAL: _level,
    "the numbers rise evenly": _rising,
    "only the last number is not zero": _single,
}


def _alike(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Calls from the same state with similar inputs, and equal calls from similar states."""
    if not reference.trial.model.takes_any_number:
        return CheckResult(verdict="not-applicable", detail="inputs of whole numbers have a range")
    if reference.lengths is not None:
        return CheckResult(
            verdict="not-applicable", detail="rows of their own lengths are alike up to their ends alone"
        )
    x, start = reference.ring[0]["x"], reference.start if reference.is_stream else {}
    calls = {"": (x, start)}
    for what, like in LIKE.items():
        if like is _rising and reference.trial.model.is_exact:  # These are no whole numbers, and sums would be rounded.
            continue
        calls[f"whose x is alike ({what})"] = (rounded(like(x).astype(np.float64), reference.trial.dtype), start)
        if start:
            state = {name: _like_state(reference, name, array, like) for name, array in start.items()}
            calls[f"whose state is alike ({what})"] = (x, state)
    return _compared(open_session, reference, calls)


def _like_state(
    reference: ReferenceTrajectories, name: str, array: np.ndarray, like: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """A similar array of a state. Whole numbers stay unchanged, since they have a range."""
    if array.dtype.kind != "f":
        return array
    return rounded(like(array).astype(np.float64), reference.trial.model.state_dtype(name, reference.trial.dtype))


def _compared(
    open_session: OpenSession, reference: ReferenceTrajectories, calls: Mapping[str, tuple[np.ndarray, State]]
) -> CheckResult:
    """Compare each call on both paths, and after it a public call that is the same for all: only what came before it
    differs. In a third session the calls come one right after the other, from one buffer for all of them.
    """
    inputs, states = [x for x, _ in calls.values()], [state for _, state in calls.values()]
    after = reference.ring[1]["x"] if states[0] else inputs[0][:0]
    expected = {
        what: of_call
        for is_equal in (False, True)
        for what, of_call in _expected(
            reference, {what: call for what, call in calls.items() if (EQUAL in what) == is_equal}, after
        )
    }
    steps, errors = len(inputs[0]), Errors()
    session, bound_session, refilled = open_session(), open_session(), open_session()
    bound = bound_session.bind([{"x": x} for x in inputs])
    buffers = {"x": aligned(inputs[0]), **{name: aligned(array) for name, array in states[0].items()}}
    of_state = {name: buffers[name] for name in states[0]}
    for what, (x, state) in calls.items():
        exact, rounding = expected[what]
        for name, array in {"x": x, **state}.items():
            np.copyto(buffers[name], array)
        if state:
            for one in (session, bound_session):
                one.set_state(states[0])  # Without a call in between, a program may compare the two states.
                one.set_state(state)
            refilled.set_state(of_state)
        y = refilled.step({"x": buffers["x"]})["y"]
        errors.add(f"y of a call right after a similar one {what}", y, exact[:steps], rounding)
        errors.add(f"y of a call {what}", called_publicly(session, {"x": x}, reference), exact[:steps], rounding)
        errors.add(f"y of a bound call {what}", called(bound), exact[:steps], rounding)
        if state:
            errors.add(f"y of a call after one {what}", session.step({"x": after})["y"], exact[steps:], rounding)
    return errors.verdict()


def _expected(
    reference: ReferenceTrajectories, calls: Mapping[str, tuple[np.ndarray, State]], after: np.ndarray
) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    """By call: y [steps, batch, width] of it and of `after`, and the largest rounding expected of all of these calls.

    The reference runs them as rows of one batch.
    """
    both = np.concatenate([np.concatenate([x, after]) for x, _ in calls.values()], axis=1)
    states = [state for _, state in calls.values()]
    together = {name: np.concatenate([state[name] for state in states], axis=1) for name in states[0]}
    run = reference.run(both, together or None)
    for what, exact in zip(calls, np.split(run.y, len(calls), axis=1), strict=True):
        yield what, (exact, run.rounding[-1])


ALIKE = (Check("alike", "Similar inputs give different results where the reference does.", _alike, compares=True),)
