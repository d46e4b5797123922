"""The words for what became of the time steps, the same for every compiler: `Artifact.lowered`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def describe_lowered(loops: Iterable[int], straight: int, *, fused: bool = False) -> str:
    """`fused`, `looped n` (n loops), `looped n of k` (k copies of the cell in each pass) and `unrolled n`, with ` + `.

    `loops` has, for each loop, the copies of the cell in its pass; `straight` counts the copies outside of loops.
    """
    parts = ["fused"] if fused else []
    for copies, number in sorted(Counter(loops).items()):
        parts.append(f"looped {number}" if copies == 1 else f"looped {number} of {copies}")
    if straight:
        parts.append(f"unrolled {straight}")
    return " + ".join(parts)
