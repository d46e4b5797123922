"""Checks of the arrays that go in and come out: who owns them, and their layout in memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rnnbench.backends import Arrays
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import FEW_CALLS, first_outputs, output_pairs
from rnnbench.conformance.tolerance import same_bits
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult


def _untouched(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    session = open_session()
    inputs = [{**chunk, "x": chunk["x"].copy()} for chunk in reference.ring]
    outputs = [session.step(chunk)["y"] for chunk in inputs[:FEW_CALLS]]
    states, given = session.get_state(), {name: array.copy() for name, array in reference.start.items()}
    outputs_before = [y.copy() for y in outputs]
    states_before = {name: array.copy() for name, array in states.items()}
    first_outputs(session, reference)
    if reference.is_stream:
        session.set_state(given)
    bound = session.bind(inputs)
    for _ in range(len(inputs) + 1):
        bound()
    output = bound.output()["y"]
    output_before = output.copy()
    bound()
    bound.sync()
    model, weights = reference.trial.model, reference.weights
    drawn_again = ReferenceTrajectories(reference.trial, reference.directory).weights
    return same_bits(
        [
            *((f"input x of chunk {i}", chunk["x"], reference.ring[i]["x"]) for i, chunk in enumerate(inputs)),
            *output_pairs("after later calls, earlier y of call", outputs, outputs_before),
            ("after a later bound call, an earlier output", output, output_before),
            *((f"after later calls, earlier state {name}", states[name], states_before[name]) for name in states),
            *((f"after later calls, the given state {name}", given[name], reference.start[name]) for name in given),
            *(
                (f"after all calls, weight {name}", used, drawn)
                for (name, used), (_, drawn) in zip(weights.named(model), drawn_again.named(model), strict=True)
            ),
        ]
    )


def _owned(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    session, undisturbed = open_session(), open_session()
    given = {name: array.copy() for name, array in reference.start.items()}
    if reference.is_stream:
        session.set_state(given)
        undisturbed.set_state(reference.start)
    _spoil(given)
    disturbed = []
    for chunk in reference.ring[:FEW_CALLS]:
        x = chunk["x"].copy()
        y = session.step({**chunk, "x": x})["y"]
        disturbed.append(y.copy())
        for arrays in ({"x": x}, {"y": y}, session.get_state()):
            _spoil(arrays)
    return same_bits(
        output_pairs(
            "with all arrays overwritten between the calls, y of call", disturbed, first_outputs(undisturbed, reference)
        )
    )


def _spoil(arrays: Arrays) -> None:
    """Overwrite the arrays that are writeable. A read-only copy is safe too."""
    for array in arrays.values():
        if array.flags.writeable:
            array.fill(7)


def _reversed(x: np.ndarray) -> np.ndarray:
    return x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]


def _strided(x: np.ndarray) -> np.ndarray:
    return np.repeat(x, 2, axis=2)[..., ::2]


def _transposed(x: np.ndarray) -> np.ndarray:
    return np.asfortranarray(x)


def _offset(x: np.ndarray) -> np.ndarray:
    """Aligned to its items, and to nothing wider."""
    memory = np.empty(x.nbytes + 64 + x.itemsize, np.uint8)
    start = -memory.ctypes.data % 64 + x.itemsize
    shifted = memory[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    shifted[...] = x
    return shifted


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "reversed in memory": _reversed,
    "every second item of another array": _strided,
    "in Fortran's order": _transposed,
    "off any vector's boundary": _offset,
}


def _layout(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    contiguous, laid_out_pairs = first_outputs(open_session(), reference), []
    for what, lay_out in LAYOUTS.items():
        session = open_session()
        got = [session.step({**chunk, "x": lay_out(chunk["x"])})["y"] for chunk in reference.ring[:FEW_CALLS]]
        laid_out_pairs += output_pairs(f"from an x that is {what}, y of call", got, contiguous)
    return same_bits(laid_out_pairs)


ARRAYS = (
    Check("untouched", "Inputs, weights, earlier outputs and earlier states stay as they were.", _untouched),
    Check("owned", "What a caller does to the arrays it gave and got changes nothing.", _owned),
    Check("layout", "An input may lie in memory in any order.", _layout),
)
