"""The clock that times calls is measured by its own readings, and a program that replaces it is seen."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from types import SimpleNamespace

import pytest

from rnnbench.measure import clocks
from rnnbench.measure.clocks import NEAR_CLOCK, Clock, measure_clock, put_clocks_back, replaced_clocks

Measured = Callable[[Iterable[int]], Clock]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    """What is measured of a clock with these readings, in nanoseconds."""

    def measure(readings: Iterable[int]) -> Clock:
        monkeypatch.setattr(clocks, "time", SimpleNamespace(perf_counter_ns=iter(readings).__next__))
        return measure_clock.__wrapped__()

    return measure


def test_the_resolution_is_the_smallest_step_and_the_cost_the_usual_one(measured: Measured) -> None:
    clock = measured(reading // 30 * 30 for reading in itertools.count(0, 40))
    assert (clock.resolution, clock.cost) == (pytest.approx(30e-9), pytest.approx(30e-9))
    clock = measured(itertools.accumulate([40] * 9_000 + [4_000] * 2_000))
    assert (clock.resolution, clock.cost) == (pytest.approx(40e-9), pytest.approx(40e-9))


@pytest.mark.parametrize("step", [1_000, 4_000_000])
def test_a_clock_that_moves_in_coarse_steps_is_known_by_them(measured: Measured, step: int) -> None:
    clock = measured(reading // step * step for reading in itertools.count(step // 3, 50))
    assert clock.resolution == pytest.approx(step * 1e-9)


def test_a_clock_that_stands_still_ends_no_command(measured: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "COARSE_READINGS", 100)
    assert measured(itertools.repeat(0)).resolution == 1.0


def test_this_machine_s_clock_resolves_a_millisecond() -> None:
    clock = measure_clock()
    assert 0 < clock.resolution < 1e-3
    assert 0 <= clock.cost < 1e-3


def test_a_call_is_timed_alone_unless_it_comes_near_the_clock() -> None:
    clock = Clock(resolution=1e-9, cost=1e-7)
    assert clock.calls_per_sample(NEAR_CLOCK * 1e-7) == 1
    assert clock.calls_per_sample(1e-6) == 5
    assert Clock(resolution=1e-6, cost=1e-7).calls_per_sample(1e-6) == NEAR_CLOCK


def test_a_clock_that_a_program_replaced_is_named_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = time.monotonic
    assert replaced_clocks() == ""
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    assert replaced_clocks() == "time.monotonic"
    put_clocks_back()
    assert time.monotonic is honest
    assert replaced_clocks() == ""
