"""Ways of feeding a session that checks share, and pairing its outputs with the expected ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rnnbench.backends import Bound, Session
from rnnbench.conformance.definition import OpenSession
from rnnbench.conformance.tolerance import Errors, Pair
from rnnbench.conformance.trajectories import ReferenceRun, ReferenceTrajectories, Rows

ALL = slice(None)
ALIGNMENT = 64
"""Bytes. Runtimes that take an array's memory instead of a copy do so only where it is aligned (JAX: 64)."""
EXPECTED_ROUNDING = 2.0
"""Roundings between a program and expected outputs: the program's own, and those of whoever made the outputs."""
FEW_CALLS = 3
"""Calls that the bitwise checks make before and after an event: a fault of the second or third call shows."""
UNDISTURBED_CALLS, UNDISTURBED_BOUND_CALLS = FEW_CALLS + 1, 2 * FEW_CALLS
"""Calls from zeros or `start` that are made once for all checks: as many as any check needs."""


def aligned(array: np.ndarray) -> np.ndarray:
    """A C-contiguous copy that begins at a multiple of ALIGNMENT."""
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    copied: np.ndarray = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied


def stream_outputs(session: Session, reference: ReferenceTrajectories) -> np.ndarray:
    """y of the whole stream [steps, batch, width], fed in calls of the program's own chunk, a ragged rest last."""
    chunk = reference.trial.strategy.chunk
    return np.concatenate(
        [session.step({"x": reference.x[at : at + chunk]})["y"] for at in range(0, len(reference.x), chunk)]
    )


def expected_outputs(session: Session, reference: ReferenceTrajectories) -> np.ndarray:
    """y [steps, batch, width] of the beginning of the stream for which the user says what it is: whole calls of it."""
    assert reference.expected is not None
    chunk = reference.trial.strategy.chunk
    steps = len(reference.expected) - len(reference.expected) % chunk
    return fed_chunks(session, reference.x[:steps], reference) if steps else reference.expected[:0]


def compare_expected(errors: Errors, y: np.ndarray, reference: ReferenceTrajectories) -> None:
    """Add the errors of y against what the user expects, which another runtime has rounded once more."""
    assert reference.expected is not None
    for step, got in enumerate(y):
        rounding = EXPECTED_ROUNDING * reference.rounding_at(step)
        errors.add(f"y at step {step}, as the case expects it", got, reference.expected[step], rounding)


def first_outputs(session: Session, reference: ReferenceTrajectories) -> list[np.ndarray]:
    """y of public calls with the first chunks of the ring."""
    return [session.step(chunk)["y"] for chunk in reference.ring[:FEW_CALLS]]


@dataclass(frozen=True)
class UndisturbedCalls:
    """What a program gave for the first chunks of the ring, in a session of its own."""

    outputs: list[np.ndarray]
    """y of each call."""
    states: Mapping[str, np.ndarray]
    """After the last one."""


def undisturbed_calls(
    open_session: OpenSession, reference: ReferenceTrajectories, *, from_start: bool = False, steps: int | None = None
) -> UndisturbedCalls:
    """UNDISTURBED_CALLS public calls, each with a chunk or with its first `steps`, from zeros or from `start`.

    They are made once, by the first check that needs them. The others ask for the same to the bit.
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
    """y of the first FEW_CALLS of these calls."""
    return undisturbed_calls(open_session, reference, from_start=from_start).outputs[:FEW_CALLS]


def undisturbed_bound_outputs(
    open_session: OpenSession, reference: ReferenceTrajectories, *, from_start: bool = False
) -> list[np.ndarray]:
    """y of UNDISTURBED_BOUND_CALLS calls of the ring that is bound in such a session; from `start`, of FEW_CALLS."""

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
    """y of one bound call."""
    bound()
    bound.sync()
    return bound.output()["y"]


def first_bound_outputs(bound: Bound, interleaved: Bound | None = None) -> list[np.ndarray]:
    """y of the first bound calls, with a call of another session's `interleaved` after each."""
    outputs = []
    for _ in range(FEW_CALLS):
        bound()
        if interleaved is not None:
            interleaved()
        bound.sync()
        outputs.append(bound.output()["y"])
    return outputs


def fed_chunks(session: Session, x: np.ndarray, reference: ReferenceTrajectories, order: Rows = ALL) -> np.ndarray:
    """y of x in calls of a chunk. Where rows have lengths, they are those of the ring's first chunk, in this order."""
    chunk, lengths = reference.trial.strategy.chunk, {n: a[order] for n, a in reference.ring[0].items() if n != "x"}
    return np.concatenate([session.step({"x": x[at : at + chunk], **lengths})["y"] for at in range(0, len(x), chunk)])


def output_pairs(what: str, got: list[np.ndarray], expected: list[np.ndarray]) -> list[Pair]:
    """Pairs for `same_bits`, each named `what` and the number of its call."""
    return [(f"{what} {index}", a, b) for index, (a, b) in enumerate(zip(got, expected, strict=True))]


def compare_steps(
    errors: Errors, what: str, y: np.ndarray, exact: np.ndarray, reference: ReferenceTrajectories
) -> None:
    """Add the errors of y [steps, batch, width] to `errors`, each step with the rounding expected there."""
    errors.add_steps(what, y, exact, reference.rounding.over(len(exact)), arrays=reference.trial.model.parts_of_y)


def compare_with_run(errors: Errors, where: str, y: np.ndarray, run: ReferenceRun) -> None:
    """Add the errors of y [steps, batch, width] against a run of the reference, each step with its own rounding."""
    errors.add_steps("y", y, run.y, run.rounding, f" {where}")
