"""A drift is one change, and a step beside it or on it stays a step."""

from __future__ import annotations

import math

import nights
import numpy as np
import pytest

from rnnbench.history import change_lines
from rnnbench.history.change_points import SCREEN, find_steps
from rnnbench.history.changes import changes_of

NIGHTS, BEGIN, NOISE = 90, 40, 0.005


def scatter(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, NOISE, NIGHTS)


def ramp(nights: int, total: float) -> np.ndarray:
    return np.clip((np.arange(NIGHTS) - BEGIN) / nights, 0, 1) * total


def step(at: int, size: float) -> np.ndarray:
    return np.where(np.arange(NIGHTS) >= at, size, 0.0)


def groups(values: np.ndarray) -> list[list[int]]:
    """The steps of a series: those of a drift together."""
    found: dict[int, list[int]] = {}
    for one in find_steps([values], SCREEN)[0]:
        found.setdefault(one.index if one.drift is None else one.drift, []).append(one.index)
    return list(found.values())


@pytest.mark.parametrize("total", [0.08, -0.08])
def test_the_steps_of_a_drift_are_one(total: float) -> None:
    found = [groups(scatter(seed) + ramp(40, total)) for seed in range(20)]
    assert sum(len(of_series) == 1 for of_series in found) >= 19, "noise may look like a step once"
    (drift,) = found[1]
    assert len(drift) >= 3
    assert BEGIN < drift[0] < drift[-1] < BEGIN + 40


@pytest.mark.parametrize("apart", [7, 14])
@pytest.mark.parametrize("seed", range(4))
def test_two_sudden_steps_of_one_direction_are_two(seed: int, apart: int) -> None:
    found = groups(scatter(seed) + step(BEGIN, 0.03) + step(BEGIN + apart, 0.03))
    assert [len(of_one) for of_one in found] == [1, 1]


@pytest.mark.parametrize("seed", range(4))
def test_a_step_on_a_drift_is_no_part_of_it(seed: int) -> None:
    found = groups(scatter(seed) + ramp(40, 0.08) + step(BEGIN + 20, 0.03))
    assert any(of_one == [pytest.approx(BEGIN + 20, abs=2)] for of_one in found)
    assert len(found) <= 3


def test_steps_of_two_directions_are_no_drift() -> None:
    found = groups(scatter(0) + step(BEGIN, 0.05) + step(BEGIN + 10, -0.05))
    assert [len(of_one) for of_one in found] == [1, 1]


def test_nights_without_a_value_do_not_part_a_drift() -> None:
    values = np.full(2 * NIGHTS, np.nan)
    values[::2] = scatter(1) + ramp(40, 0.08)
    (drift,) = groups(values)
    assert drift == [2 * index for index in groups(values[::2])[0]]


def test_the_steps_of_a_drift_are_one_change_of_its_whole_size_and_all_its_versions() -> None:
    values = np.stack([scatter(seed) for seed in range(nights.BACKENDS)])
    values[1] += ramp(40, 0.08)
    (change,) = changes_of("m", nights.trials_of(nights.Nights(values, ())), SCREEN)
    assert (change.subject, change.ratio) == ("1", pytest.approx(math.exp(0.08), abs=0.02))
    assert change.interval[0] < math.exp(0.08) < change.interval[1]
    began, went_on = nights.night_of(change.night), nights.night_of(change.until)
    assert BEGIN < began < BEGIN + 20 < went_on < BEGIN + 40
    before, after = map(int, change.versions)
    assert began - 7 < before <= began < went_on + 1 <= after < went_on + 7, "every night has another version"
    line = next(line for line in change_lines([change]) if "bound latency" in line)
    assert f"), a drift that went on until {change.until[:10]}, from" in line
