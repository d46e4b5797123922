"""The interval of a median, from medians of processes or of blocks, and its drift; SciPy's statistics on logarithms.

SciPy is imported as they are called: it takes a second, and workers have no use for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

CONFIDENCE = 0.95
DRIFT_BLOCKS = 4
"""Fewest blocks that show a drift: of two or three the slope is their noise."""


def interval_of(medians: Sequence[float]) -> tuple[float, float] | None:
    """Bounds of what one more such median is expected to be, by Student's t; None where there are less than two.

    Of medians of processes, it has the variance between processes in it as well as that within them.
    """
    if len(medians) < 2:
        return None
    from scipy import stats

    logs = np.log(medians)
    error = stats.sem(logs)
    # Medians that do not scatter at all leave Student's t no scale: the interval is the point that they agree on.
    low, high = stats.t.interval(CONFIDENCE, len(logs) - 1, logs.mean(), error) if error > 0 else (logs[0], logs[0])
    with np.errstate(over="ignore"):  # Two medians may reach farther than a float does.
        return float(np.exp(low)), float(np.exp(high))


def half_width(interval: tuple[float, float]) -> float:
    """Half of an interval, relative to its middle, on the scale of ratios: 0.01 for ±1 %."""
    low, high = interval
    return math.sqrt(high / low) - 1 if low > 0 else math.inf


def drift_of(times: Sequence[float], medians: Sequence[float]) -> float | None:
    """By how much, relative to itself, a latency grew over `times`, by the slope of Theil and Sen.

    That slope is the median of the slopes of all pairs, which a few disturbed blocks do not move. None where there are
    less than DRIFT_BLOCKS.
    """
    if len(set(times)) < DRIFT_BLOCKS:
        return None
    from scipy import stats

    slope = stats.theilslopes(np.log(medians), np.subtract(times, times[0])).slope
    return float(math.expm1(slope * (times[-1] - times[0])))
