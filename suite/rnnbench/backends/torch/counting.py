"""From counts of operations in a program to what its steps became, as `Artifact.lowered` has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rnnbench.rnn.spec import Model


def steps_in(model: Model, counts: Mapping[str, int]) -> int:
    """Copies of the cell among operations: each has so many of one that stands nowhere else in a program."""
    if model.cell == "counter":
        return counts.get("add", 0)
    return counts.get(model.activation, 0) // (2 if model.cell == "lstm" else 1)


def lowered(loops: Sequence[int], copies: int) -> str:
    """`loops` has the copies of the cell in a pass of each loop; `copies` are those outside any."""
    alike = sorted(Counter(loops).items())
    parts = [f"looped {loops}" if inside == 1 else f"looped {loops} of {inside}" for inside, loops in alike]
    return " + ".join(parts + ([f"unrolled {copies}"] if copies or not loops else []))
