"""What adapters say of programs with int8 weights, alike for all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from rnnbench.backends.base import OperationStage, Request
from rnnbench.measure import processor_features
from rnnbench.rnn import FUSED

NOTES = {
    "": "Weights are int8, symmetric, with one scale for each matrix. Products are in float32.",
    "dynamic": "Weights are int8, symmetric, with one scale for each matrix. x and h are quantised to 8 bits in each "
    "call, by their range there.",
    "static": "Weights are int8, symmetric, with one scale for each matrix. x and h are quantised to 8 bits by "
    "constants of the program, which the suite calibrated, and saturate beyond.",
}
"""A note on a program's weights, by how activations enter products."""
VNNI = frozenset({"avx512_vnni", "avx_vnni"})
"""Linux' names of the instructions that add products of bytes in 32 bits."""


def overflows() -> bool:
    """Whether a sum of two products of an unsigned and a signed byte saturates on this processor.

    AVX2 without VNNI has 16 bits for it, and 2·255·127 needs 17.
    """
    features = processor_features()
    return "avx2" in features and not features & VNNI


def without_overflow(q: np.ndarray) -> tuple[np.ndarray, np.generic[Any]]:
    """The bytes of int8 weights and their zero point, for products by unsigned bytes that add in 32 bits.

    They are unsigned where products with signed ones overflow.
    """
    if overflows():
        return (q.astype(np.int16) + 128).astype(np.uint8), np.uint8(128)
    return q, np.int8(0)


def int8_notes(request: Request) -> tuple[str, ...]:
    """The note on a program with int8 weights; none for other programs."""
    return (NOTES[request.precision.activations],) if request.precision.weights == "int8" else ()


def int8_operations(
    request: Request, operations: Mapping[OperationStage, Mapping[str, int]], names: Collection[str]
) -> tuple[str, ...]:
    """The compiled operations with one of these names in a program with int8 weights: `Artifact.int8_operations`."""
    if request.precision.weights != "int8":
        return ()
    return tuple(name for name in operations.get(OperationStage.COMPILED, {}) if name in names)


def cut_matrix(request: Request) -> str:
    """Why the shared body of a cell cannot multiply by int8 weights; empty where it can."""
    if request.strategy.time != FUSED and request.stack.cell == "gru" and not request.stack.reset_after:
        return "A GRU that resets before its product cuts its recurrent matrix, and int8 has one scale for all of it."
    return ""
