"""Inputs and states in memory that the session has returned or was given before.

A caller does this who feeds outputs back, or who has one buffer for everything.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rnnbench.backends import Arrays
from rnnbench.conformance.definition import OpenSession
from rnnbench.conformance.feeding import FEW_CALLS, undisturbed_calls, undisturbed_outputs
from rnnbench.conformance.tolerance import Pair
from rnnbench.conformance.trajectories import ReferenceTrajectories


def with_memory_used_again(open_session: OpenSession, reference: ReferenceTrajectories) -> Iterator[Pair]:
    """Pairs of y: of calls with reused memory, and of the same calls with arrays of their own."""
    session, alone = open_session(), undisturbed_calls(open_session, reference).outputs
    y = session.step(reference.ring[0])["y"]
    for call, chunk in enumerate(reference.ring[1 : FEW_CALLS + 1], 1):
        y = session.step({**chunk, **placed({"x": chunk["x"]}, y)})["y"]
        yield f"with x in the memory of the last y, y of call {call}", y.copy(), alone[call]
    if not reference.is_stream:
        return
    expected, one_more, *_ = undisturbed_outputs(open_session, reference, from_start=True)
    session.set_state(placed(reference.start, y))
    yield "from a state in the memory of the last y, y", session.step(reference.ring[0])["y"], expected
    buffer = np.empty(sum(map(np.size, (*reference.start.values(), reference.x))), reference.x.dtype)
    session.set_state(placed(reference.start, buffer))
    outputs = [session.step(placed({"x": chunk["x"]}, buffer))["y"] for chunk in reference.ring[:2]]
    for call, (y, right) in enumerate(zip(outputs, (expected, one_more), strict=True)):
        yield f"with the state and then x in one buffer, y of call {call}", y, right


def placed(arrays: Arrays, memory: np.ndarray) -> Arrays:
    """Copies of the arrays. Those of the dtype of `memory` are placed in it one after the other while there is room."""
    at, laid = 0, dict[str, np.ndarray]()
    for name, array in arrays.items():
        laid[name] = array.copy()
        if array.dtype == memory.dtype and at + array.size <= memory.size and memory.flags.c_contiguous:
            laid[name] = memory.reshape(-1)[at : at + array.size].reshape(array.shape)
            laid[name][...] = array
            at += array.size
    return laid
