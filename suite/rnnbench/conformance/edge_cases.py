"""Checks of edge cases: rows of a batch, ragged lengths, NaN, two threads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, cycle
from threading import Barrier, BrokenBarrierError

import numpy as np

from rnnbench.backends import Arrays, Bound, Session
from rnnbench.conformance.budget import Budget, planned_turns
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import (
    ALL,
    FEW_CALLS,
    called,
    compare_steps,
    fed_chunks,
    first_bound_outputs,
    known_bound_outputs,
    known_outputs,
    output_pairs,
)
from rnnbench.conformance.tolerance import Errors, same_bits, worst
from rnnbench.conformance.trajectories import ReferenceTrajectories, Rows
from rnnbench.results import CheckResult
from rnnbench.rnn import DTYPES, run_reference

POISONS = (np.nan, np.inf, -np.inf)
RESET, STATE = "a reset", "a state that is set"
"""What ends a stream that has seen no numbers."""
POISONED_S = 0.1
"""Time for poisoning rows one after the other. It is enough for 5 rows of a program that takes 1 ms a call."""
THREAD_CALLS, THREAD_CALLS_ENOUGH, THREAD_CALLS_LEAST, THREADS_S = 500, 320, 9, 0.02
"""Calls, and arrays of states, of each of two threads at once, and how many are enough. On one core threads take turns
after some milliseconds, at any place of a call."""
PUBLIC_PASS, BOUND_PASS = 0, 1
"""Kinds of passes over the calls of a thread."""
Named = tuple[str, np.ndarray]
AT_ONCE = 4
"""Threads that live at once, each with a session: more than one that was opened for two has places for."""
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
            state = {n: _others_scaled(a, only, scale) for n, a in reference.start.items()}
            compare_steps(errors, f"y of row {row} {what}", fed(others, state)[:, [row]], exact[:, [row]], reference)
    return errors.verdict()


def _others_scaled(array: np.ndarray, only: np.ndarray, scale: int) -> np.ndarray:
    """A state whose rows are multiplied but for those of `only` [batch]. Whole numbers may be zero, and no others."""
    factor = scale if array.dtype.kind == "f" else abs(scale) > 0
    scaled: np.ndarray = np.where(only[:, None], array, factor * array).astype(array.dtype)
    return scaled


def shares_scale(reference: ReferenceTrajectories) -> bool:
    """Whether the rows of a call may have one scale, so that a row's rounding depends on the range of the others."""
    return DTYPES[reference.trial.dtype].activations == "dynamic"


def _listed(order: np.ndarray) -> str:
    return f"{', '.join(str(row) for row in order[:4])}{', …' if len(order) > 4 else ''}"


