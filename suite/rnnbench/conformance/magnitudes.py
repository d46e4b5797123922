"""Checks of magnitudes: inputs and states from 1e-40 to 1e6, and gates that these hold at 0 and at 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.edge_cases import shares_scale
from rnnbench.conformance.feeding import FEW_CALLS, called, compare_with_run, fed_chunks
from rnnbench.conformance.rounding import steps_measured
from rnnbench.conformance.tolerance import FACTOR, Errors, worst
from rnnbench.conformance.trajectories import ReferenceRun, ReferenceTrajectories
from rnnbench.results import CheckResult
from rnnbench.rnn import DTYPES, rounded

HUGE, HUGE_FLOAT16, TINY = 1e6, 1e4, 1e-40
"""Scales of inputs. HUGE drives gates to 0 and 1, and is beyond the range of float16, in which a program may compute
unasked; a trial in float16 has HUGE_FLOAT16. TINY makes inputs subnormal in float32."""
MAGNITUDES = (TINY, 1e-30, 1e-20, 1e-12, 1e-6, 1e-4, 1e-3, 1.0, 3.0, 10.0, 30.0, 1e2, 1e3, HUGE_FLOAT16, HUGE)
"""Rising scales of the steps of one stream. They rise, since after a huge input small ones no longer count. From 3 to
30 activations are neither linear nor constant."""
LARGE = 8
"""The index in MAGNITUDES of the first scale above 1."""
MIDDLE_STATES, LARGE_STATES = (3.0, 10.0, 30.0), (1e2, 1e3, HUGE_FLOAT16, HUGE)
"""Scales of larger states. They are not mixed with small ones, which would no longer count."""
BESIDE = (1.0, 1e3)
"""Scales of the steps of one stream, in turn: what stands beside a large input in a call keeps its digits."""
SWEPT, FEWEST_SWEPT, MOST_SWEPT, SWEPT_TO = 512, 8, 64, 12.0
"""A stream whose inputs grow evenly: the values of y in it, its fewest and most steps, and the scale of the last."""
SEPARATE_CALLS = 4
"""With state `none`, the most calls over which MAGNITUDES are spread. Each call needs a run of the reference."""
PINNED = 100.0
"""The input of a gate at which it is 1 (or 0, if negative) in every dtype, for any recurrent part."""
CELL = "c"
"""The state of an LSTM that enters no product with weights, so that it may be large while the input holds a gate."""
NO_COUNTER = CheckResult(verdict="not-applicable", detail="a counter counts whole numbers")
OF_8_BITS = CheckResult(verdict="not-applicable", detail="a step of 8 bits of large inputs leaves gates to chance")
WHOLE_NUMBERS = CheckResult(verdict="not-applicable", detail="inputs of whole numbers have a range")


def _in_range(scales: Sequence[float], reference: ReferenceTrajectories) -> tuple[float, ...]:
    """The scales that the numbers of the trial's dtype can have, and at which a counter is still exact."""
    has_all = reference.x.dtype != np.float16 and not reference.trial.model.is_exact
    return tuple(scale for scale in scales if scale < HUGE or has_all)


def _huge(reference: ReferenceTrajectories) -> float:
    return _in_range((HUGE_FLOAT16, HUGE), reference)[-1]


