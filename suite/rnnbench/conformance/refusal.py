"""The check of wrong calls: they are refused, and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, cast

import numpy as np

from rnnbench.backends import Arrays, Session
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import called, first_bound_outputs, first_outputs, output_pairs
from rnnbench.conformance.tolerance import Pair, same_bits
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult


def _refusal(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    session, fresh = open_session(), open_session()
    bound, fresh_bound = session.bind(reference.ring), fresh.bind(reference.ring)
    first_outputs(session, reference)
    before, first = session.get_state(), reference.ring[0]
    for what, call in _refused(session, reference):
        try:
            call()
        except Exception:  # noqa: BLE001 any exception is a refusal
            continue
        return CheckResult(verdict="fail", detail=f"{what} was accepted")
    after = session.get_state()
    unchanged = [(f"after refused calls, state {name}", after[name], before[name]) for name in before]
    if reference.is_stream:
        fresh.set_state(before)
    y, expected = session.step(first)["y"], fresh.step(first)["y"]
    bound_y, expected_bound = first_bound_outputs(bound), first_bound_outputs(fresh_bound)
    for bound_call in (bound, fresh_bound):
        bound_call()
    wrong = {**first, "x": first["x"][:, 0]}
    for refused in (session.step, lambda chunk: session.bind([first, chunk]), session.set_state):
        with suppress(Exception):
            refused(wrong)
    for bound_call in (bound, fresh_bound):
        bound_call.sync()
    waited, expected_waited = bound.output()["y"], fresh_bound.output()["y"]
    following, expected_following = called(bound), called(fresh_bound)
    after_others = _after_refusals(open_session, session, fresh, reference)
    return same_bits(
        [
            *unchanged,
            ("after refused calls, y", y, expected),
            *output_pairs("after refused calls, y of bound call", bound_y, expected_bound),
            ("of a bound call that waited while a call was refused, y", waited, expected_waited),
            ("of the bound call after it, y", following, expected_following),
            *after_others,
        ]
    )


def _after_refusals(
    open_session: OpenSession, session: Session, fresh: Session, reference: ReferenceTrajectories
) -> list[Pair]:
    """Pairs of y after refused calls and states: after a reset, with a rest, after a state that is set, and in another
    session. `fresh` makes the same calls without the refused ones."""
    first, pairs = reference.ring[0], list[Pair]()
    longer = first if not reference.is_stream else {"x": np.concatenate([first["x"], reference.ring[1]["x"][:1]])}
    turns: list[tuple[str, Callable[[Session], object], Arrays]] = [
        ("a reset after a refused call", lambda one: one.reset(), first),
        ("a reset and a refused call", lambda one: one.get_state(), longer),
    ]
    if reference.is_stream:
        turns.append(("a state that is set after a refused one", lambda one: one.set_state(reference.start), first))
    for what, turn, inputs in turns:
        with suppress(Exception):
            session.step({**first, "x": first["x"][:, 0]})
        with suppress(Exception):
            session.set_state({name: array[0] for name, array in reference.start.items()})
        turn(session)
        turn(fresh)
        pairs.append((f"after {what}, y", session.step(inputs)["y"], fresh.step(inputs)["y"]))
    opened, reset = open_session(), fresh
    reset.reset()
    return [*pairs, ("of a session opened after refused calls, y", opened.step(first)["y"], reset.step(first)["y"])]


def _refused(session: Session, reference: ReferenceTrajectories) -> Iterator[tuple[str, Callable[[], object]]]:
    """Calls that every session must refuse, each with its description."""
    x = reference.ring[0]["x"]
    other = _other_type(x)
    longer = np.concatenate([x, x[:1]])
    other_inputs = {name: array for name, array in reference.ring[0].items() if name != "x"}
    inputs: dict[str, dict[str, Any]] = {
        "an x that is a list": {**other_inputs, "x": x.tolist()},
        "an x of zero steps": {**other_inputs, "x": x[:0]},
        "an x with another batch": {**other_inputs, "x": np.repeat(x, 2, axis=1)},
        "an x with another input size": {**other_inputs, "x": np.repeat(x, 2, axis=2)},
        f"an x of {other}": {**other_inputs, "x": x.astype(other)},
        "an x in the other byte order": {**other_inputs, "x": x.astype(x.dtype.newbyteorder())},
        **{f"an x {what}": {**other_inputs, "x": wrong} for what, wrong in _reshaped(x).items()},
        **{f"an x of {dtype}": {**other_inputs, "x": x.astype(dtype)} for dtype in _cast(x)},
        "an x that is a tuple": {**other_inputs, "x": tuple(x.tolist())},
        "an x that is a number": {**other_inputs, "x": 0.0},
        "an x that is None": {**other_inputs, "x": None},
        "an x by another name": {**other_inputs, "input": x},
        "an x with an array of another name": {**other_inputs, "x": x, "z": x},
        **{f"an x with the state {name}": {**other_inputs, "x": x, name: a} for name, a in reference.start.items()},
        "no x": {},
    }
    if not other_inputs:
        inputs["an x with lengths, which it does not take"] = {"x": x, "lengths": np.full(x.shape[1], len(x), np.int32)}
    if reference.trial.batch > 1:
        inputs["an x with one row for the whole batch"] = {**other_inputs, "x": x[:, :1]}
    if not reference.is_stream:
        inputs["an x one step too long"] = {**other_inputs, "x": longer}
        if len(x) > 1:
            inputs["an x one step too short"] = {**other_inputs, "x": x[:-1]}
    for lengths in other_inputs.values():
        inputs |= {what: {"x": x, "lengths": wrong} for what, wrong in _wrong_lengths(lengths, len(x)).items()}
        inputs["no lengths"] = {"x": x}
    for what, given in inputs.items():
        yield what, partial(session.step, given)
    yield "an x without a name", partial(session.step, cast("Arrays", x))
    if reference.is_stream:
        for what, state in _refused_states(reference.start, x):
            yield what, partial(session.set_state, state)
    yield "an empty ring", partial(session.bind, [])
    yield "a chunk in the place of a ring", partial(session.bind, cast("list[Arrays]", reference.ring[0]))
    good, chunks = {**other_inputs, "x": x}, _wrong_chunks(x, other, other_inputs)
    for what, chunk in chunks.items():
        yield f"a ring of {what}", partial(session.bind, [chunk])
    for what, chunk in chunks.items():
        yield f"a ring whose third place has {what}", partial(session.bind, [good, good, chunk, good])


def _refused_states(start: Arrays, x: np.ndarray) -> Iterator[tuple[str, Any]]:
    """States that every session must refuse, each with its description."""
    for name, array in start.items():
        for fault, wrong in {**_wrong_states(array, _other_type(array)), **_broadcasting(array)}.items():
            yield f"a state {name} {fault}", {**start, name: wrong}
        yield f"a state without {name}", {other: kept for other, kept in start.items() if other != name}
    yield "a state with one array too many", {**start, "z": x}
    yield "a state of no array", {}
    yield "a state that is None", None
    yield "a state without names", tuple(start.values())


def _wrong_chunks(x: np.ndarray, other: str, other_inputs: Arrays) -> dict[str, dict[str, Any]]:
    """Chunks that every session must refuse in a ring, by description."""
    wrong = {
        "a chunk one step too long": np.concatenate([x, x[:1]]),
        f"a chunk of {other}": x.astype(other),
        **{f"a chunk {what}": array for what, array in _reshaped(x).items()},
        **{f"a chunk of {dtype}": x.astype(dtype) for dtype in _cast(x)},
    }
    if len(x) > 1:
        wrong["a chunk one step too short"] = x[:-1]
    if x.shape[1] > 1:
        wrong["a chunk with one row for the whole batch"] = x[:, :1]
    lengths = {
        f"a chunk with {what}": {"x": x, "lengths": array}
        for given in other_inputs.values()
        for what, array in _wrong_lengths(given, len(x)).items()
    }
    return {
        **{what: {**other_inputs, "x": array} for what, array in wrong.items()},
        **lengths,
        "a chunk by another name": {**other_inputs, "input": x},
        "a chunk and an array of another name": {**other_inputs, "x": x, "z": x},
        "no x": dict(other_inputs),
        **({"a chunk without lengths": {"x": x}} if other_inputs else {}),
    }


def _reshaped(x: np.ndarray) -> dict[str, np.ndarray]:
    """x [steps, batch, input] with wrong dimensions, by description: other ranks, exchanged or wrong sizes."""
    steps, batch, width = x.shape
    wrong = {
        "of rank 2": x[:, 0],
        "of rank 4": x[..., None],
        "of rank 4 whose first dimension is one": x[None],
        "of one step without the steps": x[0],
        "of one row of one step": x[0, 0],
        "that is flat": x.ravel(),
        "with no rows": x[:, :0],
        "with no inputs": x[..., :0],
        "with one input for all": x[..., :1],
        "with one row more": np.concatenate([x, x[:, :1]], axis=1),
        "with one input more": np.concatenate([x, x[..., :1]], axis=2),
        "with batch and input exchanged": x.swapaxes(1, 2),
    }
    if batch > 2:
        wrong["with one row less"] = x[:, :-1]
    if width > 1:
        wrong["with one input less"] = x[..., :-1]
    if steps != batch:
        wrong["with steps and batch exchanged"] = x.swapaxes(0, 1)
    return {what: variant for what, variant in wrong.items() if variant.shape != x.shape}


def _cast(array: np.ndarray) -> list[str]:
    """Dtypes that a program might cast instead of refusing them: all that hold numbers, and two that hold anything."""
    return [dtype.name for dtype in map(np.dtype, "?bBhHiIlLefdgFDOU") if array.dtype != dtype]


def _other_type(array: np.ndarray) -> str:
    return "float64" if array.dtype != np.float64 else "float32"


def _wrong_lengths(lengths: np.ndarray, steps: int) -> dict[str, Any]:
    first = np.arange(len(lengths)) == 0
    return {
        "a length of zero": np.where(first, 0, lengths).astype(lengths.dtype),
        "a length below zero": np.where(first, -1, lengths).astype(lengths.dtype),
        "a length beyond the call": np.where(first, steps + 1, lengths).astype(lengths.dtype),
        **{f"lengths of {dtype}": lengths.astype(dtype) for dtype in _cast(lengths)},
        "lengths in the other byte order": lengths.astype(lengths.dtype.newbyteorder()),
        "lengths of another batch": np.repeat(lengths, 2),
        "lengths in a column": lengths[:, None],
        "lengths that are a list": lengths.tolist(),
        "lengths that are None": None,
        **({"one length for all rows": lengths[:1]} if len(lengths) > 1 else {}),
    }


def _wrong_states(array: np.ndarray, dtype: str) -> dict[str, np.ndarray]:
    return {
        "with another batch": np.repeat(array, 2, axis=1),
        "of another size": np.repeat(array, 2, axis=2),
        "with another number of layers": np.repeat(array, 2, axis=0),
        f"of {dtype}": array.astype(dtype),
        **{f"of {other}": array.astype(other) for other in _cast(array)},
        **({"in the other byte order": array.astype(array.dtype.newbyteorder())} if array.itemsize > 1 else {}),
        "with one row more": np.concatenate([array, array[:, :1]], axis=1),
        "with one unit more": np.concatenate([array, array[..., :1]], axis=2),
        **({"with one unit less": array[..., :-1]} if array.shape[2] > 2 else {}),
    }


def _broadcasting(array: np.ndarray) -> dict[str, Any]:
    """Values that NumPy would broadcast to the state or convert to an array, by description."""
    wrong: dict[str, Any] = {
        "with one layer for all": array[:1],
        "with one row for the whole batch": array[:, :1],
        "with one value for all units": array[..., :1],
        "without its first dimension": array[0],
        "of shape [1]": np.zeros(1, array.dtype),
        "of no dimension": np.zeros((), array.dtype),
        "with one more dimension": array[None],
        "that is flat": array.ravel(),
        "with layers and batch exchanged": array.swapaxes(0, 1),
        "that is a list": array.tolist(),
        "that is a number": 0.0,
        "that is None": None,
    }
    return {
        what: variant
        for what, variant in wrong.items()
        if np.shape(variant) != array.shape or isinstance(variant, list)
    }


REFUSAL = (Check("refusal", "Wrong arrays are refused, and a refused call changes nothing.", _refusal),)
