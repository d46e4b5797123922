"""Checks of edge cases: rows of a batch, ragged lengths, NaN, huge and tiny inputs, two threads, wrong arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Barrier, BrokenBarrierError

import numpy as np

from rnnbench.backends import Arrays, Session
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import FEW_CALLS, compare_steps, compare_with_run, first_outputs, output_pairs
from rnnbench.conformance.tolerance import Errors, same_bits, worst
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult

HUGE, TINY = 1e4, 1e-40
"""Scales of inputs. HUGE drives gates to 0 and 1; TINY makes inputs subnormal in float32."""
PINNED = 100.0
"""Input of a gate at which it is 1 (or 0, if negative) in every dtype, whatever the recurrent part adds."""
KEEPING_GATE = {"lstm": 1, "gru": 1}
"""Index of the gate that decides how much of the state stays: an LSTM's forget gate, a GRU's update gate."""
Rows = np.ndarray | slice
ALL = slice(None)
POISONS = (np.nan, np.inf, -np.inf)


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
        return _fed(session, x, reference, order)

    for order in (np.arange(rows)[::-1], np.roll(np.arange(rows), 1), generator.permutation(rows)):
        y = fed(x[:, order], {name: array[:, order] for name, array in reference.start.items()}, order)
        compare_steps(errors, f"y with the rows in the order {_listed(order)}", y, exact[:, order], reference)
    for row in sorted({0, rows - 1, int(generator.integers(rows))}):
        only = np.arange(rows) == row
        for what, scale in (("alone, the others zero", 0), ("beside others", -2)):
            others = np.where(only[:, None], x, scale * x[::-1]).astype(x.dtype)
            state = {n: np.where(only[:, None], a, scale * a).astype(a.dtype) for n, a in reference.start.items()}
            compare_steps(errors, f"y of row {row} {what}", fed(others, state)[:, [row]], exact[:, [row]], reference)
    return errors.verdict()


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
    errors, session, (x, exact) = Errors(), open_session(), _beginning(reference)
    for poison in POISONS:
        poisoned = x.copy()
        poisoned[0, -1, 0] = poison
        session.reset()
        y = _fed(session, poisoned, reference)
        if reference.trial.batch > 1:
            compare_steps(errors, f"y of the rows without the {poison}", y[:, :-1], exact[:, :-1], reference)
        session.reset()
        compare_steps(errors, f"y after a {poison} and a reset", _fed(session, x, reference), exact, reference)
    if reference.is_stream:
        session.set_state({name: _poisoned_state(array) for name, array in reference.start.items()})
        y, (_, from_start) = _fed(session, x, reference), _beginning(reference, from_start=True)
        if reference.trial.batch > 1:
            compare_steps(errors, "y of the rows without a state of nan", y[:, :-1], from_start[:, :-1], reference)
        session.reset()
        compare_steps(errors, "y after a state of nan and a reset", _fed(session, x, reference), exact, reference)
    return errors.verdict()


def _poisoned_state(array: np.ndarray) -> np.ndarray:
    """The state with the last row of its batch not a number."""
    poisoned = array.copy()
    poisoned[:, -1] = np.nan
    return poisoned


def _scaled(scale: float, open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    errors, scaled = Errors(), reference.scaled(scale)
    compare_with_run(errors, f"of inputs scaled by {scale:g}", _fed(open_session(), scaled.x, reference), scaled)
    return errors.verdict()


def _saturation(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    verdict = _scaled(HUGE, open_session, reference)
    if verdict.verdict == "fail" or reference.trial.model.cell not in KEEPING_GATE:
        return verdict
    return worst(verdict, _pinned(open_session, reference))


def _pinned(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Streams that hold one unit's forget gate (a GRU's update gate) at 1 from step to step, and then at 0.

    At 1 a cell adds up all of its inputs and forgets nothing. At 0 it must not remember the state it started from.
    """
    errors = Errors()
    steps = (
        min(FEW_CALLS * reference.trial.strategy.chunk, reference.trial.steps)
        if reference.is_stream
        else len(reference.ring[0]["x"])
    )
    state = reference.start if reference.is_stream else None
    for gate, preactivation in ((1, PINNED), (0, -PINNED)):
        x = np.broadcast_to(
            _driving(reference, preactivation), (steps, reference.trial.batch, reference.trial.model.input)
        )
        expected = reference.run(f"pinned at {gate} for {steps}, {reference.is_stream}", x, state)
        session = open_session()
        if state is not None:
            session.set_state(state)
        compare_with_run(errors, f"with forget gates pinned at {gate}", _fed(session, x, reference), expected)
    return errors.verdict()


