"""Findings of a process are reported once, in the order in which they were made."""

from __future__ import annotations

from rnnbench.results import Finding, FindingKind
from rnnbench.worker.finding_log import FindingLog


def test_each_finding_is_taken_once_and_in_order() -> None:
    first, second, third = (Finding(kind=FindingKind.TIME, detail=detail) for detail in ("b", "a", "c"))
    log = FindingLog()
    log.add([first])
    log.add(iter([second]))
    assert log.take() == (first, second)
    assert log.take() == ()
    log.add([third])
    assert log.take() == (third,)
