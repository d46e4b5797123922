"""Checks at the edges: rows of a batch, what is not a number, inputs huge and tiny, two threads, refused calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Barrier, BrokenBarrierError

import numpy as np

from rnnbench.backends.base import Arrays, Session
from rnnbench.conformance.check import FEW, Check, Open, compare_steps, few, pairs, worst
from rnnbench.conformance.oracle import Oracle
from rnnbench.conformance.tolerance import Errors, same_bits
from rnnbench.results.record import CheckResult

HUGE, TINY = 1e4, 1e-40
"""Scales of inputs: gates pinned at 0 and 1 by one; subnormal in float32 by the other."""
PINNED = 100.0
"""A gate's input at which it is 1, or 0, in every dtype, whatever the recurrent part adds."""
KEEPING_GATE = {"lstm": 1, "gru": 1}
"""The gate that decides how much of the state stays, in PyTorch's order: an LSTM's forget, a GRU's update."""
Rows = np.ndarray | slice
ALL = slice(None)
POISONS = (np.nan, np.inf, -np.inf)


def _batch(open_session: Open, oracle: Oracle) -> CheckResult:
    rows = oracle.trial.batch
    if rows == 1:
        return CheckResult(verdict="not-applicable", detail="a batch of one row")
    errors, (x, exact) = Errors(), _beginning(oracle, from_start=True)
    generator = np.random.default_rng([oracle.trial.seed, rows])

    def fed(x: np.ndarray, state: dict[str, np.ndarray], order: Rows = ALL) -> np.ndarray:
        session = open_session()
        if oracle.streams:
            session.set_state(state)
        return _fed(session, x, oracle, order)

    for order in (np.arange(rows)[::-1], np.roll(np.arange(rows), 1), generator.permutation(rows)):
        y = fed(x[:, order], {name: array[:, order] for name, array in oracle.start.items()}, order)
        compare_steps(errors, f"y with the rows in the order {_listed(order)}", y, exact[:, order], oracle)
    for row in sorted({0, rows - 1, int(generator.integers(rows))}):
        only = np.arange(rows) == row
        for what, scale in (("alone, the others zero", 0), ("beside others", -2)):
            others = np.where(only[:, None], x, scale * x[::-1]).astype(x.dtype)
            state = {n: np.where(only[:, None], a, scale * a).astype(a.dtype) for n, a in oracle.start.items()}
            compare_steps(errors, f"y of row {row} {what}", fed(others, state)[:, [row]], exact[:, [row]], oracle)
    return errors.verdict()


def _listed(order: np.ndarray) -> str:
    return f"{', '.join(str(row) for row in order[:4])}{', …' if len(order) > 4 else ''}"


def _lengths(open_session: Open, oracle: Oracle) -> CheckResult:
    if oracle.lengths is None:
        return CheckResult(verdict="not-applicable", detail="every row has all steps of a call")
    plain = few(open_session(), oracle)
    session, others, ends = open_session(), [], []
    for index, chunk in enumerate(oracle.ring[:FEW]):
        beyond = np.arange(len(chunk["x"]))[:, None] >= chunk["lengths"]
        x = chunk["x"].copy()
        x[beyond] = POISONS[index]
        others.append(session.step({**chunk, "x": x})["y"])
        ends.append((f"beyond the lengths, y of call {index}", plain[index][beyond], plain[index][beyond] * 0))
    return same_bits([*ends, *pairs("with no numbers beyond the lengths, y of call", others, plain)])


def _nan(open_session: Open, oracle: Oracle) -> CheckResult:
    errors, session, (x, exact) = Errors(), open_session(), _beginning(oracle)
    for poison in POISONS:
        poisoned = x.copy()
        poisoned[0, -1, 0] = poison
        session.reset()
        y = _fed(session, poisoned, oracle)
        if oracle.trial.batch > 1:
            compare_steps(errors, f"y of rows beside a {poison}", y[:, :-1], exact[:, :-1], oracle)
        session.reset()
        compare_steps(errors, f"y after a {poison} and a reset", _fed(session, x, oracle), exact, oracle)
    if oracle.streams:
        session.set_state({name: _poisoned_state(array) for name, array in oracle.start.items()})
        y, (_, from_start) = _fed(session, x, oracle), _beginning(oracle, from_start=True)
        if oracle.trial.batch > 1:
            compare_steps(errors, "y of rows beside a state of nan", y[:, :-1], from_start[:, :-1], oracle)
        session.reset()
        compare_steps(errors, "y after a state of nan and a reset", _fed(session, x, oracle), exact, oracle)
    return errors.verdict()


