"""The conformance checks, run on an adapter of a test's own."""

from __future__ import annotations

from pathlib import Path

from honest_adapter import HonestProgram, HonestSession

from rnnbench.backends import request_of
from rnnbench.backends.shared import of_one_step
from rnnbench.cases import Trial
from rnnbench.conformance import ReferenceTrajectories, run_checks
from rnnbench.results.record import CheckResult


def verdicts(trial: Trial, session: type[HonestSession], folder: Path) -> dict[str, CheckResult]:
    """Of every check, on a program that opens such sessions."""

    class Program(HonestProgram):
        def open(self) -> HonestSession:
            return session(self)

    reference = ReferenceTrajectories(trial, folder)
    request = request_of(trial, reference.weights)
    program = Program(request, "digest", True, lambda: Program(of_one_step(request), "digest", True, program.tail))
    return dict(run_checks(program, reference))


def failures(trial: Trial, session: type[HonestSession], folder: Path) -> dict[str, str]:
    """The checks that such a program fails, and why."""
    return {
        name: figure.detail for name, figure in verdicts(trial, session, folder).items() if figure.verdict == "fail"
    }
