"""Feeding sessions and comparing their outputs, for all checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rnnbench.backends import Arrays, Bound, Session
from rnnbench.conformance.definition import OpenSession
from rnnbench.conformance.rounding import Y
from rnnbench.conformance.tolerance import Errors, Pair
from rnnbench.conformance.trajectories import ReferenceRun, ReferenceTrajectories, Rows

ALL = slice(None)
PAGE = 4096
"""Bytes. A runtime that uses an array's memory without a copy does so only if it is aligned (JAX: to 64)."""
EXPECTED_ROUNDING = 2.0
"""Rounding errors between a program and the user's expected outputs: the program's, and those in the outputs."""
FEW_CALLS = 3
"""Calls that the bitwise checks make before and after an event. Faults of a second or third call show."""
UNDISTURBED_CALLS, UNDISTURBED_BOUND_CALLS = FEW_CALLS + 1, 2 * FEW_CALLS
"""Calls from zeros or `start` that are made once and shared: as many as any check needs."""


def aligned(array: np.ndarray) -> np.ndarray:
    """A C-contiguous copy that begins at a page."""
    memory = np.empty(array.nbytes + PAGE, np.uint8)
    begin = -memory.ctypes.data % PAGE
    copied: np.ndarray = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied


def overwrite(arrays: Arrays) -> None:
    """Fill the arrays with another number. Read-only arrays are skipped, since no caller can write to them."""
    for array in arrays.values():
        if array.flags.writeable:
            array.fill(7)


def stream_outputs(session: Session, reference: ReferenceTrajectories) -> np.ndarray:
    """y of the whole stream [steps, batch, width], fed in calls of the trial's chunk. A ragged rest comes last."""
    chunk = reference.trial.strategy.chunk
    return np.concatenate(
        [session.step({"x": reference.x[at : at + chunk]})["y"] for at in range(0, len(reference.x), chunk)]
    )


def expected_outputs(session: Session, reference: ReferenceTrajectories) -> np.ndarray:
    """The program's y [steps, batch, width] of the steps for which the user expects outputs, in whole calls."""
    assert reference.expected is not None
    chunk = reference.trial.strategy.chunk
    steps = len(reference.expected) - len(reference.expected) % chunk
    return fed_chunks(session, reference.x[:steps], reference) if steps else reference.expected[:0]


def compare_expected(errors: Errors, y: np.ndarray, reference: ReferenceTrajectories) -> None:
    """Add the errors of y [steps, batch, width] against the outputs that the user expects, which are rounded too."""
    assert reference.expected is not None
    for step, got in enumerate(y):
        rounding = EXPECTED_ROUNDING * reference.rounding_at(step)
        errors.add(f"y at step {step}, as the case expects it", got, reference.expected[step], rounding)


def first_outputs(session: Session, reference: ReferenceTrajectories) -> list[np.ndarray]:
    """y [chunk, batch, width] of each public call with the first chunks of the ring."""
    return [session.step(chunk)["y"] for chunk in reference.ring[:FEW_CALLS]]


@dataclass(frozen=True)
class UndisturbedCalls:
    """The outputs of calls with the first chunks of the ring, in a session of its own."""

    outputs: list[np.ndarray]
    """y [steps, batch, width] of each call."""
    states: Mapping[str, np.ndarray]
    """The state after the last call."""


def undisturbed_calls(
    open_session: OpenSession, reference: ReferenceTrajectories, *, from_start: bool = False, steps: int | None = None
) -> UndisturbedCalls:
    """UNDISTURBED_CALLS public calls, each with a chunk or with its first `steps`, from zeros or from `start`.

    The first check that needs them makes them. All checks share the result.
    """

    def make() -> UndisturbedCalls:
        session = _begun(open_session(), reference, from_start=from_start)
        feed = [{**chunk, "x": chunk["x"][:steps].copy()} for chunk in reference.ring[:UNDISTURBED_CALLS]]
        outputs = [session.step(chunk)["y"].copy() for chunk in feed]
        states = {name: array.copy() for name, array in session.get_state().items()}
        open_session.close(session)
        return UndisturbedCalls(outputs, states)

    if steps == reference.trial.strategy.chunk:
        steps = None
    return open_session.once(f"public calls, from start: {from_start}, of steps: {steps}", make)


