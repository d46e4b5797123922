"""Claims of adapters about their artifacts, held against what can be counted or timed in a second way.

A rule compares one program with itself, or programs of one target and strategy at two chunks. Its numbers leave room
for every honest program that this suite knows: `tests/results/test_claims.py` runs the rules over the committed runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from rnnbench.results.artifact import Artifact, OperationStage
from rnnbench.results.lowered_form import LoweredForm, parse_lowered
from rnnbench.results.record import Record

FEWEST_COPIES = 8
"""Copies of the cell from which they are counted: below, what a program has once can hide them."""
COPIES_SHARE = 0.5
"""The least operations for each copy. A copy of a gated cell has a product at the least; compilers fold the first ones
away, where the state is zeros."""
SPREAD = 4
"""How much larger the larger of two chunks is: what programs have once then weighs little."""
HALFWAY = 0.5
"""The power of the chunk by which operations grow: 1 in copies, 0 in a loop. Programs of copies were seen between 0.8
and 1, loops between 0 and 0.13."""
FLOOR_SHARE = 0.7
"""The share of the floor that a step may take before a claim that raises the floor is dropped: the rates that the floor
is made of are measured, and scatter by 10 to 20 %."""
WEIGHTS_SHARE = 0.5
"""The least size of a program's files, as a share of the bytes of its weights. No program was seen below 0.99; numbers
that are drawn cannot be compressed by much."""
SMALL_WEIGHTS = 1 << 16
"""Bytes of weights up to which the size of files is not compared with them: nobody asks for the size of such a program.
"""


class Claim(StrEnum):
    """What is claimed."""

    LOWERED = "lowered"
    HOISTED = "hoisted"
    SIZE = "size"


@dataclass(frozen=True)
class Contradiction:
    """A claim that cannot be."""

    trial: str
    claim: Claim
    detail: str


def contradictions(records: Sequence[Record]) -> list[Contradiction]:
    """Every claim of these records that something else contradicts."""
    contradictions = [
        contradiction
        for record in records
        for contradiction in (*_too_few_operations(record), *_without_weights(record))
    ]
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        if record.artifact is not None:
            params = record.params.model_dump_json(exclude={"chunk"})
            groups.setdefault((record.case, record.target, params), []).append(record)
    for group in groups.values():
        for smaller, larger in combinations(sorted(group, key=lambda one: one.params.chunk), 2):
            contradictions += (*_growth(smaller, larger), *_hoisted(smaller, larger))
    return contradictions


def _too_few_operations(record: Record) -> Iterator[Contradiction]:
    """A program has about one operation or more for each copy of the cell. A counter's copies may be fused into one."""
    artifact = record.artifact
    form = parse_lowered(artifact.lowered) if artifact else None
    if artifact is None or form is None or form.copies < FEWEST_COPIES or record.params.model.get("cell") == "counter":
        return
    operations = compiled_operations(artifact)
    if 0 < operations < COPIES_SHARE * form.copies:
        detail = f"lowered `{artifact.lowered}`, with {operations} compiled operations for {form.copies} copies"
        yield Contradiction(record.trial, Claim.LOWERED, detail)


def _without_weights(record: Record) -> Iterator[Contradiction]:
    """A program's weights are in its files. A user's model file may have them in another form."""
    artifact, floor = record.artifact, record.floor
    if artifact is None or floor is None or floor.weights <= SMALL_WEIGHTS or "file" in record.params.model:
        return
    if artifact.nbytes < WEIGHTS_SHARE * floor.weights:
        detail = (
            f"its files have {artifact.nbytes:,} bytes, and its weights take {floor.weights:,}: it is loaded from more "
            "than the adapter says"
        )
        yield Contradiction(record.trial, Claim.SIZE, detail)


def _growth(smaller: Record, larger: Record) -> Iterator[Contradiction]:
    """Operations grow with the copies of the cell, and not with the passes of a loop."""
    small, large = smaller.artifact, larger.artifact
    few, many = smaller.params.chunk, larger.params.chunk
    if small is None or large is None or few < FEWEST_COPIES or many < SPREAD * few:
        return
    forms = parse_lowered(small.lowered), parse_lowered(large.lowered)
    before, after = compiled_operations(small), compiled_operations(large)
    if not before or not after:
        return
    power = math.log(after / before) / math.log(many / few)
    loops = _is_loop(forms[0]) and forms[0] == forms[1]
    copies = _is_copies(forms[0], few) and _is_copies(forms[1], many)
    if (loops and power > HALFWAY) or (copies and power < HALFWAY):
        grown = f"its compiled operations go from {before} to {after} from chunk {few} to {many}"
        yield Contradiction(larger.trial, Claim.LOWERED, f"lowered `{large.lowered}`, while {grown}")


def _hoisted(smaller: Record, larger: Record) -> Iterator[Contradiction]:
    """A step cannot take less than its part of the floor: where it does, a claim that raises the floor is wrong."""
    chunks = smaller.params.chunk, larger.params.chunk
    hoisted = larger.artifact.hoisted if larger.artifact else None
    times = [bound.median for record in (smaller, larger) if (bound := record.latency("bound")) is not None]
    floors = [record.floor.seconds for record in (smaller, larger) if record.floor and record.floor.seconds is not None]
    if hoisted in (None, chunks[1]) or chunks[0] == chunks[1] or len(times) < 2 or len(floors) < 2:
        return
    steps = chunks[1] - chunks[0]
    step, floor = (times[1] - times[0]) / steps, (floors[1] - floors[0]) / steps
    if step < FLOOR_SHARE * floor:
        detail = (
            f"hoisted {hoisted}, while a step takes {step:.3g} s, and {floor:.3g} s at the least by that claim "
            f"(chunks {chunks[0]} and {chunks[1]}): its floor is that of one reading a call"
        )
        yield Contradiction(larger.trial, Claim.HOISTED, detail)


def compiled_operations(artifact: Artifact) -> int:
    return sum(artifact.operations.get(OperationStage.COMPILED, {}).values())


def _is_loop(form: LoweredForm | None) -> bool:
    return form is not None and form.loops > 0 and not form.fused and not form.copies


def _is_copies(form: LoweredForm | None, chunk: int) -> bool:
    """Whether a form is copies of the cell alone, one for each step at the least."""
    return form is not None and not form.fused and not form.loops and form.copies >= chunk
