"""The floor is the account over the roofs, and each process is held against the looks beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnnbench.measure import Roof
from rnnbench.pipeline.latency_floor import below_floor, cache_level, latency_floor, seconds_of
from rnnbench.results import read_run
from rnnbench.rnn import Cost, Reading

COST = Cost((Reading(1000, 1000, 1), Reading(400, 400, 5)), operations=600, weights=1000)
SLOW, FAST = Roof({1000: 1e9, 400: 2e9}, 1e9), Roof({1000: 2e9, 400: 4e9}, 2e9)


def test_each_reading_is_at_the_bandwidth_of_its_working_set() -> None:
    reading, computing = seconds_of(COST, SLOW)
    assert reading == pytest.approx(1e-6 + 2000 / 2e9)
    assert computing == pytest.approx(0.6e-6)


def test_a_process_beside_a_slow_machine_is_no_further_from_its_floor() -> None:
    figure = latency_floor(COST, 1, [6e-6, 3e-6], [[SLOW] * 3, [FAST] * 3], "")
    assert figure.ratio == pytest.approx(3.0)
    assert figure.interval == pytest.approx((3.0, 3.0))
    assert figure.seconds == pytest.approx(1.5e-6)
    assert figure.limited_by == "reading"
    assert figure.looks == 6


def test_the_probes_own_variation_widens_the_interval() -> None:
    steady = latency_floor(COST, 1, [6e-6, 6e-6, 6e-6], [[SLOW]] * 3, "")
    unsteady = latency_floor(COST, 1, [6e-6, 6e-6, 6e-6], [[SLOW], [FAST], [SLOW]], "")
    assert steady.interval == pytest.approx((3.0, 3.0))
    assert unsteady.interval is not None
    assert unsteady.interval[0] < 3.0 < unsteady.interval[1]


def test_a_single_round_of_one_process_gives_a_ratio_and_no_interval() -> None:
    figure = latency_floor(COST, 1, [6e-6], [[SLOW]], "")
    assert (figure.ratio, figure.interval, figure.looks) == (pytest.approx(3.0), None, 1)


def test_of_two_rounds_the_interval_is_as_wide_as_two_points_leave_it() -> None:
    figure = latency_floor(COST, 1, [6e-6, 6.3e-6], [[SLOW], [SLOW]], "")
    assert figure.interval is not None
    low, high = figure.interval
    assert low < 3.0 < 3.15 < high
    assert high / low > 1.5, "Student's t of one degree of freedom is 12.7"


def test_a_process_that_had_no_look_beside_it_is_in_no_ratio() -> None:
    figure = latency_floor(COST, 1, [6e-6, 60e-6], [[SLOW], []], "the probe's process has ended")
    assert (figure.ratio, figure.interval, figure.looks) == (pytest.approx(3.0), None, 1)
    assert latency_floor(COST, 1, [6e-6, 60e-6], [[SLOW]], "").ratio == pytest.approx(3.0)


def test_arithmetic_may_be_the_floor() -> None:
    heavy = Cost(COST.readings, operations=6000, weights=1000)
    figure = latency_floor(heavy, 1, [6e-6], [[SLOW]], "")
    assert (figure.limited_by, figure.ratio, figure.interval) == ("arithmetic", pytest.approx(1.0), None)


def test_without_a_rate_reading_alone_is_the_floor() -> None:
    figure = latency_floor(COST, 1, [4e-6], [[Roof({1000: 1e9, 400: 2e9}, None)]], "")
    assert (figure.ratio, figure.rate) == (pytest.approx(2.0), None)


def test_without_a_look_the_account_stands_with_the_reason() -> None:
    figure = latency_floor(COST, None, [4e-6], [[]], "needs llvmlite")
    assert (figure.nbytes, figure.operations, figure.ratio, figure.unmeasured) == (3000, 600, None, "needs llvmlite")


def test_the_level_is_the_smallest_cache_that_holds_the_weights() -> None:
    sizes = {"L1i": 1 << 20, "L1d": 32 << 10, "L2": 1 << 20, "L3": 32 << 20}
    levels = [cache_level(nbytes, sizes) for nbytes in (32 << 10, (32 << 10) + 1, 2 << 20, 1 << 30)]
    assert levels == ["L1d", "L2", "L3", "memory"]
    assert cache_level(1, {}) == ""


@pytest.mark.parametrize(("seconds", "believed"), [(6e-6, True), (1.8e-6, True), (1e-6, False)])
def test_a_latency_far_below_its_floor_is_not_believed(seconds: float, believed: bool) -> None:
    findings = below_floor(latency_floor(COST, 1, [seconds] * 3, [[SLOW]] * 3, ""))
    assert [finding.disbelieved for finding in findings] == ([] if believed else [True])
    assert all("0.5 of its latency floor" in finding.detail for finding in findings)


def test_a_ratio_without_an_interval_accuses_nobody() -> None:
    assert below_floor(latency_floor(COST, 1, [1e-6], [[SLOW]], "")) == []
    assert below_floor(None) == []


@pytest.mark.parametrize("run", ["reference", "realtime", "scaling"])
def test_no_latency_of_a_committed_run_is_below_its_floor(run: str) -> None:
    records = read_run(Path(__file__).parents[2] / "results" / run).records
    assert [record.trial for record in records if below_floor(record.floor)] == []


def test_the_ratio_is_the_mean_of_those_of_the_processes() -> None:
    assert latency_floor(COST, 1, [6e-6, 24e-6], [[SLOW], [SLOW]], "").ratio == pytest.approx(6.0)


def test_an_interval_that_reaches_the_floor_accuses_nobody() -> None:
    floor = latency_floor(COST, 1, [0.8e-6, 1.6e-6], [[SLOW], [SLOW]], "")
    assert floor.interval is not None
    assert floor.interval[0] < 0.75 < floor.interval[1]
    assert below_floor(floor) == []