def _lengths(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    if reference.lengths is None:
        return CheckResult(verdict="not-applicable", detail="every row has all steps of a call")
    unpadded = known_outputs(open_session, reference)
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
    """Rows that all have the same length, all of a call's steps and one step among them, and lengths that rise. Their
    arrays are given last one first. The reference runs all of them as rows of one batch."""
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
    """Poison one row of x, or of one state, and compare the others; then reset, and compare all rows.

    In the last turns a state is set in place of the reset: what a program has left of a call must not count.
    Where all rows of a call may have one scale, the others are not compared, and the poison may be refused.
    """
    if not reference.trial.model.takes_any_number:
        return CheckResult(verdict="not-applicable", detail="inputs of whole numbers are numbers")
    errors, session, plan = Errors(), open_session(), _poisonings(reference)
    budget = Budget("poisoned rows", len(plan), reference.trial.batch, POISONED_S)
    (x, exact), from_start = _beginning(reference), _beginning(reference, from_start=True)[1]
    for turn in budget:
        name, row, poison, clears = plan[turn]
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
        if clears == RESET:
            session.reset()
        else:
            session.set_state(reference.start)
        what = f"y after a {poison} in row {row} of {name} and {clears}"
        expected = exact if clears == RESET else from_start
        compare_steps(errors, what, fed_chunks(session, x, reference), expected, reference)
    _compare_neighbours(errors, open_session, reference)
    if not shares_scale(reference):
        _compare_poisoned_ring(errors, open_session, reference)
    return budget.result(errors.verdict())


def _compare_poisoned_ring(errors: Errors, open_session: OpenSession, reference: ReferenceTrajectories) -> None:
    """A ring whose first chunk has no number in its last row, in a session whose public path has seen none either."""
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
    """A session that is open beside one that has seen no numbers, and one that is opened once that is closed."""
    poisoned, beside = open_session(), open_session()
    (x, exact), chunk = _beginning(reference), reference.trial.strategy.chunk
    first = fed_chunks(beside, x[:chunk], reference)
    with suppress(Exception):  # Where all rows have one scale, a program may refuse it.
        fed_chunks(poisoned, np.full_like(x[:chunk], np.nan), reference)
    y = first if len(x) <= chunk else np.concatenate([first, fed_chunks(beside, x[chunk:], reference)])
    compare_steps(errors, "y of a session beside one that has seen NaN", y, exact, reference)
    if not reference.is_stream:
        y = fed_chunks(beside, x, reference)
        compare_steps(errors, "y of the next call of a session beside one that has seen NaN", y, exact, reference)
    open_session.close(poisoned)
    y = fed_chunks(open_session(), x, reference)
    compare_steps(errors, "y of a session opened after one that has seen NaN was closed", y, exact, reference)


def _poisonings(reference: ReferenceTrajectories) -> list[tuple[str, int, float, str]]:
    """Array, row and value of each turn, and what clears it: every row of every array of floats, and the last row of x
    with every value. Then the last row of every array, where a state is set."""
    rows = reference.trial.batch
    states = [name for name, array in reference.start.items() if array.dtype.kind == "f"]
    names = ["x", *states] if reference.is_stream else ["x"]
    turns = [
        (name, row, POISONS[(row + turn) % len(POISONS)]) for turn, name in enumerate(names) for row in range(rows)
    ]
    every = dict.fromkeys([*turns, *(("x", rows - 1, poison) for poison in POISONS)])
    after = [(name, rows - 1, POISONS[turn % len(POISONS)]) for turn, name in enumerate(names)]
    return [*((*turn, RESET) for turn in every), *((*turn, STATE) for turn in after if reference.is_stream)]


def _with_row(array: np.ndarray, row: int, poison: float) -> np.ndarray:
    """A copy of x or of a state, [any, batch, size], with one value of this row replaced in its first part."""
    poisoned = array.copy()
    poisoned[0, row, row % array.shape[-1]] = poison
    return poisoned


def _threads(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Two streams at once. Each begins in this thread, goes on in one of its own, and ends in this one again.

    Then each makes calls of both paths over and over, and sets and reads its state: threads seldom take turns in the
    middle of one short call.
    """
    feeds = [reference.ring[:FEW_CALLS], reference.ring[FEW_CALLS : 2 * FEW_CALLS]]
    alone = [known_outputs(open_session, reference), _outputs_alone(open_session, feeds[1])]
    alone_passes = [_passes_alone(open_session, feed, reference) for feed in feeds]
    sessions, barrier = [open_session() for _ in feeds], Barrier(len(feeds))
    planned = planned_turns(reference.trial.limits, THREAD_CALLS, THREAD_CALLS_ENOUGH)
    budgets = [Budget("calls in each of two threads", planned, THREAD_CALLS_LEAST, THREADS_S) for _ in feeds]
    together = [_outputs(session, feed[:1]) for session, feed in zip(sessions, feeds, strict=True)]
    with _switching_often(), ThreadPoolExecutor(len(feeds)) as pool:
        went_on = list(pool.map(partial(_outputs, barrier=barrier), sessions, [feed[1:-1] for feed in feeds]))
        ended = [_outputs(session, feed[-1:]) for session, feed in zip(sessions, feeds, strict=True)]
        bound = [session.bind(feed) for session, feed in zip(sessions, feeds, strict=True)]
        streams = [partial(_pass, *each, reference) for each in zip(sessions, bound, feeds, strict=True)]
        repeated = list(pool.map(partial(_repeated, barrier=barrier), streams, alone_passes, budgets))
    pairs = [
        pair
        for began, *others, expected in zip(together, went_on, ended, alone, strict=True)
        for pair in output_pairs("of two streams in two threads, y of call", sum(others, began), expected)
    ]
    for session in sessions:
        open_session.close(session)
    pairs += _bound_elsewhere(open_session, reference)
    pairs += _opened_elsewhere(open_session, feeds[0], alone[0])
    pairs += _in_several_threads(open_session, feeds[0], alone[0])
    return min(budgets, key=lambda budget: budget.done).result(same_bits([*pairs, *chain(*repeated)]))


def _bound_elsewhere(
    open_session: OpenSession, reference: ReferenceTrajectories
) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Bound calls that go on in another thread than the one that bound the ring and began."""
    there, expected = open_session().bind(reference.ring), known_bound_outputs(open_session, reference)
    began = first_bound_outputs(there)
    with ThreadPoolExecutor(1) as pool:
        went_on = pool.submit(first_bound_outputs, there).result()
    return output_pairs("that goes on in another thread, y of bound call", [*began, *went_on], expected)


def _opened_elsewhere(
    open_session: OpenSession, feed: Sequence[Arrays], alone: Sequence[np.ndarray]
) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """A session that is opened, used and closed in another thread, and one of this thread that goes on."""
    here = open_session()
    began = _outputs(here, feed[:1])

    def elsewhere() -> list[np.ndarray]:
        session = open_session()
        outputs = _outputs(session, feed)
        open_session.close(session)
        return outputs

    with ThreadPoolExecutor(1) as pool:
        there = pool.submit(elsewhere).result()
    went_on = [*began, *_outputs(here, feed[1:])]
    return [
        *output_pairs("in a session of another thread, y of call", there, list(alone)),
        *output_pairs("with a session closed in another thread, y of call", went_on, list(alone)),
    ]


def _in_several_threads(
    open_session: OpenSession, feed: Sequence[Arrays], alone: Sequence[np.ndarray]
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """AT_ONCE sessions, each in a thread of its own, which call at once."""
    sessions, barrier = [open_session() for _ in range(AT_ONCE)], Barrier(AT_ONCE)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outputs = list(pool.map(partial(_outputs, feed=feed, barrier=barrier), sessions))
    for got in outputs:
        yield from output_pairs(f"of {AT_ONCE} streams in as many threads, y of call", got, list(alone))


def _pass(
    session: Session, bound: Bound, feed: Sequence[Arrays], reference: ReferenceTrajectories, kind: int
) -> Iterator[Named]:
    """What a pass over the feed gives, one after the other: public calls from zeros and one with a rest, or bound calls
    from `start`; then the state."""
    if kind == BOUND_PASS and reference.is_stream:
        session.set_state(reference.start)
    else:
        session.reset()
    for chunk in feed:
        yield ("y of a bound call", called(bound)) if kind == BOUND_PASS else ("y", session.step(chunk)["y"])
    if reference.is_stream and kind == PUBLIC_PASS:
        yield "y of a call of one step", session.step({"x": feed[0]["x"][:1]})["y"]
    yield from ((f"state {name}", array) for name, array in session.get_state().items())


def _outputs_alone(open_session: OpenSession, feed: Sequence[Arrays]) -> list[np.ndarray]:
    session = open_session()
    outputs = [y.copy() for y in _outputs(session, feed)]
    open_session.close(session)
    return outputs


def _passes_alone(
    open_session: OpenSession, feed: Sequence[Arrays], reference: ReferenceTrajectories
) -> list[list[Named]]:
    session = open_session()
    bound = session.bind(feed)
    passes = [
        [(what, array.copy()) for what, array in _pass(session, bound, feed, reference, kind)]
        for kind in (PUBLIC_PASS, BOUND_PASS)
    ]
    open_session.close(session)
    return passes


def _repeated(
    begin: Callable[[int], Iterator[Named]], alone: Sequence[Sequence[Named]], budget: Budget, barrier: Barrier
) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Make passes of either kind in turn. Gives the first one that differs from `alone`, or the last one."""
    pairs: list[tuple[str, np.ndarray, np.ndarray]] = []
    passes = cycle((PUBLIC_PASS, BOUND_PASS))
    barrier.wait()
    running: Iterator[Named] = iter(())
    expected: Iterator[Named] = iter(())
    for call in budget:
        if (got := next(running, None)) is None:
            if same_bits(pairs).verdict == "fail":
                break
            kind, pairs = next(passes), []
            running, expected = begin(kind), iter(alone[kind])
            got = next(running)
        what, array = got
        pairs.append((f"while another thread runs, {what} at turn {call}", array, next(expected)[1]))
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


def _beginning(reference: ReferenceTrajectories, *, from_start: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The first inputs, and the reference's y from zeros or `start`: a few chunks; with state `none`, one chunk."""
    if not reference.is_stream:
        return reference.ring[0]["x"], reference.ring_trajectory.y[0]
    steps = min(FEW_CALLS * reference.trial.strategy.chunk, reference.trial.steps)
    run = reference.from_start() if from_start else reference.from_zeros()
    return reference.x[:steps], run.y[:steps]


EDGE_CASES = (
    Check("lengths", "Beyond a row's length y is zero, and whatever x is there changes nothing.", _lengths),
    Check("batch", "A row of a batch does not depend on the others, nor on its place.", _batch, compares=True),
    Check("nan", "What is not a number stays in its row, and a reset clears it.", _nan, compares=True),
    Check("threads", "Two sessions used by two threads at once give what each gives alone.", _threads),
)
