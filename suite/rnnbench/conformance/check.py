"""What a check is, and the few ways of feeding a session that checks share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rnnbench.backends.base import Bound, Session
from rnnbench.conformance.oracle import Oracle
from rnnbench.conformance.tolerance import Errors
from rnnbench.results.record import CheckResult

FEW = 3
"""Calls that the bitwise checks run before and after what they look at: a fault of the second or third call shows."""

Open = Callable[[], Session]
"""Opens a session that is closed when the check ends."""


@dataclass(frozen=True)
class Check:
    name: str
    sentence: str
    run: Callable[[Open, Oracle], CheckResult]
    streams_only: bool = False
    """Not applicable where the state is `none`: there is nothing to carry from call to call."""


def worst(*figures: CheckResult) -> CheckResult:
    """Of several verdicts the one that weighs most, and of equal ones that with the largest error."""
    weight = {"not-applicable": 0, "pass": 1, "chaotic": 2, "fail": 3}
    return max(figures, key=lambda figure: (weight[figure.verdict], figure.rounding or 0.0))


def stream(session: Session, oracle: Oracle) -> np.ndarray:
    """y of the whole stream, fed in calls of the program's own chunk, a ragged rest last."""
    chunk = oracle.trial.strategy.chunk
    return np.concatenate(
        [session.step({"x": oracle.x[at : at + chunk]})["y"] for at in range(0, len(oracle.x), chunk)]
    )


def few(session: Session, oracle: Oracle) -> list[np.ndarray]:
    return [session.step(chunk)["y"] for chunk in oracle.ring[:FEW]]


def bound_few(bound: Bound, beside: Bound | None = None) -> list[np.ndarray]:
    """y of the first bound calls, with a call of another session's between any two."""
    outputs = []
    for _ in range(FEW):
        bound()
        if beside is not None:
            beside()
        outputs.append(bound.output()["y"])
    return outputs


def pairs(what: str, got: list[np.ndarray], expected: list[np.ndarray]) -> list[tuple[str, np.ndarray, np.ndarray]]:
    return [(f"{what} {index}", a, b) for index, (a, b) in enumerate(zip(got, expected, strict=True))]


def compare_steps(errors: Errors, what: str, y: np.ndarray, exact: np.ndarray, oracle: Oracle) -> None:
    if y.shape != exact.shape:
        errors.add(what, y, exact, 0.0)
        return
    for step in range(len(exact)):
        errors.add(f"{what} at step {step}", y[step], exact[step], oracle.rounding_at(step))
