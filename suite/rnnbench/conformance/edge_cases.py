"""Checks of edge cases: rows of a batch, ragged lengths, NaN, two threads, wrong arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from threading import Barrier, BrokenBarrierError
from typing import Any

import numpy as np

from rnnbench.backends import Arrays, Session
from rnnbench.conformance.budget import Budget
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import (
    ALL,
    FEW_CALLS,
    Rows,
    compare_steps,
    fed_chunks,
    first_bound_outputs,
    first_outputs,
    output_pairs,
)
from rnnbench.conformance.tolerance import Errors, same_bits
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult
from rnnbench.rnn import DTYPES

POISONS = (np.nan, np.inf, -np.inf)
POISONED_S = 0.1
"""Time for poisoning rows one after the other. It is enough for 5 rows of a program that takes 1 ms a call."""
THREAD_CALLS, THREAD_CALLS_LEAST, THREADS_S = 500, 9, 0.02
"""Calls of each of two threads at once. On one core threads take turns after some milliseconds, at any place of a
call."""
SWITCH_S = 1e-6
"""Python's switch interval while two threads make calls: far below what a call takes."""


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
            # Whole numbers have a range, in which a multiple of one may not be.
            of_x = scale if reference.trial.model.takes_any_number else 1
            others = np.where(only[:, None], x, of_x * x[::-1]).astype(x.dtype)
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
    """Two streams at once. Each begins in this thread, goes on in one of its own, and ends in this one again.

    Then each makes its calls over and over: threads seldom take turns in the middle of one short call.
    """
    feeds = [reference.ring[:FEW_CALLS], reference.ring[FEW_CALLS : 2 * FEW_CALLS]]
    alone = [_outputs(open_session(), feed) for feed in feeds]
    sessions, barrier = [open_session() for _ in feeds], Barrier(len(feeds))
    budgets = [Budget("calls in each of two threads", THREAD_CALLS, THREAD_CALLS_LEAST, THREADS_S) for _ in feeds]
    together = [_outputs(session, feed[:1]) for session, feed in zip(sessions, feeds, strict=True)]
    with _switching_often(), ThreadPoolExecutor(len(feeds)) as pool:
        went_on = list(pool.map(partial(_outputs, barrier=barrier), sessions, [feed[1:-1] for feed in feeds]))
        ended = [_outputs(session, feed[-1:]) for session, feed in zip(sessions, feeds, strict=True)]
        repeated = list(pool.map(partial(_repeated, barrier=barrier), sessions, feeds, alone, budgets))
    pairs = [
        pair
        for began, *others, expected in zip(together, went_on, ended, alone, strict=True)
        for pair in output_pairs("of two streams in two threads, y of call", sum(others, began), expected)
    ]
    pairs += _bound_elsewhere(open_session, reference)
    return min(budgets, key=lambda budget: budget.done).result(same_bits([*pairs, *chain(*repeated)]))


def _bound_elsewhere(
    open_session: OpenSession, reference: ReferenceTrajectories
) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Bound calls that go on in another thread than the one that bound the ring and began."""
    here, there = (open_session().bind(reference.ring) for _ in range(2))
    expected = [*first_bound_outputs(here), *first_bound_outputs(here)]
    began = first_bound_outputs(there)
    with ThreadPoolExecutor(1) as pool:
        went_on = pool.submit(first_bound_outputs, there).result()
    return output_pairs("that goes on in another thread, y of bound call", [*began, *went_on], expected)


def _repeated(
    session: Session, feed: Sequence[Arrays], alone: Sequence[np.ndarray], budget: Budget, barrier: Barrier
) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Repeat the calls, each time after a reset. Gives the first pass that differs from `alone`, or the last one."""
    pairs: list[tuple[str, np.ndarray, np.ndarray]] = []
    barrier.wait()
    for call in budget:
        index = call % len(feed)
        if index == 0:
            if same_bits(pairs).verdict == "fail":
                break
            session.reset()
            pairs = []
        y = session.step(feed[index])["y"]
        pairs.append((f"while another thread runs, y of call {call}", y, alone[index]))
    return pairs


@contextmanager
def _switching_often() -> Iterator[None]:
    """Python's threads take turns within a call too, however short it is."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


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
    return same_bits(
        [
            *unchanged,
            ("after refused calls, y", y, expected),
            *output_pairs("after refused calls, y of bound call", bound_y, expected_bound),
        ]
    )


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
