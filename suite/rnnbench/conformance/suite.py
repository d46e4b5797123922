"""The list of all conformance checks, and running them on a program. It knows sessions, not backends."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

from rnnbench.backends import Program, Session
from rnnbench.cases import Trial
from rnnbench.conformance.alike import ALIKE
from rnnbench.conformance.arrays import ARRAYS
from rnnbench.conformance.contents import CONTENTS
from rnnbench.conformance.definition import RAISED, Check, Shared
from rnnbench.conformance.edge_cases import EDGE_CASES
from rnnbench.conformance.endurance import ENDURANCE
from rnnbench.conformance.exchanged_states import EXCHANGED_STATES
from rnnbench.conformance.left_alone import LEFT_ALONE
from rnnbench.conformance.lost_state import LOST_STATE
from rnnbench.conformance.magnitudes import MAGNITUDE_CHECKS
from rnnbench.conformance.mixed_calls import MIXED_CALLS
from rnnbench.conformance.refusal import REFUSAL
from rnnbench.conformance.rewinding import REWINDING
from rnnbench.conformance.streams import STREAMS
from rnnbench.conformance.threads import THREADS
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.conformance.values_and_states import VALUES_AND_STATES
from rnnbench.outside_text import Place, describe_error
from rnnbench.results import CheckResult

CHECKS = (
    *VALUES_AND_STATES,
    *EXCHANGED_STATES,
    *LOST_STATE,
    *REWINDING,
    *STREAMS,
    *MIXED_CALLS,
    *ARRAYS,
    *EDGE_CASES,
    *THREADS,
    *REFUSAL,
    *CONTENTS,
    *ALIKE,
    *MAGNITUDE_CHECKS,
    *ENDURANCE,
    *LEFT_ALONE,
)
"""All checks, in the order in which they run."""
BEGIN_WITHIN = 0.5
"""Share of the time of all checks after which no further check begins. The rest is for the check that runs then."""
TIMED = "timed"
"""The name of the check after sampling (`TimedPath.verify`): of the timed calls' results, and of the timed path from a
given state."""
CHECK_NAMES = (*(check.name for check in CHECKS), TIMED)
"""The names of all results that a record may have."""
CHECK_SENTENCES = {
    **{check.name: check.sentence for check in CHECKS},
    TIMED: "The timed calls led to the right state, before and after sampling.",
}
"""What is true of a program that passes, by the name of each check."""
CHECKS_BY_NAME = {
    **{name: (name,) for name in CHECK_NAMES},
    "numbers": (*(check.name for check in CHECKS if check.compares), TIMED),
}
"""The checks that a name in `expectations.yaml` stands for. A wrong computation may fail any check of `numbers`."""


def checks_without_result(trial: Trial, names: Collection[str]) -> tuple[str, ...]:
    """The checks of a trial that are not among the `names` of its results."""
    return tuple(check.name for check in _checks_of(trial) if check.name not in names)


def _checks_of(trial: Trial) -> Iterator[Check]:
    """All checks, or those that do not take long where the trial has no time for them."""
    return (check for check in CHECKS if trial.limits.endurance or not check.long_running)


def run_checks(
    program: Program, reference: ReferenceTrajectories, seconds: float | None = None
) -> Iterator[tuple[str, CheckResult]]:
    """Run the checks. Yields the name and result of each. A check that raises fails, and its result has the exception.

    After BEGIN_WITHIN of `seconds` only the first check begins: the reference of a model file may be slow. An exception
    of the first check is raised: a program that cannot run at all is not nonconforming.
    """
    begun = time.perf_counter()
    shared: dict[str, Any] = {}
    ends: dict[str, Callable[[], CheckResult]] = {}
    with ExitStack() as spanning:
        for check in _checks_of(reference.trial):
            left_out = _left_out(check, reference, time.perf_counter() - begun, seconds)
            if left_out is not None:
                yield check.name, left_out
                continue
            with Opener(program, shared) as open_session:
                yield check.name, _result(check, ends.get(check.name) or partial(check.run, open_session, reference))
            if check is CHECKS[0]:
                ends = {check.name: _begun(check, program, reference, spanning) for check in CHECKS if check.begin}


def _left_out(
    check: Check, reference: ReferenceTrajectories, spent: float, seconds: float | None
) -> CheckResult | None:
    """The result of a check that does not apply to the trial, or for which no time is left; None if it is to run."""
    if check.streams_only and not reference.is_stream:
        return CheckResult(verdict="not-applicable", detail="state 'none' carries nothing between calls")
    if seconds is not None and check is not CHECKS[0] and spent > BEGIN_WITHIN * seconds:
        over = f"{spent:.0f} of {seconds:.0f} s were over, {reference.seconds:.0f} s of them for the reference"
        return CheckResult(verdict="too-short", detail=f"not begun: {over}")
    return None


def _result(check: Check, run: Callable[[], CheckResult]) -> CheckResult:
    """The result of a check, even if it raises. An exception of the first check is raised, with a note of its place."""
    try:
        return run()
    except Exception as error:
        raised = _raised(check, error)
        if check is CHECKS[0]:
            raise
        return raised


def _begun(
    check: Check, program: Program, reference: ReferenceTrajectories, spanning: ExitStack
) -> Callable[[], CheckResult]:
    """Begin a check that spans others. Returns the function that ends it. Its sessions stay open until then."""
    assert check.begin is not None, "it spans others"
    try:
        return check.begin(spanning.enter_context(Opener(program)), reference)
    except Exception as error:  # noqa: BLE001 it is the check's result, in its turn
        raised = _raised(check, error)
        return lambda: raised


def _raised(check: Check, error: Exception) -> CheckResult:
    """The result of a check that raised. The exception gets a note of the check and its line."""
    frame, line = [*traceback.walk_tb(error.__traceback__)][:2][-1]  # The second is that of the check's function.
    error.add_note(Place(f"in the check '{check.name}', {Path(frame.f_code.co_filename).name}, line {line}"))
    return CheckResult(verdict="fail", detail=f"{RAISED}{describe_error(error)}")


class Opener:
    """Opens sessions of a program. At the end of the check it closes those that are still open."""

    def __init__(self, program: Program, shared: dict[str, Any] | None = None) -> None:
        self._program = program
        self._open: dict[int, Session] = {}
        self._shared = {} if shared is None else shared

    def __enter__(self) -> Opener:
        return self

    def __exit__(self, *error: object) -> None:
        with ExitStack() as sessions:
            for session in self._open.values():
                sessions.enter_context(closing(session))

    def __call__(self) -> Session:
        session = self._program.open()
        self._open[id(session)] = session
        return session

    def close(self, session: Session) -> None:
        self.forget(session)
        session.close()

    def forget(self, session: Session) -> None:
        del self._open[id(session)]

    def once(self, what: str, make: Callable[[], Shared]) -> Shared:
        if what not in self._shared:
            self._shared[what] = make()
        shared: Shared = self._shared[what]
        return shared
