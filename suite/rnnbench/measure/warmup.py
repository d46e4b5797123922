"""Warm-ups: calls that do not count, until the distribution of their seconds is stationary or their time is spent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnnbench.measure.blocks import Block
from rnnbench.measure.clocks import measure_clock
from rnnbench.measure.rank_test import normal_rank_p

WARMUP_SHARE = 0.25
"""The largest share of a process's time for the warm-up."""
WINDOWS = 5
"""The number of windows in this time."""
FEW_CALLS = 3
"""Windows with this many samples or fewer are not tested: the test never finds a difference between them."""
SIGNIFICANCE = 0.05
"""The significance level of the test between windows."""


class WarmUp:
    """The first calls of a latency in one process, in windows, until they are stationary or their time is spent."""

    def __init__(self, limit_s: float, tolerance: float) -> None:
        self.windows: list[Block] = []
        self._limit_s = limit_s
        self._tolerance = tolerance

    @property
    def window_s(self) -> float:
        """Seconds of one window."""
        return self._limit_s / WINDOWS

    @property
    def is_over(self) -> bool:
        """Each window has its share of the time, whatever its worker says of it."""
        return self.is_stationary or self.seconds >= self._limit_s or len(self.windows) >= WINDOWS

    @property
    def is_stationary(self) -> bool:
        return is_stationary(self.windows, self._tolerance)

    @property
    def seconds(self) -> float:
        return sum(window.elapsed for window in self.windows)

    @property
    def calls(self) -> int:
        return sum(window.calls for window in self.windows)

    @property
    def calls_per_sample(self) -> int:
        """How many calls must be timed at once, from the first window."""
        return measure_clock().calls_per_sample(float(np.median(self.windows[0].seconds))) if self.windows else 1


def is_stationary(windows: Sequence[Block], tolerance: float) -> bool:
    """Whether the last two windows have the same distribution.

    They do if their medians agree within `tolerance`, a relative difference, or if the test of Mann and Whitney (1947)
    finds no difference between more than FEW_CALLS samples of each.
    """
    if len(windows) < 2:
        return False
    before, after = (window.seconds for window in windows[-2:])
    if abs(float(np.log(np.median(after) / np.median(before)))) <= tolerance:
        return True
    if min(len(before), len(after)) <= FEW_CALLS:
        return False
    return normal_rank_p(before, after) >= SIGNIFICANCE
