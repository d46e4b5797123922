"""Sparklines: the last nights of a series as points of an inline SVG, with the range that they span in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

NIGHTS = 28
WIDTH, HEIGHT = 81, 18
LEAST_SPAN = 0.2
"""Part of the largest value that the height spans at the least: noise of one per cent is a line that is almost flat.
The chart of a trial (`static/series.js`) has the same."""


def sparkline(values: Sequence[float | None]) -> list[object] | None:
    """Points, then the smallest and the largest value that they stand for; None for less than two values."""
    last = [value for value in values[-NIGHTS:] if value is not None and math.isfinite(value)]
    if len(last) < 2:
        return None
    low, high = min(last), max(last)
    spanned = max(high - low, LEAST_SPAN * abs(high)) or 1.0
    foot = (low + high - spanned) / 2
    step = WIDTH / (len(last) - 1)
    points = " ".join(
        f"{k * step:.0f},{HEIGHT - 1 - (HEIGHT - 2) * (v - foot) / spanned:.0f}" for k, v in enumerate(last)
    )
    return [points, low, high]
