"""The check of special contents of inputs and states: zeros, negative zeros, whole numbers, equal rows and steps.

Random numbers contain none of these. They do not show a program that takes zeros for padding, or that computes equal
parts only once although their states differ. Where activations are quantised, they do not show wrong weights either:
the rounding to 8 bits hides them. So there are also numbers that 8 bits hold exactly.
"""

from __future__ import annotations

import numpy as np

from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import called, compare_with_run, fed_chunks
from rnnbench.conformance.tolerance import Errors
from rnnbench.conformance.trajectories import ReferenceRun, ReferenceTrajectories
from rnnbench.results import CheckResult
from rnnbench.rnn import DTYPES, Model, rounded

STEPS = 16
"""Steps with special contents (`_filled`)."""
SEPARATE_CALLS = 4
"""With state `none`, the most calls over which these steps are spread. Each call needs a run of the reference."""
NEAR = 2.0**-20
"""The relative difference of numbers that are nearly equal. A counter has whole numbers, which are equal."""
EQUAL_CALLS, SILENT_STEPS, LONGEST_EQUAL = 4, 24, 32
"""Calls with the same chunk, the least steps of silence in such calls, and the longest chunk for which they are made:
after that many equal steps a network hardly changes, and a program may take it for settled before."""
PATHS = {"public calls": (False,), "bound calls": (True,), "calls on both paths in turn": (True, False)}
"""By path, whether each call in turn is a bound one."""
RISE = 2.0**-12
"""By how much nearly equal inputs rise from step to step, as a share of the first. A counter's are equal."""
EXACT_CALLS = 2
"""Calls with numbers that 8 bits hold exactly. Each unit is not zero in one of them."""


