"""The times of a strategy that run many steps at once."""

from __future__ import annotations

FUSED, PARALLEL, CHUNKED = "fused", "parallel", "chunked:"


def runs_together(time: str) -> bool:
    """Whether a time of a strategy runs many steps at once: `parallel` or `chunked:k`."""
    return time == PARALLEL or time.startswith(CHUNKED)
