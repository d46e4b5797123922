"""Checks of values and states: outputs, splits of the stream, start, reset, repetition, isolation, the timed path."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from rnnbench.backends import Session
from rnnbench.cases import Trial
from rnnbench.conformance.budget import FIRST, Budget, drawn_for
from rnnbench.conformance.coarse_states import coarse_state
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import (
    FEW_CALLS,
    called,
    called_publicly,
    compare_expected,
    compare_steps,
    expected_outputs,
    first_bound_outputs,
    first_outputs,
    output_pairs,
    stream_outputs,
    undisturbed_bound_outputs,
    undisturbed_outputs,
)
from rnnbench.conformance.long_runs import rounding_after, settled_start
from rnnbench.conformance.ring_trajectory import RING
from rnnbench.conformance.timed_path import TimedPath
from rnnbench.conformance.tolerance import Errors, Pair, same_bits, worst
from rnnbench.conformance.trajectories import LONG_RING, ReferenceTrajectories
from rnnbench.results import CheckResult
from rnnbench.rnn import Trajectory

RANDOM_SPLITS, MOST_PIECES = 2, 8
LONGEST_RISING = 8
"""Steps of the longest call in a split whose calls are each a step longer than the last. Vectors have as many lanes or
fewer."""
SEVERAL_CHUNKS = ((3, 4, 5), (7, 6))
"""Whole chunks per public call, in two streams. Random splits seldom have such calls. Each stream has at most 16."""
CHUNKS_AND_REST = 5, 2
"""Chunks of a call, and the most steps of its rest. The second step shows whether the rest continues after the chunks.
"""
IN_A_ROW, LONG_CALLS, LONGEST_REST = 5 * RING, (50, 99, 200, 401, 803), 3
"""Calls of one step, and of one chunk, without a call of another length between; and calls of so many steps, one for
each doubling of a length. Their rests have at most LONGEST_REST steps."""
FEW_IN_A_ROW = FIRST - 4
"""Calls of one chunk before the long ones. They are an odd number, so that a bound call follows each of two buffers."""
LONG_S = 0.02
"""Seconds for the calls in a row of one step, for those of one chunk, and for the long ones, two of which are always
made: enough for all of a program that takes 20 µs per call."""
SMALL = 1 / 128
"""Factor of a small state that a reset must forget. It is a power of two, so every type has the products."""
SIZES, EQUAL_BEFORE, IN_TURN_S = (1, 16, 2, 7), 7, 0.05
"""Steps of calls that follow each other in every order, with those of a chunk; equal calls before one of other steps;
and the most seconds for all of these."""
LONGEST_DRAWN, DRAWN_S = 32, 0.02
"""The longest of the calls of every length, which come in an order drawn from the seed, and the seconds for them. A
program for which there is no time to make all of them makes others in a trial of another seed, chunk or target."""


def _values(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    errors, session = Errors(), open_session()
    if reference.expected is not None:
        compare_expected(errors, expected_outputs(open_session(), reference), reference)
    if not reference.is_stream:
        for index, (chunk, exact_y) in enumerate(zip(reference.ring, reference.ring_trajectory.y, strict=True)):
            compare_steps(errors, f"y of chunk {index}", session.step(chunk)["y"], exact_y, reference)
        return errors.verdict()
    exact, beside, two = reference.from_zeros(), open_session(), 2 * reference.trial.strategy.chunk
    begun = beside.step(reference.ring[0])["y"]
    compare_steps(errors, "y", stream_outputs(session, reference), exact.y, reference)
    if len(exact.y) >= two:  # The stream's rest was the first of all, so the program of one step was just opened.
        y = np.concatenate([begun, beside.step(reference.ring[1])["y"]])
        compare_steps(errors, "y of a stream that goes on beside it", y, exact.y[:two], reference)
    for name, array in session.get_state().items():
        rounding = reference.rounding_at(reference.trial.steps - 1, name)
        errors.add(f"state {name} at the end", array, exact.final[name], rounding, {name: slice(None)})
    return errors.verdict().model_copy(update={"figures": _decisions(exact, reference)})


def _decisions(exact: Trajectory, reference: ReferenceTrajectories) -> dict[str, float]:
    """For a network that decides: the number of its decisions, and how many were compared, as the margins allow."""
    if exact.margin is None:
        return {}
    compared = sum(np.isfinite(reference.rounding_at(step)).all() for step in range(len(exact.margin)))
    rows = exact.margin.shape[1]
    return {"decided": float(exact.margin.size), "compared": float(compared * rows)}


def _chunks(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    errors = Errors()
    for sizes in _splits(reference.trial.steps, reference.trial.strategy.chunk, reference.trial.seed):
        session, steps = open_session(), sum(sizes)
        parts = np.split(reference.x[:steps], np.cumsum(sizes)[:-1])
        y = np.concatenate([session.step({"x": part})["y"] for part in parts])
        exact_y = reference.from_zeros().y[:steps]
        compare_steps(errors, f"y in {len(sizes)} pieces of {sizes[0]}, …", y, exact_y, reference)
        open_session.close(session)
    _compare_one_call(errors, open_session, reference)
    for counts in SEVERAL_CHUNKS:
        _compare_calls_of_chunks(errors, counts, open_session(), reference)
    chunks, rest = CHUNKS_AND_REST
    _compare_calls_of_chunks(
        errors, (chunks,), open_session(), reference, min(rest, reference.trial.strategy.chunk - 1)
    )
    if reference.ring_trajectory.settled_after:
        _compare_many_calls(errors, open_session, reference)
    return errors.verdict()


def _compare_one_call(errors: Errors, open_session: OpenSession, reference: ReferenceTrajectories) -> None:
    """Compare a call that is longer than two chunks, so it may be longer than the whole stream.

    Other calls have as many steps as there are rows, inputs or outputs: one dimension may be taken for another. A call
    of one step after each shows its state.
    """
    trial, ring = reference.trial, reference.ring
    x = np.concatenate([chunk["x"] for chunk in (*ring, ring[0])])
    exact_y = np.concatenate(list(reference.ring_trajectory.y))
    for length in sorted({2 * trial.strategy.chunk + 1, trial.batch, trial.model.input, trial.model.width}):
        if length < len(x):
            session = open_session()
            session.set_state(reference.start)
            y = np.concatenate(
                [session.step({"x": x[part]})["y"] for part in (slice(length), slice(length, length + 1))]
            )
            what = f"y of one call of {length} steps and of the next"
            compare_steps(errors, what, y, exact_y[: length + 1], reference)
            open_session.close(session)


def _compare_many_calls(errors: Errors, open_session: OpenSession, reference: ReferenceTrajectories) -> None:
    """Compare many calls of one step, of one chunk with a bound call after them, calls of up to 803 steps, and calls of
    each length up to LONGEST_DRAWN.

    They begin where the network repeats itself with the ring, so that all numbers are known.
    """
    chunk, ring = reference.trial.strategy.chunk, reference.ring_trajectory
    x, exact = np.concatenate([inputs["x"] for inputs in reference.ring]), np.concatenate(list(ring.orbit_y))
    rounding = rounding_after(reference, ring.settled_after)
    rows = (
        ([1] * IN_A_ROW if chunk > 1 else [], 0, LONG_S),
        ([chunk] * IN_A_ROW, IN_A_ROW, LONG_S),
        ([chunk] * FEW_IN_A_ROW + _long_calls(chunk), FEW_IN_A_ROW, LONG_S),
        (_in_every_order(chunk), 0, IN_TURN_S),
        (_every_length(reference.trial), 0, DRAWN_S),
    )
    for lengths, before_bound, seconds in rows:
        session, fed, first = open_session(), 0, before_bound % RING
        bound = session.bind([*reference.ring[first:], *reference.ring[:first]])
        session.set_state(settled_start(reference))
        for call, steps in zip(Budget("", len(lengths), 0, seconds), lengths, strict=False):
            steps_of_ring = np.arange(fed, fed + steps) % len(x)
            y = called_publicly(session, {"x": x[steps_of_ring]}, reference)
            errors.add(f"y of call {call} of {steps} steps, after {fed} steps", y, exact[steps_of_ring], rounding)
            fed += steps
            if call + 1 == before_bound:
                what = f"y of a bound call after {before_bound} public ones"
                errors.add(what, called(bound), ring.orbit_y[first], rounding)
                fed += chunk


def _long_calls(chunk: int) -> list[int]:
    """Steps of long calls, the second of them without a rest. A call of one chunk after each shows its state."""
    steps = [steps - steps % chunk + min(steps % chunk, LONGEST_REST) for steps in LONG_CALLS if steps > chunk]
    # Not whole passes over the ring: after each of these the state is the same.
    whole = [chunk * (count - (count % RING == 0)) for count in (steps // chunk for steps in steps[1:2])]
    return [steps for long in (*steps[:1], *whole, *steps[1:]) for steps in (long, chunk)]


def _in_every_order(chunk: int) -> list[int]:
    """Steps of calls of which each follows each other one and itself; some fall; then equal calls and one of others."""
    sizes = list(dict.fromkeys((*SIZES, chunk)))
    after = {size: list(sizes) for size in sizes}
    walk = [sizes[0]]
    while after[walk[-1]]:
        walk.append(after[walk[-1]].pop())
    return [*walk, *sorted(sizes, reverse=True), *SIZES[:2], SIZES[0], SIZES[-1], *[chunk] * EQUAL_BEFORE, SIZES[-1]]


def _every_length(trial: Trial) -> list[int]:
    """Steps of calls of each length once, in a random order."""
    return [int(steps) for steps in drawn_for(trial).permutation(LONGEST_DRAWN) + 1]


def _compare_calls_of_chunks(
    errors: Errors, counts: tuple[int, ...], session: Session, reference: ReferenceTrajectories, rest: int = 0
) -> None:
    """Compare public calls of `counts` chunks and `rest` steps each, from `start`, and a step after them.

    None is longer than both the stream and LONG_RING steps.
    """
    session.set_state(reference.start)
    ring, chunk, fed = reference.ring_trajectory, reference.trial.strategy.chunk, 0
    for count in counts:
        steps = count * chunk + rest
        if steps > max(reference.trial.steps, LONG_RING):
            break
        numbers = range(fed, fed + count + 1)
        x = np.concatenate([reference.ring[number % RING]["x"] for number in numbers])[:steps]
        what = f"y of a call of {count} chunks and {rest} steps, after {fed} chunks"
        rounding = reference.rounding_at(fed * chunk + steps - 1)
        errors.add(what, session.step({"x": x})["y"], np.concatenate(ring.y[numbers])[:steps], rounding)
        fed += count
    if fed:
        y = session.step({"x": reference.ring[fed % RING]["x"][rest : rest + 1]})["y"]
        what = f"y of the step after {fed} chunks and {rest} steps"
        errors.add(what, y, ring.y[fed][rest : rest + 1], reference.rounding_at(fed * chunk + rest))


def _start(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    errors, session = Errors(), open_session()
    session.set_state(reference.start)
    compare_steps(errors, "y", stream_outputs(session, reference), reference.from_start().y, reference)
    return errors.verdict()


def _reset(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    session, errors = open_session(), Errors()
    _compare_with_zeros(errors, "of a new session", session, reference)
    first = first_outputs(session, reference)
    session.reset()
    _compare_with_zeros(errors, "after a reset", session, reference)
    if reference.is_stream:
        small = {name: array * SMALL if array.dtype.kind == "f" else array for name, array in reference.start.items()}
        for state in (small, *({**reference.zeros, name: array} for name, array in small.items())):
            session.set_state(state)
            session.reset()
            _compare_with_zeros(errors, "after a state of small numbers and a reset", session, reference)
    again = same_bits(output_pairs("after reset, y of call", first_outputs(session, reference), first))
    return again if again.verdict == "fail" else worst(again, errors.verdict())


def _compare_with_zeros(errors: Errors, when: str, session: Session, reference: ReferenceTrajectories) -> None:
    for name, array in session.get_state().items():
        errors.add(f"state {name} {when}", array, reference.zeros[name].astype(np.float64), 0.0)


def _repeat(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    session, runs = open_session(), []
    for _ in range(2):
        if reference.is_stream:
            session.set_state(reference.start)
        runs.append(first_outputs(session, reference))
    pairs = output_pairs("the second time, y of call", runs[1], runs[0])
    return same_bits(pairs if reference.is_stream else [*pairs, *_of_joined_sequences(open_session, reference)])


def _of_joined_sequences(open_session: OpenSession, reference: ReferenceTrajectories) -> Iterator[Pair]:
    """With state `none`, y of a sequence that begins with the last step of the one before, on both paths: it begins
    from zeros all the same."""
    first, second = (dict(chunk) for chunk in reference.ring[:2])
    second["x"] = np.concatenate([first["x"][-1:], second["x"][1:]])
    session, alone = open_session(), open_session().step(second)["y"]
    bound = open_session().bind([first, second])
    session.step(first)
    bound()
    what = "of a sequence that begins with the last step of the one before, y"
    yield what, session.step(second)["y"], alone
    bound_alone = called(open_session().bind([second]))
    yield f"{what} of a bound call", called(bound), bound_alone


def _isolation(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    alone = undisturbed_outputs(open_session, reference)
    bound_alone = undisturbed_bound_outputs(open_session, reference)[:FEW_CALLS]
    one, other = open_session(), open_session()
    if reference.is_stream:
        other.set_state(reference.start)
    interleaved = []
    for chunk in reference.ring[:FEW_CALLS]:
        interleaved.append(one.step(chunk)["y"])
        other.step(reference.ring[-1])
    open_session.close(one)
    staged, beside = open_session(), open_session()
    if reference.is_stream:
        staged.set_state(reference.start)
        beside.set_state(reference.zeros)
    of_staged = first_outputs(staged, reference)
    interleaved_bound = open_session().bind(reference.ring[::-1])
    return same_bits(
        [
            *output_pairs("with another session between the calls, y of call", interleaved, alone),
            *output_pairs(
                "from a state that was set before that of another session, y of call",
                of_staged,
                undisturbed_outputs(open_session, reference, from_start=True),
            ),
            *output_pairs(
                "in a session opened after another was closed, y of call",
                first_outputs(open_session(), reference),
                alone,
            ),
            *output_pairs(
                "with another session's bound calls between them, y of bound call",
                first_bound_outputs(open_session().bind(reference.ring), interleaved_bound),
                bound_alone,
            ),
        ]
    )


def _state(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    session, fresh, errors = open_session(), open_session(), Errors()
    steps = min(FEW_CALLS * reference.trial.strategy.chunk, reference.trial.steps)
    session.step({"x": reference.x[:steps]})
    state = session.get_state()
    exact = reference.from_zeros()
    for name, array in state.items():
        expected = exact.final[name] if exact.states is None else exact.states[name][steps - 1]
        errors.add(f"state {name} after {steps} steps", array, expected, reference.rounding_at(steps - 1, name))
    if (verdict := errors.verdict()).verdict == "fail":
        return verdict
    if coarse := coarse_state(reference, steps, state):
        return CheckResult(verdict="fail", detail=coarse)
    fresh.set_state(state)
    read_back = fresh.get_state()
    carried = same_bits(
        [
            *((f"state {name} put in and read back", read_back[name], state[name]) for name in state),
            *output_pairs(
                "from the state carried over, y of call",
                first_outputs(fresh, reference),
                first_outputs(session, reference),
            ),
        ]
    )
    return carried if carried.verdict == "fail" else verdict


def _bound(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    timed = TimedPath(open_session(), reference)
    timed.start()
    verdict = timed.verify()
    return verdict if verdict.verdict == "fail" else worst(verdict, timed.verify_counts())


def _splits(steps: int, chunk: int, seed: int) -> Iterator[list[int]]:
    """Splits of the stream into calls.

    They are one call of all steps; calls of 1, 2, 3, … steps, rising or falling, which may cover only the first steps;
    calls one step longer than a chunk, so that every rest is ragged; and RANDOM_SPLITS random splits.
    """
    yield [steps]
    rising = [length for length in range(1, LONGEST_RISING + 1) if length * (length + 1) // 2 <= steps]
    yield rising[::-1] if steps % 2 else rising
    if chunk + 1 < steps:
        calls, rest = divmod(steps, chunk + 1)
        yield [chunk + 1] * calls + [rest] * (rest > 0)
    generator = np.random.default_rng([seed, chunk])
    for _ in range(RANDOM_SPLITS if steps > 1 else 0):
        pieces = int(generator.integers(2, min(steps, MOST_PIECES) + 1))
        cuts = sorted(int(cut) for cut in generator.choice(np.arange(1, steps), pieces - 1, replace=False))
        yield [after - before for before, after in pairwise([0, *cuts, steps])]


VALUES_AND_STATES = (
    Check("values", "Every output and the final state equal the reference's.", _values, compares=True),
    Check(
        "chunks",
        "Every way to split the stream into calls gives the same numbers, also with a remainder.",
        _chunks,
        streams_only=True,
        compares=True,
    ),
    Check("start", "A stream can start from a state that is not zero.", _start, streams_only=True, compares=True),
    Check("reset", "After a reset the first run repeats, to the bit.", _reset),
    Check("repeat", "The same calls from the same state give the same numbers, to the bit.", _repeat),
    Check("isolation", "Sessions do not affect each other.", _isolation),
    Check(
        "state",
        "A state equals the reference's, and continues in another session.",
        _state,
        streams_only=True,
        compares=True,
    ),
    Check("bound", "The timed path computes the reference, over a ring of different chunks.", _bound, compares=True),
)