def _driving(reference: ReferenceTrajectories, preactivation: float) -> np.ndarray:
    """An x [batch, input] that gives one unit's keeping gate, in each row of the batch, the input `preactivation`."""
    model = reference.trial.model
    first = KEEPING_GATE[model.cell] * model.hidden
    units = first + np.arange(reference.trial.batch) % model.hidden
    towards = reference.weights.layers[0].w_ih[units].astype(np.float64)
    x = preactivation * towards / (towards**2).sum(axis=1, keepdims=True)
    bounded: np.ndarray = np.clip(x, -HUGE, HUGE).astype(reference.x.dtype)
    return bounded


def _denormals(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    if reference.trial.model.cell == "counter":
        return CheckResult(verdict="not-applicable", detail="a counter counts whole numbers")
    return _scaled(TINY, open_session, reference)


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
    inputs: dict[str, Arrays] = {
        "an x of rank 2": {**other_inputs, "x": x[:, 0]},
        "an x of zero steps": {**other_inputs, "x": x[:0]},
        "an x with another batch": {**other_inputs, "x": np.repeat(x, 2, axis=1)},
        "an x with another input size": {**other_inputs, "x": np.repeat(x, 2, axis=2)},
        f"an x of {other}": {**other_inputs, "x": x.astype(other)},
        "an x in the other byte order": {**other_inputs, "x": x.astype(x.dtype.newbyteorder())},
        "an x by another name": {**other_inputs, "input": x},
        "an x with an array of another name": {**other_inputs, "x": x, "z": x},
        "no x": {},
    }
    if not reference.is_stream:
        inputs["an x one step too long"] = {**other_inputs, "x": longer}
    for lengths in other_inputs.values():
        inputs |= {what: {"x": x, "lengths": wrong} for what, wrong in _wrong_lengths(lengths, len(x)).items()}
        inputs["no lengths"] = {"x": x}
    for what, given in inputs.items():
        yield what, partial(session.step, given)
    if reference.is_stream:
        for name, array in reference.start.items():
            for fault, wrong in _wrong_states(array, other).items():
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
        "of rank 2": array[0],
    }


def _beginning(reference: ReferenceTrajectories, *, from_start: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The first inputs, and the reference's y from zeros or `start`: a few chunks; with state `none`, one chunk."""
    if not reference.is_stream:
        return reference.ring[0]["x"], reference.ring_trajectory.y[0]
    steps = min(FEW_CALLS * reference.trial.strategy.chunk, reference.trial.steps)
    run = reference.from_start() if from_start else reference.from_zeros()
    return reference.x[:steps], run.y[:steps]


def _fed(session: Session, x: np.ndarray, reference: ReferenceTrajectories, order: Rows = ALL) -> np.ndarray:
    """y of x in calls of a chunk. Where rows have lengths, they are those of the ring's first chunk, in this order."""
    chunk, lengths = reference.trial.strategy.chunk, {n: a[order] for n, a in reference.ring[0].items() if n != "x"}
    return np.concatenate([session.step({"x": x[at : at + chunk], **lengths})["y"] for at in range(0, len(x), chunk)])


EDGE_CASES = (
    Check("lengths", "Beyond a row's length y is zero, and whatever x is there changes nothing.", _lengths),
    Check("batch", "A row of a batch does not depend on the others, nor on its place.", _batch),
    Check("nan", "What is not a number stays in its row, and a reset clears it.", _nan),
    Check("saturation", "Inputs of ten thousand give the reference's numbers.", _saturation),
    Check("denormals", "Inputs too small to be normal numbers give the reference's numbers.", _denormals),
    Check("threads", "Two sessions used by two threads at once give what each gives alone.", _threads),
    Check("refusal", "Wrong arrays are refused, and a refused call changes nothing.", _refusal),
)
