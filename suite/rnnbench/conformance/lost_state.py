"""The check of a state that an exporter or importer has lost silently, so that every call begins anew.

Such a program is right in its first call, and gives the same output in two equal calls. If the file itself has lost the
state, so that the trial has none, only outputs that the user expects can show it.
"""

from __future__ import annotations

import numpy as np

from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import compare_expected, expected_outputs
from rnnbench.conformance.tolerance import FACTOR, Errors, columns_told
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult


def _state_lost(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    return _second_call(open_session, reference) if reference.is_stream else _later_calls(open_session, reference)


def _second_call(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Make two equal calls from zeros. Fail if their outputs are equal and the reference's are not."""
    chunk, session = reference.ring[0], open_session()
    if "lengths" in chunk:
        return CheckResult(verdict="not-applicable", detail="rows of their own lengths are for whole sequences")
    x = chunk["x"]
    steps, exact = len(x), reference.run(np.concatenate([x, x]))
    close = FACTOR * exact.rounding[-1]
    first = session.step(chunk)["y"]
    states = session.get_state()
    second = session.step(chunk)["y"]
    moves = np.abs(exact.y[steps:] - exact.y[:steps]) > 2 * close
    if moves.any() and (np.abs(second - first) <= close).all():
        detail = f"two equal calls give the same y, in {columns_told(moves)} too: no state goes from one to the next"
        return CheckResult(verdict="fail", detail=detail)
    for name, history in (reference.from_zeros().states or {}).items():
        # The ring begins as the stream does.
        zero = FACTOR * exact.final_rounding[name]
        if (np.abs(history[steps - 1]) > 2 * zero).any() and (np.abs(states[name]) <= zero).all():
            return CheckResult(verdict="fail", detail=f"the state {name} is still zero after a call")
    return CheckResult(verdict="pass")


def _later_calls(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """For state `none`: fail if the first call gives what the user expects, and a later call does not."""
    chunk = reference.trial.strategy.chunk
    if reference.expected is None:
        return CheckResult(verdict="not-applicable", detail="state 'none', and the case expects no outputs of calls")
    y = expected_outputs(open_session(), reference)
    first, later = Errors(), Errors()
    compare_expected(first, y[:chunk], reference)
    compare_expected(later, y, reference)
    if first.verdict().verdict != "pass" or later.verdict().verdict != "fail":
        return CheckResult(verdict="pass")
    detail = f"the first call gives what the case expects, and a later one does not: {later.verdict().detail}"
    return CheckResult(verdict="fail", detail=f"{detail}; the file takes no state, so every call begins anew")


LOST_STATE = (
    Check("state-lost", "A state goes from call to call: no export and no importer has lost it.", _state_lost),
)
