"""The rank test of Mann and Whitney (1947): whether two samples have one distribution, which need not be normal.

`scipy.stats.mannwhitneyu` gives the same, after an import of a second.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def exact_rank_p(first: Array, second: Array) -> float:
    """The two-sided p of samples [values] of a few dozen values. It is exact, and for ties too large."""
    larger = np.count_nonzero(second[:, None] > first) + np.count_nonzero(second[:, None] == first) / 2
    orders = _orders(len(second), len(first))
    tail = math.ceil(min(larger, len(second) * len(first) - larger))
    return min(1.0, 2 * float(orders[: tail + 1].sum() / orders.sum()))


def normal_rank_p(first: Array, second: Array) -> float:
    """The two-sided p of samples [values] of any number of values, by the normal distribution.

    It is corrected for ties and for continuity. Not all of these values may be equal.
    """
    _, places, ties = np.unique(np.concatenate([first, second]), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[places]
    pairs, count = len(first) * len(second), len(places)
    higher = ranks[: len(first)].sum() - len(first) * (len(first) + 1) / 2
    variance = pairs / 12 * (count + 1 - float(np.sum(ties.astype(float) ** 3 - ties)) / (count * (count - 1)))
    return math.erfc(max(0.0, abs(higher - pairs / 2) - 0.5) / math.sqrt(2 * variance))


@cache
def _orders(second: int, first: int) -> Array:
    """Of all orders of so many values of both samples: how many have each number of pairs whose second is larger.

    The largest value is of the second, and larger than all of the first, or of the first, and larger than all of the
    second.
    """
    if not second or not first:
        return np.ones(1)
    orders = np.zeros(second * first + 1)
    orders[first:] += _orders(second - 1, first)
    orders[: second * (first - 1) + 1] += _orders(second, first - 1)
    return orders
