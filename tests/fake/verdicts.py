"""The conformance checks, run on an adapter of a test's own."""

from __future__ import annotations

from pathlib import Path

from honest_adapter import HonestProgram, HonestSession

from rnnbench.backends.shared import of_one_step
from rnnbench.cases.trial import Trial
from rnnbench.conformance.checks import run_checks
from rnnbench.conformance.oracle import Oracle
from rnnbench.results.record import CheckFigure
from rnnbench.run.messages import request_of


def verdicts(trial: Trial, session: type[HonestSession], folder: Path) -> dict[str, CheckFigure]:
    """Of every check, on a program that opens such sessions."""

    class Program(HonestProgram):
        def open(self) -> HonestSession:
            return session(self)

    oracle = Oracle(trial, folder)
    request = request_of(trial, oracle.weights)
    program = Program(request, "digest", True, lambda: Program(of_one_step(request), "digest", True, program.tail))
    return dict(run_checks(program, oracle))


def failures(trial: Trial, session: type[HonestSession], folder: Path) -> dict[str, str]:
    """The checks that such a program fails, and why."""
    return {
        name: figure.detail for name, figure in verdicts(trial, session, folder).items() if figure.verdict == "fail"
    }
