"""The check of rings: several in one session, long ones, and rings that are bound one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnnbench.backends import Arrays, Bound, Session
from rnnbench.conformance.definition import Check, OpenSession
from rnnbench.conformance.feeding import FEW_CALLS, aligned, called, output_pairs, undisturbed_bound_outputs
from rnnbench.conformance.ring_trajectory import RING
from rnnbench.conformance.tolerance import Errors, same_bits, worst
from rnnbench.conformance.trajectories import ReferenceTrajectories
from rnnbench.results import CheckResult

PUBLIC = "p"
"""The letter in a plan for a call of the public path."""


@dataclass(frozen=True)
class RingPlan:
    """The order in which several bound rings and the public path make the calls of one stream.

    Each letter of `calls` is a call of the bound ring of that name, or PUBLIC. The calls feed the reference's ring in
    its order.
    """

    calls: str
    late: bool = False
    """Whether a ring is bound just before its first call of each pass. Otherwise all are bound before the start."""
    covered: int = RING
    """A ring has the chunks of its calls among the first `covered` calls of the plan."""


RING_PLANS = (
    RingPlan(2 * "ABABABAB"),
    RingPlan(2 * "AAABBABA", late=True),
    RingPlan("ApBBApBp"),
    RingPlan("ABCDEFGH", late=True),
    RingPlan("AAAAAAABBBBBBCCC", covered=16),
    RingPlan("AAABAAAAAAAAAAAA", covered=16),
)
"""Their rings have each number of chunks from 1 to 7, and RING of them. The last plan has a ring of more, not in the
order of RING."""
MANY = 34
"""Chunks of one ring, and rings of one session: more than tables of 16 or 32 entries hold."""
SAME = MANY - 5
"""The index of a chunk in the ring of MANY chunks that is repeated right after it."""
SHORT, SHORT_CALLS = (1, 2), 10
"""Chunks of short rings, and the calls of each: many passes over it."""
COMPARED_FROM = SAME - 1
"""The first call that is compared with RING rings. `start` is set before it, so that they need no earlier calls.
Earlier calls are compared with each other."""


def _rings(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    errors = Errors()
    for plan in RING_PLANS:
        session = open_session()
        _follow(plan, session, errors, reference)
        open_session.close(session)
    verdict = errors.verdict()
    if verdict.verdict == "fail":
        return verdict
    return worst(verdict, _many(open_session, reference), _bound_anew(open_session, reference))


def _many(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """One ring of MANY chunks, and MANY rings of one chunk each, must give the same as RING rings at the end.

    Then passes over a short ring must give the same as one pass over a ring that has its chunks over and over.
    """
    order = [(number + number // RING) % RING for number in range(MANY)]
    order[SAME + 1] = order[SAME]
    sessions = [open_session() for _ in range(3)]
    few = [sessions[0].bind([chunk]) for chunk in reference.ring]
    ring = sessions[1].bind([reference.ring[index] for index in order])
    rings = [sessions[2].bind([reference.ring[index]]) for index in order]
    pairs = []
    for number, index in enumerate(order):
        if number == COMPARED_FROM and reference.is_stream:
            for session in sessions:
                session.set_state(reference.start)
        y, y_of_rings = called(ring), called(rings[number])
        expected = called(few[index]) if number >= COMPARED_FROM else y
        pairs.append((f"of a ring of {MANY} chunks, y of call {number}", y, expected))
        pairs.append((f"of {MANY} rings in one session, y of call {number}", y_of_rings, expected))
    for chunks in SHORT:
        once = [reference.ring[call % chunks] for call in range(SHORT_CALLS)]
        outputs = []
        for session, ring_of_session in zip(sessions, (reference.ring[:chunks], once), strict=False):
            bound = session.bind(ring_of_session)
            session.reset()
            outputs.append([called(bound) for _ in once])
        pairs += output_pairs(f"of a ring of {chunks} chunks over and over, y of call", *outputs)
    return same_bits(pairs)


def _bound_anew(open_session: OpenSession, reference: ReferenceTrajectories) -> CheckResult:
    """Bind rings in one session one after the other, from the same refilled buffers, and with the same first and last
    chunk.

    Each must give the same as in a session whose rings have arrays of their own.
    """
    session, fresh = open_session(), open_session()
    one, other = reference.ring[:FEW_CALLS], reference.ring[FEW_CALLS : 2 * FEW_CALLS]
    buffers = [{name: aligned(array) for name, array in chunk.items()} for chunk in one]
    pairs = []

    def compare(what: str, chunks: Sequence[Arrays], expected: Sequence[np.ndarray]) -> None:
        for buffer, chunk in zip(buffers, chunks, strict=True):
            for name, array in chunk.items():
                np.copyto(buffer[name], array)
        bound = session.bind(buffers)
        for call, y in enumerate(expected):
            pairs.append((f"of a ring in {what} buffers, y of call {call}", called(bound), y))

    undisturbed = undisturbed_bound_outputs(open_session, reference)
    compare("", one, undisturbed[:FEW_CALLS])
    compare("refilled", other, undisturbed[FEW_CALLS:])
    session.reset()  # `fresh` makes the calls that follow too, and has not bound a similar ring before.
    half_refilled = (other[0], one[1], other[2])
    fresh_ring = fresh.bind(half_refilled)
    compare("half refilled", half_refilled, [called(fresh_ring) for _ in half_refilled])
    # A ring that is bound a second time, after one call, begins with its first chunk again.
    for count, when in enumerate(("first", "second"), 1):
        y, expected_y = called(session.bind(reference.ring)), called(fresh.bind(reference.ring[:count]))
        pairs.append((f"of a ring that is bound for the {when} time, y of its first call", y, expected_y))
    return same_bits(pairs)


def _follow(plan: RingPlan, session: Session, errors: Errors, reference: ReferenceTrajectories) -> None:
    """Make the calls of a plan and compare them. The state is set once, at the start."""
    exact, chunk = reference.ring_trajectory, reference.trial.strategy.chunk
    where = f"with the ring's calls shared as {plan.calls}, {'bound late' if plan.late else 'all bound before'}"
    rings = {
        name: [reference.ring[i % RING] for i in range(plan.covered) if plan.calls[i] == name]
        for name in set(plan.calls) - {PUBLIC}
    }
    bound: dict[str, Bound] = {} if plan.late else {name: session.bind(ring) for name, ring in rings.items()}
    if reference.is_stream:
        session.set_state(reference.start)
    for call, name in enumerate(plan.calls):
        if plan.late and call % RING == plan.calls.index(name) and name != PUBLIC:
            bound[name] = session.bind(rings[name])
        y = session.step(reference.ring[call % RING])["y"] if name == PUBLIC else called(bound[name])
        rounding = reference.rounding_at((call + 1 if reference.is_stream else 1) * chunk - 1)
        errors.add(f"y of call {call} {where}", y, exact.y[call % len(exact.y)], rounding)
    calls = len(plan.calls)
    for name, array in session.get_state().items():
        rounding = reference.rounding_at(calls * chunk - 1, name)
        errors.add(f"state {name} at the end {where}", array, exact.states[name][calls - 1], rounding)


RINGS = (
    Check(
        "rings",
        "Rings that are bound in one session, and its public path, share one stream in any order.",
        _rings,
        compares=True,
    ),
)
