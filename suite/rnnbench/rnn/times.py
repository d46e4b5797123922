"""The times of a strategy that run many steps at once."""

from __future__ import annotations

FUSED, PARALLEL, CHUNKED = "fused", "parallel", "chunked:"
TOGETHER = frozenset({"cumsum", "einsum", "exp", "log_sigmoid", "reshape", "rows", "stacked"})
"""Primitives of `MorePrimitives` that only layers need whose state is linear in itself."""
OPERATORS = frozenset({"causal_convolution", "linear_attention"})
"""Primitives of `MorePrimitives` that are a library's operators: all steps of a layer, for time `fused`."""


def runs_together(time: str) -> bool:
    """Whether a time of a strategy runs many steps at once: `parallel` or `chunked:k`."""
    return time == PARALLEL or time.startswith(CHUNKED)
