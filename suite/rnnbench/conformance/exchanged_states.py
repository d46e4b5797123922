"""The check of exchanged states: those of the reference, and of another backend that this run has checked before."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rnnbench.backends import Arrays
from rnnbench.conformance.array_files import key_digest, load_arrays, save_arrays
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import FEW_CALLS, compare_with_run
from rnnbench.conformance.tolerance import Errors
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.disk import read_cached
from rnnbench.results import CheckResult


def _exchange(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Continue the stream's second half from each source's state after the first half, and compare with the reference.

    The reference starts from the same arrays, so one backend's error never counts against another.
    """
    half = reference.trial.steps // 2
    if half == 0:
        return CheckResult(verdict="not-applicable", detail="a stream of one step has no middle")
    errors, rest = Errors(), reference.x[half : half + FEW_CALLS * reference.trial.strategy.chunk]
    sources = {"the reference": _reference_state(reference, half), **_saved_state(reference, half)}
    for source, state in sources.items():
        expected = reference.run(rest, state)
        session = open_session()
        session.set_state(state)
        compare_with_run(errors, f"from the state of {source}", session.step({"x": rest})["y"], expected)
    verdict = errors.verdict()
    if verdict.verdict == "fail":
        return verdict
    session = open_session()
    session.step({"x": reference.x[:half]})
    _save(reference, session.get_state(), half)
    return verdict.model_copy(update={"detail": verdict.detail or f"from the state of {', '.join(sources)}"})


def _reference_state(reference: ReferenceTrajectories, steps: int) -> dict[str, np.ndarray]:
    """The reference's state after `steps` steps from zeros, rounded to the dtype that sessions exchange."""
    states = reference.from_zeros().states
    assert states is not None, "a stream runs forward"
    return {name: array[steps - 1].astype(reference.start[name].dtype) for name, array in states.items()}


def _is_right(reference: ReferenceTrajectories, state: Arrays, steps: int) -> bool:
    """Whether a state has the shapes, dtypes and numbers of the reference's after `steps` steps.

    A wrong state must not be used: it would make other backends fail.
    """
    exact, errors = _reference_state(reference, steps), Errors()
    if {name: (a.shape, a.dtype) for name, a in state.items()} != {n: (a.shape, a.dtype) for n, a in exact.items()}:
        return False
    for name, array in state.items():
        errors.add(name, array, exact[name], reference.rounding_at(steps - 1, name))
    return errors.verdict().verdict != "fail" and all(np.isfinite(array).all() for array in state.values())


def _saved_state(reference: ReferenceTrajectories, steps: int) -> dict[str, Arrays]:
    """A right state that another backend has saved, by the backend's name; empty if there is none."""
    this_backend = reference.trial.target.backend
    for path in sorted(_folder(reference).glob("*.npz")):
        state = None if path.stem == this_backend else read_cached(path, load_arrays)
        if state is not None and _is_right(reference, state, steps):
            return {path.stem: state}
    return {}


def _save(reference: ReferenceTrajectories, state: Arrays, steps: int) -> None:
    """Save a state for the trials of other backends, if it is right. The first state of each backend is kept."""
    path = _folder(reference) / f"{reference.trial.target.backend}.npz"
    if _is_right(reference, state, steps) and read_cached(path, load_arrays) is None:
        save_arrays(path, state)


def _folder(reference: ReferenceTrajectories) -> Path:
    """The folder of saved states of this trial's model and stream, beside the reference's files."""
    return reference.directory / f"states-{key_digest(reference.stream_key)}"


EXCHANGED_STATES = (
    Check(
        "exchange",
        "A state of the reference, or of another backend, continues here.",
        _exchange,
        streams_only=True,
        compares=True,
    ),
)
