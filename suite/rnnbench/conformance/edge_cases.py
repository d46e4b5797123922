"""Checks of edge cases: rows of a batch, ragged lengths, NaN, two threads, wrong arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Barrier, BrokenBarrierError
from typing import Any

import numpy as np

from rnnbench.backends import Arrays, Session
from rnnbench.conformance.budget import Budget
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import ALL, FEW_CALLS, Rows, compare_steps, fed_chunks, first_outputs, output_pairs
from rnnbench.conformance.tolerance import Errors, same_bits
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult
from rnnbench.rnn import DTYPES

POISONS = (np.nan, np.inf, -np.inf)
POISONED_S = 0.1
"""Time for poisoning rows one after the other. It is enough for 5 rows of a program that takes 1 ms a call."""


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
            others = np.where(only[:, None], x, scale * x[::-1]).astype(x.dtype)
            state = {n: np.where(only[:, None], a, scale * a).astype(a.dtype) for n, a in reference.start.items()}
            compare_steps(errors, f"y of row {row} {what}", fed(others, state)[:, [row]], exact[:, [row]], reference)
    return errors.verdict()


def shares_scale(reference: ReferenceTrajectories) -> bool:
    """Whether the rows of a call may have one scale, so that a row's rounding depends on the range of the others."""
    return DTYPES[reference.trial.dtype].activations == "dynamic"


def _listed(order: np.ndarray) -> str:
    return f"{', '.join(str(row) for row in order[:4])}{', …' if len(order) > 4 else ''}"


