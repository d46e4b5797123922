"""The confidence interval of a median, from the medians of processes or blocks, and its drift. Both use logarithms.

SciPy is imported when it is first needed, and workers do not need it. Most of what `scipy.stats` has is not worth the
second that its import takes.
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
    from scipy.special import stdtrit

    logs = np.log(medians)
    half = stdtrit(len(logs) - 1, (1 + CONFIDENCE) / 2) * logs.std(ddof=1) / math.sqrt(len(logs))
    with np.errstate(over="ignore"):  # The upper bound from two medians may exceed the range of a float.
        return float(np.exp(logs.mean() - half)), float(np.exp(logs.mean() + half))


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
    first, second = np.triu_indices(len(times), 1)
    apart, growth = (values[second] - values[first] for values in (np.asarray(times, float), np.log(medians)))
    slope = np.median(growth[apart != 0] / apart[apart != 0])
    return float(math.expm1(slope * (times[-1] - times[0])))
