"""How often verdicts of nights were wrong, with an interval."""

from __future__ import annotations

import pytest
from scipy import stats

from rnnbench.history.machine_alarms import CONFIDENCE, Share


@pytest.mark.parametrize(("count", "of"), [(0, 1), (1, 1), (0, 300), (3, 300), (299, 300), (17, 40)])
def test_the_interval_of_a_share_is_scipy_s_exact_one(count: int, of: int) -> None:
    expected = stats.binomtest(count, of).proportion_ci(CONFIDENCE, "exact")
    assert Share(count, of).interval == pytest.approx((expected.low, expected.high))