def _poisoned_state(array: np.ndarray) -> np.ndarray:
    """The state with the last row of its batch not a number."""
    poisoned = array.copy()
    poisoned[:, -1] = np.nan
    return poisoned


def _scaled(scale: float, open_session: Open, oracle: Oracle) -> CheckResult:
    errors, scaled = Errors(), oracle.scaled(scale)
    y = _fed(open_session(), scaled.x, oracle)
    for step, (got, exact, expected) in enumerate(zip(y, scaled.y, scaled.rounding, strict=True)):
        errors.add(f"y at step {step} of inputs scaled by {scale:g}", got, exact, float(expected))
    return errors.verdict()


def _saturation(open_session: Open, oracle: Oracle) -> CheckResult:
    verdict = _scaled(HUGE, open_session, oracle)
    if verdict.verdict == "fail" or oracle.trial.model.cell not in KEEPING_GATE:
        return verdict
    return worst(verdict, _pinned(open_session, oracle))


def _pinned(open_session: Open, oracle: Oracle) -> CheckResult:
    """A stream that holds one unit's forget gate (a GRU's update gate) at 1 from step to step, then one at 0.

    At 1 a cell adds up all that comes in, and forgets nothing; at 0 it must not remember the state it started from.
    """
    errors = Errors()
    steps = min(FEW * oracle.trial.strategy.chunk, oracle.trial.steps) if oracle.streams else len(oracle.ring[0]["x"])
    state = oracle.start if oracle.streams else None
    for gate, preactivation in ((1, PINNED), (0, -PINNED)):
        x = np.broadcast_to(_driving(oracle, preactivation), (steps, oracle.trial.batch, oracle.trial.model.input))
        expected = oracle.answer(f"pinned at {gate} for {steps}, {oracle.streams}", x, state)
        session = open_session()
        if state is not None:
            session.set_state(state)
        y = _fed(session, x, oracle)
        for step, (got, exact, rounding) in enumerate(zip(y, expected.y, expected.rounding, strict=True)):
            errors.add(f"y at step {step} with forget gates pinned at {gate}", got, exact, float(rounding))
    return errors.verdict()


def _driving(oracle: Oracle, preactivation: float) -> np.ndarray:
    """An x [batch, input] that puts, in each row of the batch, one unit's keeping gate at `preactivation`."""
    model = oracle.trial.model
    first = KEEPING_GATE[model.cell] * model.hidden
    units = first + np.arange(oracle.trial.batch) % model.hidden
    towards = oracle.weights.layers[0].w_ih[units].astype(np.float64)
    x = preactivation * towards / (towards**2).sum(axis=1, keepdims=True)
    bounded: np.ndarray = np.clip(x, -HUGE, HUGE).astype(oracle.x.dtype)
    return bounded


def _denormals(open_session: Open, oracle: Oracle) -> CheckResult:
    if oracle.trial.model.cell == "counter":
        return CheckResult(verdict="not-applicable", detail="a counter counts whole numbers")
    return _scaled(TINY, open_session, oracle)


def _threads(open_session: Open, oracle: Oracle) -> CheckResult:
    feeds = [oracle.ring[:FEW], oracle.ring[FEW : 2 * FEW]]
    alone = [_outputs(open_session(), feed) for feed in feeds]
    sessions, meeting = [open_session() for _ in feeds], Barrier(len(feeds))
    with ThreadPoolExecutor(len(feeds)) as pool:
        together = list(pool.map(partial(_outputs, meeting=meeting), sessions, feeds))
    return same_bits(
        [
            pair
            for got, expected in zip(together, alone, strict=True)
            for pair in pairs("beside another thread, y of call", got, expected)
        ]
    )


def _outputs(session: Session, feed: Sequence[Arrays], meeting: Barrier | None = None) -> list[np.ndarray]:
    """y of each call. Calls begin together with those of whoever else comes to the meeting, while all still come."""
    got = []
    for chunk in feed:
        if meeting is not None:
            with suppress(BrokenBarrierError):
                meeting.wait()
        try:
            got.append(session.step(chunk)["y"])
        except Exception:
            if meeting is not None:
                meeting.abort()
            raise
    return got


def _refusal(open_session: Open, oracle: Oracle) -> CheckResult:
    session = open_session()
    few(session, oracle)
    before, first = session.get_state(), oracle.ring[0]
    for what, call in _refused(session, oracle):
        try:
            call()
        except Exception:  # noqa: BLE001 whichever exception it is, refusing is what is asked for
            continue
        return CheckResult(verdict="fail", detail=f"{what} was accepted")
    after = session.get_state()
    unchanged = [(f"after refused calls, state {name}", after[name], before[name]) for name in before]
    fresh = open_session()
    if oracle.streams:
        fresh.set_state(before)
    return same_bits([*unchanged, ("after refused calls, y", session.step(first)["y"], fresh.step(first)["y"])])


