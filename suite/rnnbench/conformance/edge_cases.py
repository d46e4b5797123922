"""Checks of edge cases: rows of a batch, ragged lengths, NaN."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import product

import numpy as np

from rnnbench.backends import Session
from rnnbench.conformance.budget import Budget
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import (
    ALL,
    FEW_CALLS,
    called,
    compare_steps,
    fed_chunks,
    output_pairs,
    undisturbed_outputs,
)
from rnnbench.conformance.tolerance import Errors, same_bits, worst
from rnnbench.conformance.trajectories import ReferenceTrajectories, Rows
from rnnbench.results import CheckResult
from rnnbench.rnn import DTYPES, Model, run_reference

POISONS = (np.nan, np.inf, -np.inf)
RESET, STATE = "a reset", "a state that is set"
"""The two ways to recover a stream that has seen NaN or infinity."""
SHORT = 2
"""The most steps of the last of a few calls."""
POISONED_S = 0.1
"""Seconds for poisoning rows one after the other: enough for 5 rows of a program that takes 1 ms per call."""


@dataclass(frozen=True)
class _Poisoning:
    """One number of an input or a state that is no finite number, and the way to recover from it."""

    array: str
    """x, or the name of a state."""
    row: int
    value: float
    recovery: str = RESET
    place: int = 0
    """0 is the first step of x, 1 the last one of its first call, and 2 the last one of all, which is a rest's."""


