"""The check of a stream that is left alone: it begins, all other checks run, and then it goes on.

It costs a few calls. In between, up to a thousand other sessions come and go, calls are refused, others get huge inputs
or NaN, and some tenths of a second pass.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rnnbench.backends import Arrays
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import called
from rnnbench.conformance.tolerance import Errors, same_bits
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult

BEGUN = 2
"""Calls before the session is left alone."""


def _begin(open_session: OpenSession, reference: ReferenceTrajectories) -> Callable[[], CheckResult]:
    """Begin a stream on either path. Returns the function that continues both and compares them."""
    session, bound_session = open_session(), open_session()
    bound = bound_session.bind(reference.ring)
    if reference.is_stream:
        session.set_state(reference.start)
        bound_session.set_state(reference.start)
    kept: list[tuple[str, np.ndarray]] = []
    for call, chunk in enumerate(reference.ring[:BEGUN]):
        kept.append((f"y of call {call}, once other sessions have come and gone", session.step(chunk)["y"]))
        bound()
    bound.sync()
    kept += [(f"y of bound call {BEGUN - 1}, once other sessions have come and gone", bound.output()["y"])]
    kept += [(f"state {name}, once other sessions have come and gone", a) for name, a in session.get_state().items()]
    before = [array.copy() for _, array in kept]

    def go_on() -> CheckResult:
        unchanged = same_bits((what, array, old) for (what, array), old in zip(kept, before, strict=True))
        if unchanged.verdict == "fail":
            return unchanged
        errors = Errors()
        _compare(errors, "", reference, session.step(reference.ring[BEGUN])["y"], session.get_state())
        _compare(errors, " of a bound call", reference, called(bound), bound_session.get_state())
        return errors.verdict()

    return go_on


def _compare(errors: Errors, of_call: str, reference: ReferenceTrajectories, y: np.ndarray, states: Arrays) -> None:
    """Compare the call after the first BEGUN calls."""
    ring = reference.ring_trajectory
    last = (BEGUN + 1 if reference.is_stream else 1) * reference.trial.strategy.chunk - 1
    errors.add(f"y{of_call} of a stream that was left alone", y, ring.y[BEGUN], reference.rounding_at(last))
    for name, array in states.items():
        what = f"state {name} after it{of_call} of a stream that was left alone"
        errors.add(what, array, ring.states[name][BEGUN], reference.rounding_at(last, name))


def _left_alone(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    return _begin(open_session, reference)()


LEFT_ALONE = (
    Check(
        "left-alone",
        "A stream goes on that was left alone while all other checks ran, and its earlier results are unchanged.",
        _left_alone,
        begin=_begin,
        compares=True,
    ),
)