def _refused(session: Session, oracle: Oracle) -> Iterator[tuple[str, Callable[[], object]]]:
    """Calls that no session may accept, each with its name."""
    x = oracle.ring[0]["x"]
    other = "float64" if x.dtype != np.float64 else "float32"
    longer = np.concatenate([x, x[:1]])
    beside = {name: array for name, array in oracle.ring[0].items() if name != "x"}
    inputs: dict[str, Arrays] = {
        "an x of rank 2": {**beside, "x": x[:, 0]},
        "an x of zero steps": {**beside, "x": x[:0]},
        "an x with another batch": {**beside, "x": np.repeat(x, 2, axis=1)},
        "an x with another input size": {**beside, "x": np.repeat(x, 2, axis=2)},
        f"an x of {other}": {**beside, "x": x.astype(other)},
        "an x in the other byte order": {**beside, "x": x.astype(x.dtype.newbyteorder())},
        "an x by another name": {**beside, "input": x},
        "an x beside an array of another name": {**beside, "x": x, "z": x},
        "no x": {},
    }
    if not oracle.streams:
        inputs["an x one step too long"] = {**beside, "x": longer}
    for lengths in beside.values():
        inputs |= {what: {"x": x, "lengths": wrong} for what, wrong in _misfits(lengths, len(x)).items()}
        inputs["no lengths"] = {"x": x}
    for what, given in inputs.items():
        yield what, partial(session.step, given)
    if oracle.streams:
        for name, array in oracle.start.items():
            for fault, wrong in _misshapen(array, other).items():
                yield f"a state {name} {fault}", partial(session.set_state, {**oracle.start, name: wrong})
            missing = {other: array for other, array in oracle.start.items() if other != name}
            yield f"a state without {name}", partial(session.set_state, missing)
        yield "a state with one array too many", partial(session.set_state, {**oracle.start, "z": x})
    yield "an empty ring", partial(session.bind, [])
    yield "a ring of chunks one step too long", partial(session.bind, [{**beside, "x": longer}])
    yield f"a ring of {other}", partial(session.bind, [{**beside, "x": x.astype(other)}])


def _misfits(lengths: np.ndarray, steps: int) -> dict[str, np.ndarray]:
    return {
        "a length of zero": np.where(np.arange(len(lengths)) == 0, 0, lengths).astype(lengths.dtype),
        "a length beyond the call": np.where(np.arange(len(lengths)) == 0, steps + 1, lengths).astype(lengths.dtype),
        "lengths of int64": lengths.astype(np.int64),
        "lengths of another batch": np.repeat(lengths, 2),
    }


def _misshapen(array: np.ndarray, dtype: str) -> dict[str, np.ndarray]:
    return {
        "with another batch": np.repeat(array, 2, axis=1),
        "of another size": np.repeat(array, 2, axis=2),
        "with another number of layers": np.repeat(array, 2, axis=0),
        f"of {dtype}": array.astype(dtype),
        "of rank 2": array[0],
    }


def _beginning(oracle: Oracle, *, from_start: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Inputs with the reference's y, from zeros or `start`: a few chunks of the stream; with state `none` one chunk."""
    if not oracle.streams:
        return oracle.ring[0]["x"], oracle.of_ring.y[0]
    steps = min(FEW * oracle.trial.strategy.chunk, oracle.trial.steps)
    run = oracle.from_start() if from_start else oracle.from_zeros()
    return oracle.x[:steps], run.y[:steps]


def _fed(session: Session, x: np.ndarray, oracle: Oracle, order: Rows = ALL) -> np.ndarray:
    """y of x in calls of a chunk, with the lengths of the ring's first chunk where rows have any, in that order."""
    chunk, beside = oracle.trial.strategy.chunk, {n: a[order] for n, a in oracle.ring[0].items() if n != "x"}
    return np.concatenate([session.step({"x": x[at : at + chunk], **beside})["y"] for at in range(0, len(x), chunk)])


ROBUSTNESS = (
    Check("lengths", "Beyond a row's length y is zero, and whatever x is there changes nothing.", _lengths),
    Check("batch", "A row of a batch does not depend on the others, nor on its place.", _batch),
    Check("nan", "What is not a number stays in its row, and a reset clears it.", _nan),
    Check("saturation", "Inputs of ten thousand give the reference's numbers.", _saturation),
    Check("denormals", "Inputs too small to be normal numbers give the reference's numbers.", _denormals),
    Check("threads", "Two sessions used by two threads at once give what each gives alone.", _threads),
    Check("refusal", "Wrong arrays are refused, and a refused call changes nothing.", _refusal),
)
