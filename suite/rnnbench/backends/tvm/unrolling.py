"""Copies of a step: what `time` asks a program for."""

from __future__ import annotations

from rnnbench.cases import Strategy


def copies(strategy: Strategy) -> int | None:
    """1 for `looped`, the chunk for `unrolled`, k for `unrolled:k`; None for a time that is none of these."""
    kind, _, number = strategy.time.partition(":")
    if kind == "looped":
        return 1
    if kind == "unrolled":
        return int(number) if number else strategy.chunk
    return None
