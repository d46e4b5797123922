"""The artifact of a build: what the compiler left behind. One type for adapters, workers and records."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from rnnbench.outside_text import OutsideText
from rnnbench.results.frozen_model import FrozenModel

Origin = Literal["library", "imported", "authored", "kernel"]
"""Who wrote the program.

- library: the runtime's own RNN operator.
- imported: a framework's model, through an importer.
- authored: IR written in this suite, which the compiler schedules.
- kernel: a loop nest written by hand in this suite, with its tiling and activations. It measures this suite's skill and
  not a compiler's, so no ranking puts it beside a compiler.
"""
Math = Literal["exact", "approximate"]


class OperationStage(StrEnum):
    """Where in a build operations were counted. Every adapter uses these names, so that tables have one column each."""

    INPUT = "input"
    """In the IR that the compiler was given."""
    COMPILED = "compiled"
    """In what the compiler made of it."""


class Artifact(FrozenModel):
    """What a build left behind. It is read off the artifact itself, not off the request."""

    source_digest: OutsideText
    """SHA-256 of the IR before the compiler."""
    digest: OutsideText = ""
    """SHA-256 of what came out and of the weights. Equal digests are the same program. The suite computes it of the
    program's files, and so does it `nbytes`: adapters give neither."""
    nbytes: int = 0
    """Size of the program's files in bytes, weights included."""
    operations: dict[OperationStage, dict[OutsideText, int]]
    """Number of operations by stage and name: {"input": {"linalg.matmul": 1}, "compiled": {"dispatches": 4}}."""
    lowered: OutsideText
    """The form of the compiled program: one of these, or several joined by ` + `.

    `fused`; `looped n` (n loops); `looped n of k` (n loops over k copies of the cell); `unrolled n` (n copies);
    `parallel n` (n scans); `chunked n of k` (n blocks of k steps in loops); `chunked n` (n blocks outside of loops).
    """
    int8_operations: tuple[OutsideText, ...] = ()
    """Compiled operations that multiply by int8 weights. Needed where int8 weights are requested."""
    origin: Origin
    math: Math
    """Whether activations are exact or an approximation."""
    flags: tuple[OutsideText, ...] = ()
    """Compiler flags and target."""
    notes: tuple[OutsideText, ...] = ()
    """Optimisations that a reader should know of, a sentence each."""
    hoisted: int | None = None
    """Steps that share one reading of the input weights: 1 where each step reads them, the chunk where one call
    projects all its steps at once. None where this is not known; the floor then counts one reading a call."""
