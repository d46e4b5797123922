"""The findings that a process has not reported yet. The parts of a worker share one log."""

from __future__ import annotations

from collections.abc import Iterable

from rnnbench.results import Finding


class FindingLog:
    """Findings in the order in which they were made."""

    def __init__(self) -> None:
        self._waiting: list[Finding] = []

    def add(self, findings: Iterable[Finding]) -> None:
        self._waiting += findings

    def take(self) -> tuple[Finding, ...]:
        """The findings since the last call of this method."""
        taken, self._waiting = tuple(self._waiting), []
        return taken
