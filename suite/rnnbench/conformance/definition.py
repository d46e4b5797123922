"""The definition of a conformance check: its function, and the sessions that it may open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rnnbench.backends import Session
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult

Shared = TypeVar("Shared")
RAISED = "raised "
"""The beginning of the detail of a check that raised an exception."""


class OpenSession(Protocol):
    """Opens a new session of the program. It is closed when the check ends."""

    def __call__(self) -> Session: ...

    def close(self, session: Session) -> None:
        """Close a session before the check ends. Otherwise a check that opens many would hold all of them."""
        ...

    def forget(self, session: Session) -> None:
        """Do not close this session at the end of the check."""
        ...

    def once(self, what: str, make: Callable[[], Shared]) -> Shared:
        """The result of `make` when a check first asked for `what`. All checks of a program share it."""
        ...


@dataclass(frozen=True)
class Check:
    """One check of a program. To add one, write its function and add an entry to a tuple that `suite.CHECKS` joins."""

    name: str
    """Its name in records, in tables and in `expectations.yaml`."""
    sentence: str
    """A statement that is true of a program that passes."""
    run: Callable[[OpenSession, ReferenceTrajectories], CheckResult]
    """Returns the result. An exception is a failure too."""
    streams_only: bool = False
    """Whether it does not apply to state `none`, where nothing is carried from call to call."""
    compares: bool = False
    """Whether it compares numbers with the reference, so that any wrong computation may fail it."""
    long_running: bool = False
    """Whether it runs only in trials with `limits.endurance`, the seconds that it may take."""
    begin: Callable[[OpenSession, ReferenceTrajectories], Callable[[], CheckResult]] | None = None
    """For a check that spans the other checks: begins it after the first check, and returns the function that ends it.
    """
