"""What adapters say of programs with int8 weights, alike for all."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rnnbench.backends.base import OperationStage, Request
from rnnbench.rnn import FUSED

NOTES = {
    "": "Weights are int8, symmetric, with one scale for each matrix. Products are in float32.",
    "dynamic": "Weights are int8, symmetric, with one scale for each matrix. x and h are quantised to 8 bits in each "
    "call, by their range there.",
}
"""A note on a program's weights, by how activations enter products."""


def int8_notes(request: Request) -> tuple[str, ...]:
    """The note on a program with int8 weights; none for other programs."""
    return (NOTES[request.precision.activations],) if request.precision.weights == "int8" else ()


def int8_operations(
    request: Request, operations: Mapping[OperationStage, Mapping[str, int]], names: Collection[str]
) -> tuple[str, ...]:
    """Of a program with int8 weights, the compiled operations with one of these names: `Artifact.int8_operations`."""
    if request.precision.weights != "int8":
        return ()
    return tuple(name for name in operations.get(OperationStage.COMPILED, {}) if name in names)


def cut_matrix(request: Request) -> str:
    """Why the shared body of a cell cannot multiply by int8 weights; empty where it can."""
    if request.strategy.time != FUSED and request.stack.cell == "gru" and not request.stack.reset_after:
        return "A GRU that resets before its product cuts its recurrent matrix, and int8 has one scale for all of it."
    return ""
