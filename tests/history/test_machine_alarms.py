"""How often verdicts of nights were wrong, with an interval."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from scipy import stats

from rnnbench.history.machine_alarms import CONFIDENCE, Share, false_alarms


@pytest.mark.parametrize(("count", "of"), [(0, 1), (1, 1), (0, 300), (3, 300), (299, 300), (17, 40)])
def test_the_interval_of_a_share_is_scipy_s_exact_one(count: int, of: int) -> None:
    expected = stats.binomtest(count, of).proportion_ci(CONFIDENCE, "exact")
    assert Share(count, of).interval == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(("cpu", "told"), [("Xeon", "Xeon"), ("", "processor not recorded")])
def test_a_machine_is_told_with_its_processor_and_the_days_of_its_comparisons(cpu: str, told: str) -> None:
    def comparison(day: str, *verdicts: str) -> SimpleNamespace:
        of_trials = [SimpleNamespace(verdict=verdict) for verdict in verdicts]
        return SimpleNamespace(same=True, machine="m", machine_cpu=cpu, started=f"{day}T01:00:00Z", verdicts=of_trials)

    entries = [comparison("2026-11-01", "SAME", "SLOWER"), comparison("2026-11-02", "UNDECIDED", "FASTER", "FASTER")]
    (alarms,) = false_alarms(SimpleNamespace(comparisons=entries))
    assert (alarms.cpu, alarms.first, alarms.last) == (told, "2026-11-01", "2026-11-02")
    assert (alarms.verdicts, alarms.comparisons) == (Share(3, 5), Share(2, 2))
    assert (alarms.same, alarms.undecided) == (1, 1)
