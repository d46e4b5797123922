"""The core checks: values, splits, state, isolation, and the path that is timed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from rnnbench.conformance.check import FEW, Check, Open, bound_few, compare_steps, few, pairs, stream, worst
from rnnbench.conformance.oracle import Oracle
from rnnbench.conformance.timed import Timed
from rnnbench.conformance.tolerance import Errors, same_bits
from rnnbench.results.record import CheckResult

RANDOM_SPLITS, MOST_PIECES = 2, 8


def _values(open_session: Open, oracle: Oracle) -> CheckResult:
    errors, session = Errors(), open_session()
    if not oracle.streams:
        for index, chunk in enumerate(oracle.ring):
            compare_steps(errors, f"y of chunk {index}", session.step(chunk)["y"], oracle.of_ring.y[index], oracle)
        return errors.verdict()
    exact = oracle.from_zeros()
    compare_steps(errors, "y", stream(session, oracle), exact.y, oracle)
    for name, array in session.get_state().items():
        errors.add(f"state {name} at the end", array, exact.final[name], oracle.rounding_at(oracle.trial.steps))
    return errors.verdict()


def _chunks(open_session: Open, oracle: Oracle) -> CheckResult:
    errors = Errors()
    for sizes in _splits(oracle.trial.steps, oracle.trial.strategy.chunk, oracle.trial.seed):
        session = open_session()
        parts = np.split(oracle.x, np.cumsum(sizes)[:-1])
        y = np.concatenate([session.step({"x": part})["y"] for part in parts])
        compare_steps(errors, f"y in {len(sizes)} pieces of {sizes[0]}, …", y, oracle.from_zeros().y, oracle)
    # One call that is longer than two chunks, and so perhaps than the whole stream.
    session, length = open_session(), 2 * oracle.trial.strategy.chunk + 1
    session.set_state(oracle.start)
    y = session.step({"x": np.concatenate([chunk["x"] for chunk in oracle.ring])[:length]})["y"]
    compare_steps(
        errors, f"y of one call of {length} steps", y, np.concatenate(list(oracle.of_ring.y))[:length], oracle
    )
    return errors.verdict()


def _start(open_session: Open, oracle: Oracle) -> CheckResult:
    errors, session = Errors(), open_session()
    session.set_state(oracle.start)
    compare_steps(errors, "y", stream(session, oracle), oracle.from_start().y, oracle)
    return errors.verdict()


def _reset(open_session: Open, oracle: Oracle) -> CheckResult:
    session = open_session()
    first = few(session, oracle)
    session.reset()
    return same_bits(pairs("after reset, y of call", few(session, oracle), first))


def _repeat(open_session: Open, oracle: Oracle) -> CheckResult:
    session, runs = open_session(), []
    for _ in range(2):
        if oracle.streams:
            session.set_state(oracle.start)
        runs.append(few(session, oracle))
    return same_bits(pairs("the second time, y of call", runs[1], runs[0]))


def _isolation(open_session: Open, oracle: Oracle) -> CheckResult:
    alone, bound_alone = few(open_session(), oracle), bound_few(open_session().bind(oracle.ring))
    one, other = open_session(), open_session()
    if oracle.streams:
        other.set_state(oracle.start)
    interleaved = []
    for chunk in oracle.ring[:FEW]:
        interleaved.append(one.step(chunk)["y"])
        other.step(oracle.ring[-1])
    one.close()
    beside = open_session().bind(oracle.ring[::-1])
    return same_bits(
        [
            *pairs("with another session between the calls, y of call", interleaved, alone),
            *pairs("in a session opened after another was closed, y of call", few(open_session(), oracle), alone),
            *pairs(
                "with another session's bound calls between them, y of bound call",
                bound_few(open_session().bind(oracle.ring), beside),
                bound_alone,
            ),
        ]
    )


def _state(open_session: Open, oracle: Oracle) -> CheckResult:
    session, fresh, errors = open_session(), open_session(), Errors()
    steps = min(FEW * oracle.trial.strategy.chunk, oracle.trial.steps)
    session.step({"x": oracle.x[:steps]})
    taken = session.get_state()
    exact = oracle.from_zeros()
    for name, array in taken.items():
        expected = exact.final[name] if exact.states is None else exact.states[name][steps - 1]
        errors.add(f"state {name} after {steps} steps", array, expected, oracle.rounding_at(steps))
    if (verdict := errors.verdict()).verdict == "fail":
        return verdict
    fresh.set_state(taken)
    again = fresh.get_state()
    carried = same_bits(
        [
            *((f"state {name} put in and read back", again[name], taken[name]) for name in taken),
            *pairs("from the state carried over, y of call", few(fresh, oracle), few(session, oracle)),
        ]
    )
    return carried if carried.verdict == "fail" else verdict


def _bound(open_session: Open, oracle: Oracle) -> CheckResult:
    timed = Timed(open_session(), oracle)
    timed.start()
    verdict = timed.verify()
    return verdict if verdict.verdict == "fail" else worst(verdict, timed.verify_counts())


def _splits(steps: int, chunk: int, seed: int) -> Iterator[list[int]]:
    """All at once; calls just longer than a chunk, whose every rest is ragged; and two random splits."""
    yield [steps]
    if chunk + 1 < steps:
        whole, rest = divmod(steps, chunk + 1)
        yield [chunk + 1] * whole + [rest] * (rest > 0)
    generator = np.random.default_rng([seed, chunk])
    for _ in range(RANDOM_SPLITS if steps > 1 else 0):
        pieces = int(generator.integers(2, min(steps, MOST_PIECES) + 1))
        cuts = sorted(int(cut) for cut in generator.choice(np.arange(1, steps), pieces - 1, replace=False))
        yield [after - before for before, after in pairwise([0, *cuts, steps])]


CORE = (
    Check("values", "Every output and the final state are the reference's.", _values),
    Check("chunks", "Any split of the stream gives the same numbers, a ragged rest included.", _chunks, True),
    Check("start", "A stream may start from a state that is not zero.", _start, True),
    Check("reset", "After a reset the first run comes again, to the bit.", _reset),
    Check("repeat", "The same calls from the same state give the same bits.", _repeat),
    Check("isolation", "Two open sessions do not touch each other, nor a closed one the next.", _isolation),
    Check("state", "A state is the reference's, and taken out of one session goes on in another.", _state, True),
    Check("bound", "The path that is timed computes the reference over a ring of distinct chunks.", _bound),
)