def undisturbed_outputs(
    open_session: OpenSession, reference: ReferenceTrajectories, *, from_start: bool = False
) -> list[np.ndarray]:
    """y [chunk, batch, width] of each of the first FEW_CALLS of `undisturbed_calls`."""
    return undisturbed_calls(open_session, reference, from_start=from_start).outputs[:FEW_CALLS]


def undisturbed_bound_outputs(
    open_session: OpenSession, reference: ReferenceTrajectories, *, from_start: bool = False
) -> list[np.ndarray]:
    """y of UNDISTURBED_BOUND_CALLS bound calls of the ring in a session of its own; from `start`, of FEW_CALLS."""

    def make() -> list[np.ndarray]:
        session = open_session()
        bound = session.bind(reference.ring)
        _begun(session, reference, from_start=from_start)
        outputs = [called(bound).copy() for _ in range(FEW_CALLS if from_start else UNDISTURBED_BOUND_CALLS)]
        open_session.close(session)
        return outputs

    return open_session.once(f"bound calls, from start: {from_start}", make)


def _begun(session: Session, reference: ReferenceTrajectories, *, from_start: bool) -> Session:
    if from_start and reference.is_stream:
        session.set_state(reference.start)
    return session


def called(bound: Bound) -> np.ndarray:
    """y [chunk, batch, width] of one bound call."""
    bound()
    bound.sync()
    return bound.output()["y"]


def first_bound_outputs(bound: Bound, interleaved: Bound | None = None) -> list[np.ndarray]:
    """y [chunk, batch, width] of each of FEW_CALLS bound calls. `interleaved` is called after each: another session."""
    outputs = []
    for _ in range(FEW_CALLS):
        bound()
        if interleaved is not None:
            interleaved()
        bound.sync()
        outputs.append(bound.output()["y"])
    return outputs


def fed_chunks(session: Session, x: np.ndarray, reference: ReferenceTrajectories, order: Rows = ALL) -> np.ndarray:
    """y [steps, batch, width] of x [steps, batch, input], fed in calls of a chunk.

    If rows have lengths, they are those of the ring's first chunk, in `order`.
    """
    chunk, lengths = reference.trial.strategy.chunk, {n: a[order] for n, a in reference.ring[0].items() if n != "x"}
    calls = [{"x": x[at : at + chunk], **lengths} for at in range(0, len(x), chunk)]
    return np.concatenate([called_publicly(session, inputs, reference) for inputs in calls])


def called_publicly(session: Session, inputs: Arrays, reference: ReferenceTrajectories) -> np.ndarray:
    """y of a public call.

    Raises ValueError if the call writes to x, so that the reference would compute the numbers written, or if y has
    another dtype than the program's, or one number for several places: comparing values does not show these.
    """
    before = inputs["x"].tobytes()
    y = session.step(inputs)["y"]
    if inputs["x"].tobytes() != before:
        raise ValueError(f"x of a call of {len(inputs['x'])} steps was written to")
    if y.dtype != reference.x.dtype:
        raise ValueError(f"y of a call of {len(inputs['x'])} steps: expected {reference.x.dtype}, got {y.dtype}")
    if any(stride == 0 and size > 1 for stride, size in zip(y.strides, y.shape, strict=True)):
        raise ValueError(f"y of a call of {len(inputs['x'])} steps has one number in memory for several of its places")
    return y


def output_pairs(what: str, got: list[np.ndarray], expected: list[np.ndarray]) -> list[Pair]:
    """Pairs for `same_bits`, each named `what` and the number of its call."""
    return [(f"{what} {index}", a, b) for index, (a, b) in enumerate(zip(got, expected, strict=True))]


def compare_steps(
    errors: Errors, what: str, y: np.ndarray, exact: np.ndarray, reference: ReferenceTrajectories
) -> None:
    """Add the errors of y [steps, batch, width] to `errors`, each step with the rounding expected there."""
    errors.add_steps(what, y, exact, reference.roundings[Y].over(len(exact)), arrays=reference.trial.model.parts_of_y)


def compare_with_run(errors: Errors, where: str, y: np.ndarray, run: ReferenceRun) -> None:
    """Add the errors of y [steps, batch, width] against a run of the reference, each step with its own rounding."""
    errors.add_steps("y", y, run.y, run.rounding, f" {where}")
