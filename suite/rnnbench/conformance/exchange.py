"""States that come from elsewhere: from the reference, and from another backend that this run has checked before."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np

from rnnbench.backends.base import Arrays
from rnnbench.conformance.check import FEW, Check, Open
from rnnbench.conformance.oracle import Oracle
from rnnbench.conformance.tolerance import Errors
from rnnbench.results.record import CheckResult


def _exchange(open_session: Open, oracle: Oracle) -> CheckResult:
    """The rest of the stream from each state that others have after its first half, against the reference from there.

    The reference starts from the very arrays, so another's error is never held against this one.
    """
    half = oracle.trial.steps // 2
    if half == 0:
        return CheckResult(verdict="not-applicable", detail="a stream of one step has no middle")
    errors, rest = Errors(), oracle.x[half : half + FEW * oracle.trial.strategy.chunk]
    givers = {"the reference": _of_reference(oracle, half), **_of_others(oracle)}
    for giver, state in givers.items():
        session, expected = open_session(), oracle.answer(f"rest of {oracle.trial.steps} {_digest(state)}", rest, state)
        session.set_state(state)
        y = session.step({"x": rest})["y"]
        for step, (got, exact, rounding) in enumerate(zip(y, expected.y, expected.rounding, strict=True)):
            errors.add(f"y at step {step} from the state of {giver}", got, exact, float(rounding))
    verdict = errors.verdict()
    if verdict.verdict == "fail":
        return verdict
    own = open_session()
    own.step({"x": oracle.x[:half]})
    _leave(oracle, own.get_state())
    return verdict.model_copy(update={"detail": verdict.detail or f"from the state of {', '.join(givers)}"})


def _digest(state: Arrays) -> str:
    """Of its values: what a backend leaves is its own, to the bit."""
    return hashlib.sha256(b"".join(state[name].tobytes() for name in sorted(state))).hexdigest()[:16]


def _of_reference(oracle: Oracle, steps: int) -> dict[str, np.ndarray]:
    """The reference's own state after so many steps from zeros, rounded to the type that sessions exchange."""
    visited = oracle.from_zeros().states
    assert visited is not None, "a stream runs forward"
    return {name: array[steps - 1].astype(oracle.start[name].dtype) for name, array in visited.items()}


def _of_others(oracle: Oracle) -> dict[str, Arrays]:
    """What one other backend, if any, has left."""
    own = oracle.trial.target.backend
    for path in sorted(_folder(oracle).glob("*.npz")):
        if path.stem != own:
            with np.load(path) as arrays:
                return {path.stem: dict(arrays)}
    return {}


def _leave(oracle: Oracle, state: Arrays) -> None:
    """Leave a state for the trials of other backends. The first one of a backend stays."""
    path = _folder(oracle) / f"{oracle.trial.target.backend}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.stem}.{os.getpid()}.partial")
        with partial.open("wb") as file:
            np.savez(file, **state)  # type: ignore[arg-type]  # its one option could be shadowed; no array is so named
        partial.replace(path)


def _folder(oracle: Oracle) -> Path:
    """Where the states of this trial's model and stream are left, beside the oracle's own files."""
    digest = hashlib.sha256(json.dumps(oracle.stream_key, sort_keys=True).encode()).hexdigest()[:16]
    return oracle.directory / f"states-{digest}"


EXCHANGE = (
    Check("exchange", "A state that the reference or another backend has come to goes on here.", _exchange, True),
)
