"""From counts of operations to `Artifact.lowered`: how the time steps of a program were lowered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rnnbench.rnn import Model


def cell_copies(model: Model, counts: Mapping[str, int]) -> int:
    """The number of copies of the cell, by an operation that only cells contain, and a known number of times each."""
    if model.cell == "counter":
        return counts.get("add", 0)
    return counts.get(model.activation, 0) // (2 if model.cell == "lstm" else 1)


def lowered(loops: Sequence[int], copies: int) -> str:
    """`loops` has, for each loop, the copies of the cell in one pass. `copies` is the number of those outside loops."""
    loops_by_size = sorted(Counter(loops).items())
    parts = [f"looped {count}" if size == 1 else f"looped {count} of {size}" for size, count in loops_by_size]
    return " + ".join(parts + ([f"unrolled {copies}"] if copies or not loops else []))