def _contents(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    if not reference.trial.model.takes_any_number:
        return CheckResult(verdict="not-applicable", detail="inputs of whole numbers have a range, perhaps without 0")
    errors, chunk = Errors(), reference.trial.strategy.chunk
    calls = 1 if reference.is_stream else min(SEPARATE_CALLS, -(-STEPS // chunk))
    steps = max(STEPS, chunk) if reference.is_stream else calls * chunk
    # The stream's inputs, not the ring's: trials with other chunks then share the runs of the reference.
    near = 0.0 if reference.trial.model.is_exact else NEAR
    x = _filled(np.resize(reference.x, (steps, *reference.x.shape[1:])), near)
    for call, part in enumerate(np.split(x, calls)):
        session, state = open_session(), None
        if reference.is_stream:
            first = next(iter(reference.start))
            state = {**reference.zeros, first: reference.start[first]}
            session.set_state(reference.start)
            session.step({"x": part[:chunk]})
            session.set_state(reference.start)
            session.set_state(state)
        where = f"of call {call} of inputs with zeros, equal rows and equal steps"
        compare_with_run(errors, where, fed_chunks(session, part, reference), reference.run(part, state))
    if reference.is_stream:
        _compare_from_states(errors, open_session, reference)
    if reference.is_stream and reference.lengths is None and chunk <= LONGEST_EQUAL:
        _compare_level_streams(errors, open_session, reference)
    if DTYPES[reference.trial.dtype].activations and isinstance(reference.trial.model, Model):
        _compare_exact_operands(errors, open_session, reference, reference.trial.model)
    return errors.verdict()


def _compare_exact_operands(
    errors: Errors, open_session: OpenSession, reference: ReferenceTrajectories, model: Model
) -> None:
    """Compare first steps over operands that 8 bits hold exactly: quantising them is no error, so float32's is left.

    What the first layer's first step gives has no other operands. It is y of a stack of one layer, and row 0 of the
    state after a call of one step.
    """
    if model.direction != "forward" or model.projection or (model.cell == "gru" and not model.reset_after):
        return
    for call in range(EXACT_CALLS):
        x, session, state = _exact_operand(reference, "w_ih", reference.ring[call]["x"], call), open_session(), None
        if reference.is_stream:
            h = _exact_operand(reference, "w_hh", reference.start["h"], call)
            state = {**reference.start, "h": np.concatenate([h[:1], reference.start["h"][1:]])}
            session.set_state(state)
        run, where = reference.run(x[:1], state, "float32"), f"of call {call} over numbers that 8 bits hold exactly"
        y = session.step({**reference.ring[call], "x": x})["y"]
        if model.layers == 1:
            errors.add(f"y at step 0 {where}", y[0], run.y[0], run.rounding[0])
        if state is not None:
            session.set_state(state)
            session.step({"x": x[:1]})
            for name, array in session.get_state().items():
                errors.add(f"state {name} {where}", array[0], run.final[name][0], run.final_rounding[name][0])


def _exact_operand(reference: ReferenceTrajectories, matrix: str, like: np.ndarray, call: int) -> np.ndarray:
    """Values [any, batch, size] that every way to quantise this matrix's operand keeps.

    With a fixed range they are the range's nearest to those of `like`. Otherwise half of them are 0, and the others are
    all 1 or all -1, which is the end of the range of any part of the operand.
    """
    if operand := reference.weights.layers[0].ranges.get(matrix):
        return operand.nearest(like)
    others = np.random.default_rng([reference.trial.seed, like.shape[-1]]).random(like.shape) < 0.5
    return np.where(others == bool(call), np.array((-1) ** call, like.dtype), np.array(0, like.dtype))


def _compare_from_states(errors: Errors, open_session: OpenSession, reference: ReferenceTrajectories) -> None:
    """Start from a state of ones, and from states with negative zeros in all arrays but one. Inputs are whole numbers.

    A program must not take any of these states for a new one. Rows are equal but for that one array.
    """
    whole = _whole_numbers(reference.ring[0]["x"])
    names, x = list(reference.start), np.repeat(whole[:, :1], whole.shape[1], axis=1)
    states = {"ones": {name: _ones(array) for name, array in reference.start.items()}}
    if len(names) > 1:
        zeros = {name: _negative_zeros(array) for name, array in reference.zeros.items()}
        states |= {f"{name} alone": {**zeros, name: reference.start[name]} for name in names}
    together = {name: np.concatenate([state[name] for state in states.values()], axis=1) for name in names}
    run = reference.run(np.concatenate([x] * len(states), axis=1), together)
    for number, (what, state) in enumerate(states.items()):
        session, rows = open_session(), slice(number * x.shape[1], (number + 1) * x.shape[1])
        session.set_state(state)
        begins = ReferenceRun(x, run.y[:, rows], run.rounding)
        compare_with_run(errors, f"from a state of {what}", fed_chunks(session, x, reference), begins)


def _compare_level_streams(errors: Errors, open_session: OpenSession, reference: ReferenceTrajectories) -> None:
    """Call with one step over and over, with zeros from zeros and from `start`, and with steps that hardly change.

    The first are made on the public path, on a ring of one chunk and on both in turn, and the others on both. All rows
    of the last two are equal. The zeros from `start` end with a call of other numbers: a y of zeros may say nothing of
    the state. The reference runs all of them as rows of one batch.
    """
    chunk, batch, exact = reference.trial.strategy.chunk, reference.trial.batch, reference.trial.model.is_exact
    most = max(EQUAL_CALLS, 1 - (-SILENT_STEPS // chunk))
    steps = 1 << (most * chunk - 1).bit_length()  # A power of 2, so that trials with other chunks share the run.
    level = np.repeat(reference.x[:1], steps, axis=0)
    silent, rises = np.zeros_like(level), 1 + (0.0 if exact else RISE) * np.arange(steps)[:, None, None]
    rising = rounded(np.repeat(level[:, :1], batch, axis=1) * rises, reference.trial.dtype)
    broken = np.concatenate([silent[: (most - 1) * chunk], level[(most - 1) * chunk :]])
    of_row_0 = {name: np.repeat(array[:, :1], batch, axis=1) for name, array in reference.start.items()}
    streams = {
        "equal": (level, reference.zeros, EQUAL_CALLS),
        "silent": (silent, reference.zeros, EQUAL_CALLS),
        "silent later": (broken, of_row_0, most),
        "nearly equal": (rising, of_row_0, EQUAL_CALLS),
    }
    inputs, states, _ = zip(*streams.values(), strict=True)
    together = {name: np.concatenate([state[name] for state in states], axis=1) for name in of_row_0}
    run = reference.run(np.concatenate(inputs, axis=1), together)
    for number, (what, (x, state, calls)) in enumerate(streams.items()):
        rows, fed = slice(number * batch, (number + 1) * batch), calls * chunk
        expected = ReferenceRun(x[:fed], run.y[:fed, rows], run.rounding[:fed])
        ring = [{"x": part} for part in np.split(expected.x, calls)]
        if x is not rising:  # All steps share one step's memory.
            ring = [{"x": np.broadcast_to(x[:1], x[:chunk].shape)}]
        for path, is_bound in PATHS.items() if x is level else [*PATHS.items()][-1:]:
            session = open_session()
            bound = session.bind(ring[::2])
            if state is of_row_0:
                session.set_state(state)
            outputs = [
                called(bound) if is_bound[call % len(is_bound)] else session.step(ring[call % len(ring)])["y"]
                for call in range(calls - (x is broken))
            ]
            if x is broken:
                outputs.append(session.step({"x": expected.x[-chunk:]})["y"])
            compare_with_run(errors, f"of {what} {path}", np.concatenate(outputs), expected)


def _filled(x: np.ndarray, near: float) -> np.ndarray:
    """x [steps, batch, input] with special contents in its first STEPS steps. `near` is a small relative difference."""
    contents = (
        np.zeros_like(x[0]),
        -np.zeros_like(x[0]),
        _like_row_0(x[:1], slice(None)),
        _like_row_0(x[:2], 0),
        _like_row_0(x[:2], 0),
        np.full_like(x[0], x[0].flat[0]),
        np.where(np.arange(x.shape[1])[:, None] == 0, 0, x[-1]).astype(x.dtype),
        np.ones_like(x[0]),
        -np.ones_like(x[0]),
        np.where(np.arange(x.shape[2]) == x.shape[2] - 1, x[-1], 0).astype(x.dtype),
        np.full_like(x[0], 0.5),
        (1 + np.arange(x[0].size) % 3).reshape(x[0].shape).astype(x.dtype) * np.sign(x[-1]),
        np.abs(x[-1]),
        x[-1],
        _nearly(x[-1], near),
        _nearly(_like_row_0(x[:1], slice(None)), near),
    )
    assert len(contents) == STEPS
    filled = x.copy()
    for step, content in zip(range(len(x)), contents, strict=False):
        filled[step] = content
    return filled


def _like_row_0(x: np.ndarray, rows: int | slice) -> np.ndarray:
    """The last step of x, [batch, input], with `rows` replaced by row 0 of the first step."""
    step: np.ndarray = x[-1].copy()
    step[rows] = x[0, 0]
    return step


def _nearly(step: np.ndarray, near: float) -> np.ndarray:
    """A step that differs from this one in the rows after the first one, or in the only one."""
    rows = np.arange(len(step))[:, None] >= min(1, len(step) - 1)
    return np.where(rows, step * (1 + near), step).astype(step.dtype)


def _whole_numbers(x: np.ndarray) -> np.ndarray:
    """Inputs of about 1 rounded to small whole numbers."""
    return np.rint(2 * x.astype(np.float64)).astype(x.dtype)


def _ones(array: np.ndarray) -> np.ndarray:
    """Ones that share the memory of one number. An array of whole numbers stays unchanged, since it has a range."""
    return np.broadcast_to(np.ones((), array.dtype), array.shape) if array.dtype.kind == "f" else array


def _negative_zeros(zeros: np.ndarray) -> np.ndarray:
    """Negative zeros in place of zeros. Integers and booleans have none, and stay unchanged."""
    return np.copysign(zeros, -1) if zeros.dtype.kind == "f" else zeros


CONTENTS = (
    Check(
        "contents",
        "Special inputs, such as zeros, equal rows and equal steps, give the reference's numbers.",
        _contents,
        compares=True,
    ),
)
