"""Checks of the arrays that go in and come out: whose they are, and how they may lie in memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rnnbench.backends.base import Arrays
from rnnbench.conformance.check import FEW, Check, Open, few, pairs
from rnnbench.conformance.oracle import Oracle
from rnnbench.conformance.tolerance import same_bits
from rnnbench.results.record import CheckResult


def _untouched(open_session: Open, oracle: Oracle) -> CheckResult:
    session = open_session()
    inputs = [{**chunk, "x": chunk["x"].copy()} for chunk in oracle.ring]
    outputs = [session.step(chunk)["y"] for chunk in inputs[:FEW]]
    states, given = session.get_state(), {name: array.copy() for name, array in oracle.start.items()}
    outputs_then = [y.copy() for y in outputs]
    states_then = {name: array.copy() for name, array in states.items()}
    few(session, oracle)
    if oracle.streams:
        session.set_state(given)
    bound = session.bind(inputs)
    for _ in range(len(inputs) + 1):
        bound()
    output = bound.output()["y"]
    output_then = output.copy()
    bound()
    bound.sync()
    model, anew = oracle.trial.model, Oracle(oracle.trial, oracle.directory)
    return same_bits(
        [
            *((f"input x of chunk {i}", chunk["x"], oracle.ring[i]["x"]) for i, chunk in enumerate(inputs)),
            *pairs("after later calls, earlier y of call", outputs, outputs_then),
            ("after a later bound call, an earlier output", output, output_then),
            *((f"after later calls, earlier state {name}", states[name], states_then[name]) for name in states),
            *((f"after later calls, the given state {name}", given[name], oracle.start[name]) for name in given),
            *(
                (f"after all calls, weight {name}", given_to_it, drawn)
                for (name, given_to_it), (_, drawn) in zip(
                    oracle.weights.named(model), anew.weights.named(model), strict=True
                )
            ),
        ]
    )


def _owned(open_session: Open, oracle: Oracle) -> CheckResult:
    session, undisturbed = open_session(), open_session()
    given = {name: array.copy() for name, array in oracle.start.items()}
    if oracle.streams:
        session.set_state(given)
        undisturbed.set_state(oracle.start)
    _spoil(given)
    disturbed = []
    for chunk in oracle.ring[:FEW]:
        x = chunk["x"].copy()
        y = session.step({**chunk, "x": x})["y"]
        disturbed.append(y.copy())
        for arrays in ({"x": x}, {"y": y}, session.get_state()):
            _spoil(arrays)
    return same_bits(
        pairs("with all arrays overwritten between the calls, y of call", disturbed, few(undisturbed, oracle))
    )


def _spoil(arrays: Arrays) -> None:
    """Overwrite what may be written to: a copy that is read-only is safe as well."""
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
    """On its items' boundary, and on no wider one."""
    room = np.empty(x.nbytes + 64 + x.itemsize, np.uint8)
    start = -room.ctypes.data % 64 + x.itemsize
    shifted = room[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    shifted[...] = x
    return shifted


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "reversed in memory": _reversed,
    "every second item of another array": _strided,
    "in Fortran's order": _transposed,
    "off any vector's boundary": _offset,
}


def _layout(open_session: Open, oracle: Oracle) -> CheckResult:
    plain, laid_out_pairs = few(open_session(), oracle), []
    for what, laid_out in LAYOUTS.items():
        session = open_session()
        got = [session.step({**chunk, "x": laid_out(chunk["x"])})["y"] for chunk in oracle.ring[:FEW]]
        laid_out_pairs += pairs(f"from an x that is {what}, y of call", got, plain)
    return same_bits(laid_out_pairs)


ARRAYS = (
    Check("untouched", "Inputs, weights, earlier outputs and earlier states stay as they were.", _untouched),
    Check("owned", "What a caller does to the arrays it gave and got changes nothing.", _owned),
    Check("layout", "An input may lie in memory in any order.", _layout),
)
