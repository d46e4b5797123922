"""Copies of a step and loops over them: what `time` asks a program for, and the words for what it became."""

from __future__ import annotations

from collections.abc import Mapping

from rnnbench.cases.trial import Strategy


def copies(strategy: Strategy) -> int | None:
    """1 for `looped`, the chunk for `unrolled`, k for `unrolled:k`; None for a time that is none of these."""
    kind, _, number = strategy.time.partition(":")
    if kind == "looped":
        return 1
    if kind == "unrolled":
        return int(number) if number else strategy.chunk
    return None


def lowered(loops: Mapping[int, int], straight: int) -> str:
    """`looped n`, `looped n of k` (k copies of the cell in each pass), `unrolled n`, or a mixture joined by ` + `.

    `loops` counts the loops by their copies; `straight` is how many copies are in none.
    """
    parts = [
        f"looped {number}" if size == 1 else f"looped {number} of {size}" for size, number in sorted(loops.items())
    ]
    return " + ".join(parts + [f"unrolled {straight}"] * bool(straight))
