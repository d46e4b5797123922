"""The check of a state that an exporter or importer lost without a word: every call then begins anew.

Such a program is right in its first call, and two equal calls give the same answer. Where the trial has no state
although its network was made with one, only outputs that the user expects can show it.
"""

from __future__ import annotations

import numpy as np

from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import compare_expected, expected_outputs
from rnnbench.conformance.tolerance import FACTOR, Errors
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult


def _state_lost(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    return _second_call(open_session, reference) if reference.is_stream else _later_calls(open_session, reference)


def _second_call(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Two equal calls from zeros, where the reference's second answer and states are others than the first."""
    chunk, session = reference.ring[0], open_session()
    if "lengths" in chunk:
        return CheckResult(verdict="not-applicable", detail="rows of their own lengths are for whole sequences")
    x = chunk["x"]
    steps, exact = len(x), reference.run(np.concatenate([x, x]))
    close = FACTOR * float(exact.rounding[-1])
    first = session.step(chunk)["y"]
    states = session.get_state()
    second = session.step(chunk)["y"]
    moves = np.abs(exact.y[steps:] - exact.y[:steps]).max() > 2 * close
    if moves and np.abs(second - first).max() <= close:
        return CheckResult(verdict="fail", detail="two equal calls give the same y: no state goes from one to the next")
    for name, history in (reference.from_zeros().states or {}).items():
        # The ring begins as the stream does.
        if np.abs(history[steps - 1]).max() > 2 * close and np.abs(states[name]).max() <= close:
            return CheckResult(verdict="fail", detail=f"the state {name} is still zero after a call")
    return CheckResult(verdict="pass")


def _later_calls(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """State `none`: the first call is as the user expects it, and the later ones are as if each were the first."""
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
    Check("state-lost", "A state goes from call to call: the export or the importer has not lost it.", _state_lost),
)
