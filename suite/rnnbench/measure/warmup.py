"""When warm-up is over: when the distribution of a call's seconds has come to rest, or its share of time is spent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnnbench.measure.sampling import Block

WARMUP_SHARE = 0.25
"""Most of a process's time that warm-up may take."""
WINDOWS = 5
"""Windows in that time."""
FEW_CALLS = 3
"""Samples of a window up to which the test between windows is not asked: of so few it never sees a difference."""
SIGNIFICANCE = 0.05
"""Of the test between windows."""


def at_rest(windows: Sequence[Block], tolerance: float) -> bool:
    """Whether the last two windows show one distribution.

    They do where their medians agree within `tolerance`, a relative difference; or where the test of Mann and Whitney
    (1947) sees no difference between more than FEW_CALLS samples of each.
    """
    if len(windows) < 2:
        return False
    before, after = (window.seconds for window in windows[-2:])
    if abs(float(np.log(np.median(after) / np.median(before)))) <= tolerance:
        return True
    if min(len(before), len(after)) <= FEW_CALLS:
        return False
    from scipy import stats

    return bool(stats.mannwhitneyu(before, after).pvalue >= SIGNIFICANCE)
