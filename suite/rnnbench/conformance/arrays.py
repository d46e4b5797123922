"""Checks of the arrays that go in and come out: who owns them, and their layout in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from threading import Thread

import numpy as np

from rnnbench.backends import Arrays
from rnnbench.conformance.budget import Budget, planned_turns
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import (
    FEW_CALLS,
    aligned,
    called,
    first_bound_outputs,
    first_outputs,
    output_pairs,
    overwrite,
    undisturbed_bound_outputs,
    undisturbed_outputs,
)
from rnnbench.conformance.layouts import LAYOUTS, LayOut, named_backwards, of_each, overlapping
from rnnbench.conformance.memory_used_again import with_memory_used_again
from rnnbench.conformance.ring_trajectory import RING
from rnnbench.conformance.thread_switches import switching_every
from rnnbench.conformance.tolerance import Pair, same_bits
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult

WATCHED_CALLS, WATCHED_ENOUGH, WATCHED_LEAST, WATCHED_S = 200, 24, 9, 0.015
"""Pairs of public and bound calls during which another thread reads the arrays: at most, with `limits.enough`, at
least, and the seconds of the check."""
SWITCH_S = 1e-5
"""Python's switch interval meanwhile, in seconds: it is short, so that the other thread also runs within calls that
hold the interpreter."""


def _untouched(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    session = open_session()
    inputs = [{**chunk, "x": chunk["x"].copy()} for chunk in reference.ring]
    inputs_before = [dict(chunk) for chunk in inputs]
    results = [session.step(chunk) for chunk in inputs[:FEW_CALLS]]
    outputs = [result["y"] for result in results]
    states, given = session.get_state(), {name: array.copy() for name, array in reference.start.items()}
    given_before, outputs_before = dict(given), [y.copy() for y in outputs]
    states_before = {name: array.copy() for name, array in states.items()}
    first_outputs(session, reference)
    if reference.is_stream:
        session.step({"x": inputs[0]["x"][:1]})
        session.set_state(given)
    bound = session.bind(inputs)
    for _ in range(len(inputs) + 1):
        bound()
    bound.sync()
    result = bound.output()
    output = result["y"]
    output_before = output.copy()
    bound()
    bound.sync()
    bound.output()
    if changed := _other_objects({"inputs": (inputs, inputs_before), "a given state": ([given], [given_before])}):
        return CheckResult(verdict="fail", detail=changed)
    model, weights = reference.trial.model, reference.weights
    drawn_again = ReferenceTrajectories(reference.trial, reference.directory).weights
    return same_bits(
        [
            *((f"input x of chunk {i}", chunk["x"], reference.ring[i]["x"]) for i, chunk in enumerate(inputs)),
            *output_pairs("after later calls, earlier y of call", outputs, outputs_before),
            *output_pairs("after later calls, in what call returned, y of", [r["y"] for r in results], outputs_before),
            ("after a later bound call, an earlier output", output, output_before),
            ("after a later bound call, y in what an earlier output returned", result["y"], output_before),
            *((f"after later calls, earlier state {name}", states[name], states_before[name]) for name in states),
            *((f"after later calls, the given state {name}", given[name], reference.start[name]) for name in given),
            *(
                (f"after all calls, weight {name}", used, drawn)
                for (name, used), (_, drawn) in zip(weights.named(model), drawn_again.named(model), strict=True)
            ),
        ]
    )


def _other_objects(given: Mapping[str, tuple[Sequence[Arrays], Sequence[Arrays]]]) -> str:
    """A sentence about a list or dict that the program has changed; empty if it changed none."""
    for what, (dicts, before) in given.items():
        if len(dicts) != len(before):
            return f"the list of {what} has {len(dicts)} entries, and had {len(before)}"
        for now, old in zip(dicts, before, strict=True):
            if now.keys() != old.keys() or any(now[name] is not array for name, array in old.items()):
                return f"the dict of {what} was changed: it has {sorted(now)}, and had {sorted(old)}, or other arrays"
    return ""


def _owned(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    session = open_session()
    state = {name: array.copy() for name, array in reference.start.items()}
    if reference.is_stream:
        session.set_state(state)
    overwrite(state)
    disturbed = []
    for chunk in reference.ring[:FEW_CALLS]:
        x = chunk["x"].copy()
        y = session.step({**chunk, "x": x})["y"]
        disturbed.append(y.copy())
        for arrays in ({"x": x}, {"y": y}, session.get_state()):
            overwrite(arrays)
    undisturbed = undisturbed_outputs(open_session, reference, from_start=True)
    begun, zeros = open_session(), {name: array.copy() for name, array in reference.zeros.items()}
    if reference.is_stream:
        begun.set_state(zeros)
    overwrite(zeros)
    from_zeros = begun.step(reference.ring[0])["y"]
    return same_bits(
        [
            (
                "from zeros that were overwritten once they were set, y",
                from_zeros,
                undisturbed_outputs(open_session, reference)[0],
            ),
            *output_pairs("with all arrays overwritten between the calls, y of call", disturbed, undisturbed),
            *_of_an_overwritten_ring(open_session, reference),
            *_read_again(open_session, reference),
            *with_memory_used_again(open_session, reference),
        ]
    )


def _of_an_overwritten_ring(open_session: OpenSession, reference: ReferenceTrajectories) -> list[Pair]:
    """Bound calls of each chunk of a ring that the caller overwrites after it was bound. Its arrays are aligned to 64
    bytes, where a runtime may use them without a copy."""
    ring = [{name: aligned(array) for name, array in chunk.items()} for chunk in reference.ring]
    bound, alone = open_session().bind(ring), open_session().bind(reference.ring)
    for chunk in ring:
        overwrite(chunk)
    what = "of a ring that was overwritten once it was bound, y of call"
    return output_pairs(what, [called(bound) for _ in ring], [called(alone) for _ in ring])


def _read_again(open_session: OpenSession, reference: ReferenceTrajectories) -> Iterator[Pair]:
    """States and an output that are read, overwritten and read again must be the same, and calls must go on."""
    session, ring = open_session(), reference.ring
    from_zeros, from_start = (undisturbed_outputs(open_session, reference, from_start=start) for start in (False, True))
    turns: list[tuple[str, Callable[[], object], np.ndarray]] = [
        ("of a new session", lambda: None, from_zeros[0]),
        ("after a reset", session.reset, from_zeros[0]),
    ]
    if reference.is_stream:
        turns.append(("after a state that was set", lambda: session.set_state(reference.start), from_start[0]))
    for when, turn, expected in turns:
        turn()
        yield from _twice(f"{when}, state", session.get_state)
        yield f"{when} whose state was read and overwritten, y", session.step(ring[0])["y"], expected
        yield from _twice(f"{when} and a call, state", session.get_state)
    bound = session.bind(ring)
    bound()
    bound.sync()
    yield from _twice("of a bound call,", bound.output)


def _twice(what: str, read: Callable[[], Arrays]) -> Iterator[Pair]:
    """Read arrays, overwrite them, and read them again. Yields the second arrays beside the first."""
    first = read()
    before = {name: array.copy() for name, array in first.items()}
    overwrite(first)
    again = read()
    yield from ((f"{what} {name} read again", again[name].copy(), array) for name, array in before.items())
    overwrite(again)


def _layout(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    copied = of_each(np.copy)
    contiguous = undisturbed_outputs(open_session, reference, from_start=True)
    contiguous += undisturbed_bound_outputs(open_session, reference, from_start=True)
    laid_out_pairs = []
    for what, lay_out in LAYOUTS.items():
        if lay_out is named_backwards and len(reference.start) < 2:
            continue
        got = _from_start(open_session, reference, reference.start, lay_out)
        laid_out_pairs += output_pairs(f"from an x and a state that are {what}, y of call", got, contiguous)
    if shared := _one_array_for_all(reference.start):
        got, expected = (_from_start(open_session, reference, shared, lay_out) for lay_out in (dict, copied))
        laid_out_pairs += output_pairs("from a state whose arrays are one and the same, y of call", got, expected)
    return same_bits([*laid_out_pairs, *_of_shared_memory(open_session, reference)])


def _of_shared_memory(open_session: OpenSession, reference: ReferenceTrajectories) -> list[Pair]:
    """Pairs of y from arrays whose numbers share memory, and from copies of them. Other chunks of the ring, and other
    arrays of the state, are as they were, so layouts differ within one ring and one state."""
    ring = [{**chunk, "x": overlapping(chunk["x"], index)} for index, chunk in enumerate(reference.ring)]
    floats = (name for name, array in reference.start.items() if array.dtype.kind == "f")
    start = {**reference.start, **{name: overlapping(reference.start[name], 1) for name in islice(floats, 1)}}
    got, expected = (
        _from_start(open_session, reference, start, lay_out, ring) for lay_out in (dict, of_each(np.ascontiguousarray))
    )
    return output_pairs("from numbers that share memory, y of call", got, expected)


def _from_start(
    open_session: OpenSession,
    reference: ReferenceTrajectories,
    start: Arrays,
    lay_out: LayOut,
    ring: Sequence[Arrays] | None = None,
) -> list[np.ndarray]:
    """y of the first public and then bound calls, with x, the lengths and the state laid out by `lay_out`.

    The calls are those of `ring` (None: of the reference's).
    """
    session, bound_session = open_session(), open_session()
    ring = [_laid_out(chunk, lay_out) for chunk in ring or reference.ring]
    bound = bound_session.bind(ring)
    if reference.is_stream:
        session.set_state(lay_out(start))
        bound_session.set_state(lay_out(start))
    before = [dict(chunk) for chunk in ring]
    outputs = [
        *(session.step(chunk)["y"].copy() for chunk in ring[:FEW_CALLS]),
        *map(np.copy, first_bound_outputs(bound)),
    ]
    if changed := _other_objects({"inputs": (ring, before)}):
        raise ValueError(changed)
    for opened in (session, bound_session):
        open_session.close(opened)
    return outputs


def _laid_out(chunk: Arrays, lay_out: LayOut) -> dict[str, np.ndarray]:
    """The arrays of a call, each laid out by itself."""
    return {
        name: lay_out({name: array.reshape((1,) * (3 - array.ndim) + array.shape)})[name].reshape(array.shape)
        for name, array in chunk.items()
    }


def _one_array_for_all(start: Arrays) -> Arrays:
    """A state whose arrays of equal shape and dtype are one object; empty if no two arrays are equal in this.

    Whole numbers are left out: each array may have another range.
    """
    floats = {name: array for name, array in start.items() if array.dtype.kind == "f"}
    by_form = {(array.shape, array.dtype): array for array in floats.values()}
    shared = {name: by_form[array.shape, array.dtype] for name, array in floats.items()}
    return {**start, **shared} if len(by_form) < len(floats) else {}


def _signature(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Check the names, dtypes and shapes of states and of outputs: of calls of three lengths and of a bound call."""
    session, chunk = open_session(), reference.trial.strategy.chunk
    batch, width = reference.trial.batch, reference.trial.model.width
    x, dtype = np.concatenate([inputs["x"] for inputs in reference.ring]), reference.x.dtype
    states = reference.start if reference.is_stream else {}
    complaints = list(_complaints("the state of a new session", session.get_state(), states))
    for steps in sorted({1, chunk, 2 * chunk + 1}) if reference.is_stream else [chunk]:
        outputs = session.step({**reference.ring[0], "x": x[:steps]})
        complaints += _complaints(f"a call of {steps} steps", outputs, {"y": np.empty((steps, batch, width), dtype)})
    bound = session.bind(reference.ring)
    bound()
    bound.sync()
    complaints += _complaints("a bound call", bound.output(), {"y": np.empty((chunk, batch, width), dtype)})
    complaints += _complaints("the state after calls", session.get_state(), states)
    return CheckResult(verdict="fail" if complaints else "pass", detail="; ".join(complaints[:2]))


def _complaints(where: str, got: Arrays, like: Arrays) -> Iterator[str]:
    """What is wrong with the names, dtypes and shapes of returned arrays, which should be those of `like`."""
    if sorted(got) != sorted(like):
        yield f"{where}: expected the arrays {sorted(like)}, got {sorted(got)}"
        return
    for name, array in got.items():
        dtype, shape = like[name].dtype, like[name].shape
        if type(array) is not np.ndarray:  # A subclass may compute its numbers when somebody looks at them.
            yield f"{name} of {where}: expected a NumPy array, got {type(array).__name__}"
        elif array.dtype != dtype or array.shape != shape:
            shown = f"{array.dtype} {list(array.shape)}"
            yield f"{name} of {where}: expected {dtype} {list(shape)}, got {shown}"
        elif not array.flags.writeable:
            yield f"{name} of {where} is read-only: the caller owns it, and may write to it"


def _watched(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Read all arrays that the program was given, from another thread, while public and bound calls run."""
    session = open_session()
    ring = [{name: array.copy() for name, array in chunk.items()} for chunk in reference.ring]
    watched = {f"{name} of chunk {i}": array for i, chunk in enumerate(ring) for name, array in chunk.items()}
    start = {name: array.copy() for name, array in reference.start.items()}
    watcher = Watcher({**watched, **{f"the given state {name}": array for name, array in start.items()}})
    planned = planned_turns(reference.trial.limits, WATCHED_CALLS, WATCHED_ENOUGH)
    budget = Budget("calls looked at", planned, WATCHED_LEAST, WATCHED_S)
    with watcher.watching():
        bound = session.bind(ring)
        for call in budget:
            if reference.is_stream and call % RING == 0:
                session.set_state(start)
            session.step(ring[call % RING])
            bound()
            bound.sync()
    if watcher.changed:
        detail = f"{watcher.changed} was written to while calls ran; a program must not write to what it was given"
        return CheckResult(verdict="fail", detail=detail)
    return budget.result(CheckResult(verdict="pass"))


class Watcher:
    """Reads arrays in a thread of its own, over and over."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self._arrays = [(name, array, array.tobytes()) for name, array in arrays.items()]
        self._ended = False
        self.changed = ""
        """The first array that was seen to change; empty if none was."""

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Read the arrays while the block runs, and once more at its end."""
        thread = Thread(target=self._watch)
        with switching_every(SWITCH_S):
            thread.start()
            try:
                yield
            finally:
                self._ended = True
                thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._ended and not self.changed:
            self._look()

    def _look(self) -> None:
        for name, array, before in self._arrays:
            if not self.changed and array.tobytes() != before:
                self.changed = name


ARRAYS = (
    Check("untouched", "Inputs, weights, earlier outputs and earlier states do not change.", _untouched),
    Check("owned", "If the caller changes arrays that it gave or received, nothing else changes.", _owned),
    Check("watched", "Inputs, rings and given states are not written to, not even during a call.", _watched),
    Check("layout", "The layout of an input or a state in memory changes nothing.", _layout),
    Check(
        "signature",
        "Returned arrays have the dtype and shape of the signature, and the caller may write to them.",
        _signature,
    ),
)
