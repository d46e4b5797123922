"""Sparklines: the last nights of a series as points of an inline SVG, with the range that they span in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

NIGHTS = 28
WIDTH, HEIGHT = 81, 18


def sparkline(values: Sequence[float | None]) -> list[object] | None:
    """Points, then the smallest and the largest value that they stand for; None for less than two values."""
    last = [value for value in values[-NIGHTS:] if value is not None and math.isfinite(value)]
    if len(last) < 2:
        return None
    low, high = min(last), max(last)
    height = (high - low) or 1.0
    step = WIDTH / (len(last) - 1)
    points = " ".join(
        f"{k * step:.0f},{HEIGHT - 1 - (HEIGHT - 2) * (v - low) / height:.0f}" for k, v in enumerate(last)
    )
    return [points, low, high]
