"""What a conformance check is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rnnbench.backends import Session
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult

Shared = TypeVar("Shared")
RAISED = "raised "
"""How the detail of a check begins that ended with an exception."""


class OpenSession(Protocol):
    """Opens a new session of the program. It is closed when the check ends."""

    def __call__(self) -> Session: ...

    def close(self, session: Session) -> None:
        """Close a session now and forget it. A check that opens very many would hold them all otherwise."""
        ...

    def forget(self, session: Session) -> None:
        """Let go of a session that the check leaves open."""
        ...

    def once(self, what: str, make: Callable[[], Shared]) -> Shared:
        """What `make` gives the first time that a check asks for `what`. All checks of a program share it."""
        ...


@dataclass(frozen=True)
class Check:
    """One check of a program. To add one, write its function and add an entry to a tuple that `suite.CHECKS` joins."""

    name: str
    """Name in records, in tables and in `expectations.yaml`."""
    sentence: str
    """What holds of a program that passes."""
    run: Callable[[OpenSession, ReferenceTrajectories], CheckResult]
    """Gives the result. An exception is a failure too."""
    streams_only: bool = False
    """Not applicable where the state is `none`, because nothing is carried from call to call."""
    compares: bool = False
    """Compares answers with the reference: a program that computes wrongly may fail it, too."""
    long_running: bool = False
    """Runs only in trials with `limits.endurance`, the seconds that it may take."""
    begin: Callable[[OpenSession, ReferenceTrajectories], Callable[[], CheckResult]] | None = None
    """Of a check that spans the others: what begins it after the first one. It returns what ends it, in its turn."""