def _batch(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    rows = reference.trial.batch
    if rows == 1:
        return CheckResult(verdict="not-applicable", detail="a batch of one row")
    errors, (x, exact) = Errors(), _beginning(reference, from_start=True)
    generator = np.random.default_rng([reference.trial.seed, rows])

    def fed(x: np.ndarray, state: dict[str, np.ndarray], order: Rows = ALL) -> np.ndarray:
        session = open_session()
        if reference.is_stream:
            session.set_state(state)
        return fed_chunks(session, x, reference, order)

    for order in (np.arange(rows)[::-1], np.roll(np.arange(rows), 1), generator.permutation(rows)):
        y = fed(x[:, order], {name: array[:, order] for name, array in reference.start.items()}, order)
        compare_steps(errors, f"y with the rows in the order {_listed(order)}", y, exact[:, order], reference)
    for row in sorted({0, rows - 1, int(generator.integers(rows))}):
        only = np.arange(rows) == row
        for what, scale in (("alone, the others zero", 0), ("beside others", -1 if shares_scale(reference) else -2)):
            # A multiple of a whole number may be out of its range.
            of_x = scale if reference.trial.model.takes_any_number else 1
            others = np.where(only[:, None], x, of_x * x[::-1]).astype(x.dtype)
            state = {n: _others_scaled(a, only, scale) for n, a in reference.start.items()}
            compare_steps(errors, f"y of row {row} {what}", fed(others, state)[:, [row]], exact[:, [row]], reference)
    return errors.verdict()


def _others_scaled(array: np.ndarray, only: np.ndarray, scale: int) -> np.ndarray:
    """A state whose rows, except those of `only` [batch], are scaled. Whole numbers become zero or stay unchanged."""
    factor = scale if array.dtype.kind == "f" else abs(scale) > 0
    scaled: np.ndarray = np.where(only[:, None], array, factor * array).astype(array.dtype)
    return scaled


def shares_scale(reference: ReferenceTrajectories) -> bool:
    """Whether the rows and steps of a call may share one int8 scale. A row's rounding then depends on the others."""
    trial = reference.trial
    if DTYPES[trial.dtype].activations == "dynamic":
        return True
    return trial.model.activations == "dynamic" and trial.strategy.chunk * trial.batch > 1


def _listed(order: np.ndarray) -> str:
    return f"{', '.join(str(row) for row in order[:4])}{', …' if len(order) > 4 else ''}"


def _lengths(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    if reference.lengths is None:
        return CheckResult(verdict="not-applicable", detail="every row has all steps of a call")
    unpadded = undisturbed_outputs(open_session, reference)
    session, poisoned, ends = open_session(), [], []
    for index, chunk in enumerate(reference.ring[:FEW_CALLS]):
        beyond = np.arange(len(chunk["x"]))[:, None] >= chunk["lengths"]
        x = chunk["x"].copy()
        x[beyond] = POISONS[index]
        poisoned.append(session.step({**chunk, "x": x})["y"])
        ends.append((f"beyond the lengths, y of call {index}", unpadded[index][beyond], unpadded[index][beyond] * 0))
    bits = same_bits([*ends, *output_pairs("with no numbers beyond the lengths, y of call", poisoned, unpadded)])
    return bits if bits.verdict == "fail" else worst(bits, _certain_lengths(open_session(), reference))


def _certain_lengths(session: Session, reference: ReferenceTrajectories) -> CheckResult:
    """Compare calls in which all rows have the same length (one step, half, or all of a call), and calls with rising
    lengths. `lengths` is passed before `x`. The reference runs all of them as rows of one batch."""
    errors, x, rows = Errors(), reference.ring[0]["x"], reference.trial.batch
    most = len(x)
    kinds = {f"lengths that are all {steps}": np.full(rows, steps) for steps in sorted({1, (most + 1) // 2, most})}
    kinds["lengths that rise"] = 1 + (1 + np.arange(rows)) % most
    lengths = np.concatenate(list(kinds.values())).astype(np.int32)
    exact = run_reference(
        reference.trial.model, reference.weights, np.concatenate([x] * len(kinds), axis=1), lengths=lengths
    ).y
    for number, (what, of_kind) in enumerate(kinds.items()):
        y = session.step({"lengths": of_kind.astype(np.int32), "x": x})["y"]
        compare_steps(errors, f"y with {what}", y, exact[:, number * rows : (number + 1) * rows], reference)
    return errors.verdict()


def _nan(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Put NaN or infinity into one row of x or of a state, and compare the other rows. Then reset, and compare all.

    In the last turns a state is set instead of the reset: nothing else that a program keeps may matter. If all rows of
    a call may share one scale, the other rows are not compared, and the program may refuse the call.
    """
    if not reference.trial.model.takes_any_number:
        return CheckResult(verdict="not-applicable", detail="inputs of whole numbers are numbers")
    errors, session, plan = Errors(), open_session(), _poisonings(reference)
    budget = Budget("poisoned rows", len(plan), reference.trial.batch, POISONED_S)
    (x, exact), from_start = _beginning(reference), _beginning(reference, from_start=True)[1]
    for turn in budget:
        poisoning = plan[turn]
        array, row, value = poisoning.array, poisoning.row, poisoning.value
        others, poisoned = np.arange(reference.trial.batch) != row, x
        session.reset()
        if array == "x":
            poisoned = _with_row(
                x, row, value, (0, min(reference.trial.strategy.chunk, len(x)) - 1, -1)[poisoning.place]
            )
        else:
            session.set_state({**reference.start, array: _with_row(reference.start[array], row, value)})
        if shares_scale(reference):
            with suppress(Exception):
                fed_chunks(session, poisoned, reference)
        elif others.any():
            what = f"y of the rows other than {row}, which has {value} in {array}"
            y, expected = fed_chunks(session, poisoned, reference), exact if array == "x" else from_start
            compare_steps(errors, what, y[:, others], expected[:, others], reference)
        else:
            fed_chunks(session, poisoned, reference)
        if poisoning.recovery == RESET:
            session.reset()
        else:
            session.set_state(reference.start)
        what = f"y after a {value} in row {row} of {array} and {poisoning.recovery}"
        expected = exact if poisoning.recovery == RESET else from_start
        compare_steps(errors, what, fed_chunks(session, x, reference), expected, reference)
    _compare_neighbours(errors, open_session, reference)
    if (verdict := _read_back(session, reference)).verdict == "fail":
        return verdict
    if lost := _lost_nan(open_session(), reference):
        return CheckResult(verdict="fail", detail=lost)
    if not shares_scale(reference):
        _compare_poisoned_ring(errors, open_session, reference)
    return budget.result(errors.verdict())


def _read_back(session: Session, reference: ReferenceTrajectories) -> CheckResult:
    """Set states with NaN or an infinity, and read them. The sign of a NaN says nothing."""
    given = reference.start if reference.is_stream else {}
    for name, value in product([name for name, array in given.items() if array.dtype.kind == "f"], POISONS):
        state = _with_row(given[name], 0, value)
        session.set_state({**given, name: state})
        if not np.array_equal(session.get_state()[name], state, equal_nan=True):
            detail = f"a state {name} with {value} has other numbers when it is read back"
            return CheckResult(verdict="fail", detail=detail)
    return CheckResult(verdict="pass")


def _lost_nan(session: Session, reference: ReferenceTrajectories) -> str:
    """A sentence if NaN in the y of a stack is not in its h, which is that y, or if a state of NaN is not continued.

    Activations that are clipped may give a number for NaN. But they do so in every step: from a state that is NaN
    alone, a step gives NaN where it did so from any other state.
    """
    trial, row, ring = reference.trial, reference.trial.batch - 1, reference.ring
    if not (reference.is_stream and isinstance(trial.model, Model)) or DTYPES[trial.dtype].activations:
        return ""
    y, chunk, state_ends = np.empty(0, bool), trial.strategy.chunk, list[int]()
    for x in (_with_row(ring[0]["x"], row, np.nan), ring[1]["x"], ring[2]["x"]):
        of_call, state = np.isnan(session.step({"x": x})["y"][:, row]), session.get_state()
        if (of_call[-1] != np.isnan(state["h"][-1, row])).any():
            return f"after NaN in row {row} of x, NaN in the last y and in the state h, which has this y, differ"
        y = np.append(y, of_call.all(axis=1))
        if y[-1] and all(np.isnan(array[:, row]).all() for array in state.values()):
            state_ends.append(len(y))
    for end in state_ends:
        if not y[end : end + min(end - 1, chunk)].all():
            return f"after NaN in row {row} of x, the state is NaN after {end} steps, and y after that is not"
    return ""


def _compare_poisoned_ring(errors: Errors, open_session: OpenSession, reference: ReferenceTrajectories) -> None:
    """Compare bound calls of a ring whose first chunk has NaN in its last row. The public path has seen it before."""
    (x, exact), chunk, session = _beginning(reference), reference.trial.strategy.chunk, open_session()
    whole = [x[at : at + chunk] for at in range(0, len(x) - chunk + 1, chunk)]
    row, others = reference.trial.batch - 1, slice(0, reference.trial.batch - 1)
    ring = [{**reference.ring[0], "x": part} for part in (_with_row(whole[0], row, np.nan), *whole)]
    bound = session.bind(ring)
    session.step(ring[0])
    session.reset()
    y = called(bound)
    if row:
        what = f"y of the rows of a bound call other than {row}, which has nan in x"
        compare_steps(errors, what, y[:, others], exact[:chunk, others], reference)
    session.reset()
    y = np.concatenate([called(bound) for _ in whole])
    compare_steps(errors, "y of bound calls after one that has seen NaN, and a reset", y, exact[: len(y)], reference)


def _compare_neighbours(errors: Errors, open_session: OpenSession, reference: ReferenceTrajectories) -> None:
    """Compare a session that is open beside one that has seen NaN, and one that is opened after that one is closed."""
    poisoned, beside = open_session(), open_session()
    (x, exact), chunk = _beginning(reference), reference.trial.strategy.chunk
    first = fed_chunks(beside, x[:chunk], reference)
    _see_nan(poisoned, x[:chunk], reference)
    poisoned.reset()
    what = "y after NaN in all rows and a reset"
    compare_steps(errors, what, fed_chunks(poisoned, x, reference), exact, reference)
    _see_nan(poisoned, x[:chunk], reference)
    y = first if len(x) <= chunk else np.concatenate([first, fed_chunks(beside, x[chunk:], reference)])
    compare_steps(errors, "y of a session beside one that has seen NaN", y, exact, reference)
    if not reference.is_stream:
        y = fed_chunks(beside, x, reference)
        compare_steps(errors, "y of the next call of a session beside one that has seen NaN", y, exact, reference)
    open_session.close(poisoned)
    y = fed_chunks(open_session(), x, reference)
    compare_steps(errors, "y of a session opened after one that has seen NaN was closed", y, exact, reference)


def _see_nan(session: Session, x: np.ndarray, reference: ReferenceTrajectories) -> None:
    with suppress(Exception):  # If all rows share one scale, a program may refuse the call.
        fed_chunks(session, np.full_like(x, np.nan), reference)


def _poisonings(reference: ReferenceTrajectories) -> list[_Poisoning]:
    """The turns: first every row of every array of floats, and the last row of x with every value and at every place,
    each followed by a reset. Then the last row of every array, followed by a state that is set.
    """
    rows = reference.trial.batch
    states = [name for name, array in reference.start.items() if array.dtype.kind == "f"]
    names = ["x", *states] if reference.is_stream else ["x"]
    followed_by_reset = [
        _Poisoning(name, row, POISONS[(row + turn) % len(POISONS)])
        for turn, name in enumerate(names)
        for row in range(rows)
    ]
    followed_by_reset += [_Poisoning("x", rows - 1, value, place=place) for place, value in enumerate(POISONS)]
    followed_by_reset += [_Poisoning("x", rows - 1, np.nan, place=place) for place in (1, 2)]
    followed_by_state = [
        _Poisoning(name, rows - 1, POISONS[turn % len(POISONS)], STATE)
        for turn, name in enumerate(names)
        if reference.is_stream
    ]
    return [*dict.fromkeys(followed_by_reset), *followed_by_state]


def _with_row(array: np.ndarray, row: int, poison: float, step: int = 0) -> np.ndarray:
    """A copy of x or of a state, [any, batch, size], with one value of this row replaced by `poison`."""
    poisoned = array.copy()
    poisoned[step, row, row % array.shape[-1]] = poison
    return poisoned


def _beginning(reference: ReferenceTrajectories, *, from_start: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The first few calls' inputs, and the reference's y from zeros or `start`: chunks, and a rest. With state `none`,
    one chunk."""
    if not reference.is_stream:
        return reference.ring[0]["x"], reference.ring_trajectory.y[0]
    chunk = reference.trial.strategy.chunk
    steps = min((FEW_CALLS - 1) * chunk + min(chunk, SHORT), reference.trial.steps)
    run = reference.from_start() if from_start else reference.from_zeros()
    return reference.x[:steps], run.y[:steps]


EDGE_CASES = (
    Check("lengths", "Beyond a row's length, y is zero, and x there changes nothing.", _lengths),
    Check("batch", "A row of a batch does not depend on the other rows, nor on its place.", _batch, compares=True),
    Check("nan", "NaN and infinity stay in their row, and a reset clears them.", _nan, compares=True),
)