def _scaled(scale: float, open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    x, chunk = reference.scaled(scale).x, reference.trial.strategy.chunk
    given, where = x.copy(), f"of inputs scaled by {scale:g}"
    errors = _compared(Errors(), where, fed_chunks(open_session(), x, reference), reference, x)
    ring = [{**reference.ring[0], "x": x[at : at + chunk]} for at in range(0, len(x) - chunk + 1, chunk)][:FEW_CALLS]
    if ring:
        bound = open_session().bind(ring)
        y = np.concatenate([called(bound) for _ in ring])
        if x.tobytes() != given.tobytes():
            return CheckResult(verdict="fail", detail=f"a ring {where} was written to")
        errors = _compared(errors, f"of bound calls {where}", y, reference, x, steps=len(ring) * chunk)
    return errors.verdict()


def _compared(
    errors: Errors,
    where: str,
    y: np.ndarray,
    reference: ReferenceTrajectories,
    x: np.ndarray,
    state: dict[str, np.ndarray] | None = None,
    steps: int | None = None,
) -> Errors:
    """Add the errors of y, of the first `steps` (None: all), against the reference's run over x from `state`, and
    return all errors.

    A runtime may flush subnormal numbers to zero, and a function such as Sign then gives another value. So if y is
    wrong, it is also compared with a run over flushed x and state, and the better comparison counts.
    """

    def compared(x: np.ndarray, state: dict[str, np.ndarray] | None) -> Errors:
        run, added = reference.run(x, state), replace(errors)
        compare_with_run(added, where, y, replace(run, y=run.y[:steps], rounding=run.rounding[:steps]))
        return added

    kept = compared(x, state)
    flushed_x, *flushed = (_flushed(array) for array in (x, *(state or {}).values()))
    pairs = zip((x, *(state or {}).values()), (flushed_x, *flushed), strict=True)
    if kept.rounding <= FACTOR or all(np.array_equal(one, other) for one, other in pairs):
        return kept
    other = compared(flushed_x, None if state is None else dict(zip(state, flushed, strict=True)))
    return min(kept, other, key=lambda trajectory: trajectory.rounding)


def _flushed(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "f":
        return array
    return np.where(np.abs(array) < np.finfo(array.dtype).tiny, 0, array).astype(array.dtype)


def _saturation(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    if not reference.trial.model.takes_any_number:
        return WHOLE_NUMBERS
    if shares_scale(reference):
        return OF_8_BITS
    verdict = _scaled(_huge(reference), open_session, reference)
    if verdict.verdict == "fail" or _driving(reference, PINNED) is None:
        return verdict
    return worst(verdict, _pinned(open_session, reference))


def _pinned(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Compare a stream that holds one unit's forget gate (a GRU's update gate) at 1, and one that holds it at 0.

    At 1 the unit adds up all inputs and forgets nothing, so an LSTM keeps a large c. At 0 it must not remember its
    start state.
    """
    errors = Errors()
    steps = (
        min(FEW_CALLS * reference.trial.strategy.chunk, reference.trial.steps)
        if reference.is_stream
        else len(reference.ring[0]["x"])
    )
    start = reference.start if reference.is_stream else None
    runs = [(1, PINNED, start, ""), (0, -PINNED, start, "")]
    if start is not None and CELL in start:  # A gate below 1 would make it small within a call.
        large = {**start, CELL: _scaled_state(reference, CELL, (_huge(reference),))}
        runs.append((1, PINNED, large, f", from a state whose {CELL} is {_huge(reference):g} times `start`"))
    for gate, preactivation, state, begun in runs:
        driving = _driving(reference, preactivation)
        assert driving is not None, "the network has a gate that keeps the state"
        x = np.broadcast_to(driving, (steps, *driving.shape))
        expected, where = reference.run(x, state), f"with forget gates pinned at {gate}{begun}"
        session = open_session()
        if state is not None:
            session.set_state(state)
        compare_with_run(errors, where, fed_chunks(session, x, reference), expected)
        for name, array in session.get_state().items() if state is not None else ():
            errors.add(f"state {name} {where}", array, expected.final[name], expected.final_rounding[name])
    return errors.verdict()


def _driving(reference: ReferenceTrajectories, preactivation: float) -> np.ndarray | None:
    """An x [batch, input] that gives one unit's keeping gate, in each row of the batch, the input `preactivation`.

    None if the network has no such gate.
    """
    x = reference.trial.model.pinning_x(reference.weights, reference.trial.batch, preactivation)
    return None if x is None else x.astype(reference.x.dtype)


def _denormals(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    if reference.trial.model.is_exact:
        return NO_COUNTER
    if not reference.trial.model.takes_any_number:
        return WHOLE_NUMBERS
    return _scaled(TINY, open_session, reference)


def _magnitudes(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    if reference.trial.model.is_exact:
        return NO_COUNTER
    if not reference.trial.model.takes_any_number:
        return WHOLE_NUMBERS
    errors, chunk, magnitudes = Errors(), reference.trial.strategy.chunk, _scales(reference)
    calls = 1 if reference.is_stream else min(SEPARATE_CALLS, -(-len(magnitudes) // chunk))
    steps = max(len(magnitudes), chunk) if reference.is_stream else calls * chunk
    scales = np.concatenate(list(_rising(calls, steps // calls, reference)))
    # x of the stream, not of the ring: trials with other chunks share these runs of the reference.
    x = np.resize(reference.x, (steps, *reference.x.shape[1:]))
    scaled = rounded(x.astype(np.float64) * scales[:, None, None], reference.trial.dtype)
    for call, part in enumerate(np.split(scaled, calls)):
        where = f"of call {call} of inputs from {TINY:g} to {magnitudes[-1]:g}"
        errors = _compared(errors, where, fed_chunks(open_session(), part, reference), reference, part)
    if reference.is_stream:
        errors = _compared_from_scaled_states(errors, open_session, reference)
    if not shares_scale(reference):
        errors = _swept(errors, open_session, reference)
        errors = _compared_beside_large_ones(errors, open_session, reference)
    return errors.verdict()


def _compared_beside_large_ones(errors: Errors, open_session: OpenSession, reference: ReferenceTrajectories) -> Errors:
    x = reference.ring[0]["x"]
    scales = np.resize(BESIDE, len(x))
    scaled = rounded(x.astype(np.float64) * scales[:, None, None], reference.trial.dtype)
    where = f"of a call with inputs of {BESIDE[0]:g} and {BESIDE[1]:g} in turn"
    return _compared(errors, where, fed_chunks(open_session(), scaled, reference), reference, scaled)


def _swept(errors: Errors, open_session: OpenSession, reference: ReferenceTrajectories) -> Errors:
    """Compare a stream whose inputs grow evenly, so that activations are computed at many places of their curves.

    With few units, MAGNITUDES alone leave large gaps between these places.
    """
    chunk = reference.trial.strategy.chunk
    steps = int(np.clip(SWEPT // reference.trial.model.width, FEWEST_SWEPT, MOST_SWEPT))
    calls = 1 if reference.is_stream else min(SEPARATE_CALLS, -(-steps // chunk))
    steps = steps if reference.is_stream else calls * chunk
    x = np.resize(reference.x, (steps, *reference.x.shape[1:])).astype(np.float64)
    scaled = rounded(x * np.linspace(0, SWEPT_TO, steps)[:, None, None], reference.trial.dtype)
    for call, part in enumerate(np.split(scaled, calls)):
        where = f"of call {call} of inputs that grow evenly to {SWEPT_TO:g}"
        errors = _compared(errors, where, fed_chunks(open_session(), part, reference), reference, part)
    return errors


def _scales(reference: ReferenceTrajectories) -> tuple[float, ...]:
    """The scales of MAGNITUDES at which rounding does not decide about gates.

    With a dynamic int8 scale, inputs of 1e4 are rounded to steps of 80. A fixed range saturates instead.
    """
    return MAGNITUDES[:LARGE] if shares_scale(reference) else _in_range(MAGNITUDES, reference)


def _rising(calls: int, length: int, reference: ReferenceTrajectories) -> Iterator[np.ndarray]:
    """The scale of each step of each call [length].

    Scales rise over the steps whose rounding is measured, and then stay constant, so that later steps are not coarser.
    """
    magnitudes = np.array(_scales(reference))
    measured = steps_measured(reference.trial.model, length)
    for indices in np.linspace(0, len(magnitudes) - 1, calls * measured).round().astype(int).reshape(calls, measured):
        yield magnitudes[np.pad(indices, (0, length - measured), mode="edge")]


def _compared_from_scaled_states(errors: Errors, open_session: OpenSession, reference: ReferenceTrajectories) -> Errors:
    """Compare from states whose units have the scales up to 1 in turn, and from states with the larger scales. After
    these the states are compared too: y hardly shows what is wrong in a large one.

    Where an array has fewer units than there are scales, they begin at either end, or at each of them.
    """
    large = () if shares_scale(reference) else (MIDDLE_STATES, _in_range(LARGE_STATES, reference))
    small = MAGNITUDES[:LARGE]
    has_few = min(array.shape[-1] for array in reference.start.values()) < LARGE
    again = (small[::-1], *(MIDDLE_STATES[at:] + MIDDLE_STATES[:at] for at in (1, 2) if large)) if has_few else ()
    for scales in (small, *again, *large):
        state = {name: _scaled_state(reference, name, scales) for name in reference.start}
        x = reference.x[: reference.trial.strategy.chunk]
        session = open_session()
        session.set_state(state)
        is_small = set(scales) == set(small)
        if not is_small or not DTYPES[reference.trial.dtype].activations:  # 8 bits hold no small ones.
            for name, array in session.get_state().items():
                given = state[name].astype(np.float64)
                own = np.finfo(array.dtype).tiny if array.dtype.kind == "f" else 0
                may_be_zero = np.abs(given) < max(float(own), DTYPES[reference.trial.dtype].tiny)
                errors.add(
                    f"state {name} of up to {max(scales):g} times `start` read back",
                    array,
                    np.where(may_be_zero & (array == 0), 0.0, given),
                    0.0,
                )
        where = f"from a state of {scales[0]:g} to {scales[-1]:g} times `start`"
        errors = _compared(errors, where, fed_chunks(session, x, reference), reference, x, state)
        if not is_small:
            run = reference.run(x, state)
            for name, array in session.get_state().items():
                errors.add(f"state {name} {where}", array, run.final[name], run.final_rounding[name])
    return errors if shares_scale(reference) else _compared_from_one_large_array(errors, open_session, reference)


def _compared_from_one_large_array(
    errors: Errors, open_session: OpenSession, reference: ReferenceTrajectories
) -> Errors:
    """Compare from states of which only one array is huge: if h drives all gates to 0 or 1, a huge c may not count.

    The states afterwards are compared too, since y only shows that a huge c is large. The reference runs all states as
    rows of one batch.
    """
    start, chunk, batch = reference.start, reference.trial.strategy.chunk, reference.trial.batch
    large = [name for name, array in start.items() if array.dtype.kind == "f"]
    if len(large) < 2:
        return errors
    x = reference.x[:chunk]
    huge = _huge(reference)
    states = [{**start, name: _scaled_state(reference, name, (huge,))} for name in large]
    together = {name: np.concatenate([state[name] for state in states], axis=1) for name in start}
    run = reference.run(np.concatenate([x] * len(large), axis=1), together)
    for number, (name, state) in enumerate(zip(large, states, strict=True)):
        session, rows = open_session(), slice(number * batch, (number + 1) * batch)
        session.set_state(state)
        where = f"from a state whose {name} is {huge:g} times `start`"
        compare_with_run(
            errors, where, fed_chunks(session, x, reference), ReferenceRun(x, run.y[:, rows], run.rounding)
        )
        for name, array in session.get_state().items():
            errors.add(f"state {name} {where}", array, run.final[name][:, rows], run.final_rounding[name])
    return errors


def _scaled_state(reference: ReferenceTrajectories, name: str, scales: Sequence[float]) -> np.ndarray:
    """An array of `start`; its units are scaled by `scales` in turn. Whole numbers stay unchanged."""
    array, trial = reference.start[name], reference.trial
    if array.dtype.kind != "f":
        return array
    values = array.astype(np.float64) * np.resize(scales, array.shape[-1])
    return rounded(values, trial.model.state_dtype(name, trial.dtype))


MAGNITUDE_CHECKS = (
    Check("saturation", "Inputs of a million give the reference's numbers.", _saturation, compares=True),
    Check(
        "denormals",
        "Inputs too small to be normal numbers give the reference's numbers for them, or for zeros.",
        _denormals,
        compares=True,
    ),
    Check(
        "magnitudes", "Inputs and states from 1e-40 to 1e6 give the reference's numbers.", _magnitudes, compares=True
    ),
)