def _lengths(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    if reference.lengths is None:
        return CheckResult(verdict="not-applicable", detail="every row has all steps of a call")
    unpadded = first_outputs(open_session(), reference)
    session, poisoned, ends = open_session(), [], []
    for index, chunk in enumerate(reference.ring[:FEW_CALLS]):
        beyond = np.arange(len(chunk["x"]))[:, None] >= chunk["lengths"]
        x = chunk["x"].copy()
        x[beyond] = POISONS[index]
        poisoned.append(session.step({**chunk, "x": x})["y"])
        ends.append((f"beyond the lengths, y of call {index}", unpadded[index][beyond], unpadded[index][beyond] * 0))
    return same_bits([*ends, *output_pairs("with no numbers beyond the lengths, y of call", poisoned, unpadded)])


def _nan(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Poison one row of x, or of one state, and compare the others; then reset, and compare all rows.

    Where all rows of a call may have one scale, the others are not compared, and the poison may be refused.
    """
    if not reference.trial.model.takes_any_number:
        return CheckResult(verdict="not-applicable", detail="inputs of whole numbers are numbers")
    errors, session, plan = Errors(), open_session(), _poisonings(reference)
    budget = Budget("poisoned rows", len(plan), reference.trial.batch, POISONED_S)
    (x, exact), from_start = _beginning(reference), _beginning(reference, from_start=True)[1]
    for turn in budget:
        name, row, poison = plan[turn]
        others, poisoned = np.arange(reference.trial.batch) != row, x
        session.reset()
        if name == "x":
            poisoned = _with_row(x, row, poison)
        else:
            session.set_state({**reference.start, name: _with_row(reference.start[name], row, poison)})
        if shares_scale(reference):
            with suppress(Exception):
                fed_chunks(session, poisoned, reference)
        elif others.any():
            what = f"y of the rows other than {row}, which has {poison} in {name}"
            y, expected = fed_chunks(session, poisoned, reference), exact if name == "x" else from_start
            compare_steps(errors, what, y[:, others], expected[:, others], reference)
        else:
            fed_chunks(session, poisoned, reference)
        session.reset()
        what = f"y after a {poison} in row {row} of {name} and a reset"
        compare_steps(errors, what, fed_chunks(session, x, reference), exact, reference)
    return budget.result(errors.verdict())


def _poisonings(reference: ReferenceTrajectories) -> list[tuple[str, int, float]]:
    """Array, row and value of each turn: every row of every array, and the last row of x with every value."""
    rows = reference.trial.batch
    names = ["x", *reference.start] if reference.is_stream else ["x"]
    turns = [
        (name, row, POISONS[(row + turn) % len(POISONS)]) for turn, name in enumerate(names) for row in range(rows)
    ]
    return list(dict.fromkeys([*turns, *(("x", rows - 1, poison) for poison in POISONS)]))


def _with_row(array: np.ndarray, row: int, poison: float) -> np.ndarray:
    """A copy of x or of a state, [any, batch, size], with one value of this row replaced in its first part."""
    poisoned = array.copy()
    poisoned[0, row, row % array.shape[-1]] = poison
    return poisoned


def _threads(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    feeds = [reference.ring[:FEW_CALLS], reference.ring[FEW_CALLS : 2 * FEW_CALLS]]
    alone = [_outputs(open_session(), feed) for feed in feeds]
    sessions, barrier = [open_session() for _ in feeds], Barrier(len(feeds))
    with ThreadPoolExecutor(len(feeds)) as pool:
        together = list(pool.map(partial(_outputs, barrier=barrier), sessions, feeds))
    return same_bits(
        [
            pair
            for got, expected in zip(together, alone, strict=True)
            for pair in output_pairs("while another thread runs, y of call", got, expected)
        ]
    )


def _outputs(session: Session, feed: Sequence[Arrays], barrier: Barrier | None = None) -> list[np.ndarray]:
    """y of each call. Calls begin together with those of the other threads at the barrier, until one of them raises."""
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


def _refusal(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    session = open_session()
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
    fresh = open_session()
    if reference.is_stream:
        fresh.set_state(before)
    return same_bits([*unchanged, ("after refused calls, y", session.step(first)["y"], fresh.step(first)["y"])])


def _refused(session: Session, reference: ReferenceTrajectories) -> Iterator[tuple[str, Callable[[], object]]]:
    """Calls that no session may accept, each with its name."""
    x = reference.ring[0]["x"]
    other = "float64" if x.dtype != np.float64 else "float32"
    longer = np.concatenate([x, x[:1]])
    other_inputs = {name: array for name, array in reference.ring[0].items() if name != "x"}
    inputs: dict[str, dict[str, Any]] = {
        "an x of rank 2": {**other_inputs, "x": x[:, 0]},
        "an x that is a list": {**other_inputs, "x": x.tolist()},
        "an x of zero steps": {**other_inputs, "x": x[:0]},
        "an x with another batch": {**other_inputs, "x": np.repeat(x, 2, axis=1)},
        "an x with another input size": {**other_inputs, "x": np.repeat(x, 2, axis=2)},
        f"an x of {other}": {**other_inputs, "x": x.astype(other)},
        "an x in the other byte order": {**other_inputs, "x": x.astype(x.dtype.newbyteorder())},
        "an x by another name": {**other_inputs, "input": x},
        "an x with an array of another name": {**other_inputs, "x": x, "z": x},
        "no x": {},
    }
    if reference.trial.batch > 1:
        inputs["an x with one row for the whole batch"] = {**other_inputs, "x": x[:, :1]}
    if not reference.is_stream:
        inputs["an x one step too long"] = {**other_inputs, "x": longer}
    for lengths in other_inputs.values():
        inputs |= {what: {"x": x, "lengths": wrong} for what, wrong in _wrong_lengths(lengths, len(x)).items()}
        inputs["no lengths"] = {"x": x}
    for what, given in inputs.items():
        yield what, partial(session.step, given)
    if reference.is_stream:
        for name, array in reference.start.items():
            for fault, wrong in {**_wrong_states(array, other), **_broadcasting(array)}.items():
                yield f"a state {name} {fault}", partial(session.set_state, {**reference.start, name: wrong})
            missing = {other: array for other, array in reference.start.items() if other != name}
            yield f"a state without {name}", partial(session.set_state, missing)
        yield "a state with one array too many", partial(session.set_state, {**reference.start, "z": x})
    yield "an empty ring", partial(session.bind, [])
    yield "a ring of chunks one step too long", partial(session.bind, [{**other_inputs, "x": longer}])
    yield f"a ring of {other}", partial(session.bind, [{**other_inputs, "x": x.astype(other)}])


def _wrong_lengths(lengths: np.ndarray, steps: int) -> dict[str, np.ndarray]:
    return {
        "a length of zero": np.where(np.arange(len(lengths)) == 0, 0, lengths).astype(lengths.dtype),
        "a length beyond the call": np.where(np.arange(len(lengths)) == 0, steps + 1, lengths).astype(lengths.dtype),
        "lengths of int64": lengths.astype(np.int64),
        "lengths of another batch": np.repeat(lengths, 2),
    }


def _wrong_states(array: np.ndarray, dtype: str) -> dict[str, np.ndarray]:
    return {
        "with another batch": np.repeat(array, 2, axis=1),
        "of another size": np.repeat(array, 2, axis=2),
        "with another number of layers": np.repeat(array, 2, axis=0),
        f"of {dtype}": array.astype(dtype),
    }


def _broadcasting(array: np.ndarray) -> dict[str, Any]:
    """What NumPy would spread over the state, or take for an array."""
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
    return {what: each for what, each in wrong.items() if np.shape(each) != array.shape or isinstance(each, list)}


def _beginning(reference: ReferenceTrajectories, *, from_start: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The first inputs, and the reference's y from zeros or `start`: a few chunks; with state `none`, one chunk."""
    if not reference.is_stream:
        return reference.ring[0]["x"], reference.ring_trajectory.y[0]
    steps = min(FEW_CALLS * reference.trial.strategy.chunk, reference.trial.steps)
    run = reference.from_start() if from_start else reference.from_zeros()
    return reference.x[:steps], run.y[:steps]


EDGE_CASES = (
    Check("lengths", "Beyond a row's length y is zero, and whatever x is there changes nothing.", _lengths),
    Check("batch", "A row of a batch does not depend on the others, nor on its place.", _batch),
    Check("nan", "What is not a number stays in its row, and a reset clears it.", _nan),
    Check("threads", "Two sessions used by two threads at once give what each gives alone.", _threads),
    Check("refusal", "Wrong arrays are refused, and a refused call changes nothing.", _refusal),
)
