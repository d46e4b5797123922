"""The confidence interval of a median, from the medians of processes or blocks, and its drift. Both use logarithms.

SciPy is imported when it is first needed: its import takes a second, and workers do not need it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

CONFIDENCE = 0.95
DRIFT_BLOCKS = 4
"""The least blocks for a drift. The slope of two or three blocks is noise."""


def interval_of(medians: Sequence[float]) -> tuple[float, float] | None:
    """The confidence interval of the mean of these medians, by Student's t. None if there are fewer than two.

    For medians of processes it includes the variance between processes, and the variance within them.
    """
    if len(medians) < 2:
        return None
    from scipy import stats

    logs = np.log(medians)
    error = stats.sem(logs)
    # If all medians are equal, Student's t has no scale, and the interval is one point.
    low, high = stats.t.interval(CONFIDENCE, len(logs) - 1, logs.mean(), error) if error > 0 else (logs[0], logs[0])
    with np.errstate(over="ignore"):  # The upper bound from two medians may exceed the range of a float.
        return float(np.exp(low)), float(np.exp(high))


def half_width(interval: tuple[float, float]) -> float:
    """Half of an interval's width relative to its middle: 0.01 for ±1 %."""
    low, high = interval
    return math.sqrt(high / low) - 1 if low > 0 else math.inf


def drift_of(times: Sequence[float], medians: Sequence[float]) -> float | None:
    """The relative growth of a latency over `times`, by the Theil–Sen slope: 0.01 for 1 %.

    This slope is the median of the slopes of all pairs, so a few disturbed blocks do not change it. None if there
    are fewer than DRIFT_BLOCKS blocks.
    """
    if len(set(times)) < DRIFT_BLOCKS:
        return None
    from scipy import stats

    slope = stats.theilslopes(np.log(medians), np.subtract(times, times[0])).slope
    return float(math.expm1(slope * (times[-1] - times[0])))
