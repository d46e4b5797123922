"""The conformance checks, and running them on a program. They know sessions, not backends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

from rnnbench.backends.base import Program, Session
from rnnbench.conformance.arrays import ARRAYS
from rnnbench.conformance.check import Open
from rnnbench.conformance.core import CORE
from rnnbench.conformance.endurance import endurance
from rnnbench.conformance.exchange import EXCHANGE
from rnnbench.conformance.oracle import Oracle
from rnnbench.conformance.robustness import ROBUSTNESS
from rnnbench.results.record import CheckResult

CHECKS = (*CORE, *EXCHANGE, *ARRAYS, *ROBUSTNESS)
"""What every trial is put through. The checks of `endurance` come after them, where a trial has time for them."""
TIMED = "timed"
"""The check that follows sampling: the timed calls themselves, and the timed path from a given state again."""


def run_checks(program: Program, oracle: Oracle) -> Iterator[tuple[str, CheckResult]]:
    """Each check's name and verdict. A check that raises has failed, and says with what.

    Raises what the first check raises: a program that cannot run at all is not one that runs wrongly.
    """
    seconds = oracle.trial.limits.endurance
    for check in (*CHECKS, *(endurance(seconds) if seconds else ())):
        if check.streams_only and not oracle.streams:
            yield check.name, CheckResult(verdict="not-applicable", detail="state 'none' carries nothing between calls")
            continue
        with ExitStack() as sessions:
            try:
                yield check.name, check.run(_opener(program, sessions), oracle)
            except Exception as error:
                if check is CHECKS[0]:
                    raise
                yield check.name, CheckResult(verdict="fail", detail=f"raised {type(error).__name__}: {error}")


def _opener(program: Program, sessions: ExitStack) -> Open:
    def open_session() -> Session:
        return sessions.enter_context(closing(program.open()))

    return open_session
