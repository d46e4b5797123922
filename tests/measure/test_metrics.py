"""A metric is declared once, and read at the moment that it names."""

from __future__ import annotations

import pytest

from rnnbench.measure import EnergyUse
from rnnbench.measure.metrics import METRICS, device_metrics, energy_metrics, read_metrics

USE = EnergyUse(joules=30.0, seconds=1.5, calls=1000)


@pytest.mark.parametrize("when", ["loaded", "sampled"])
def test_every_metric_of_a_moment_is_read_then(when):
    assert read_metrics(when).keys() == {name for name, metric in METRICS.items() if metric.when == when}


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_metric_has_a_title_a_meaning_and_a_figure(metric):
    assert METRICS[metric.name] is metric
    assert metric.title
    assert metric.meaning.endswith(".")
    if metric.of_energy:
        assert metric.when is None
        assert metric.of_energy(USE, 4) > 0
    elif metric.of_device:
        assert metric.when is None
        assert metric.of_device(0.5, 4) > 0
    else:
        assert metric.read() >= 0


def test_energy_is_shared_by_the_steps_of_all_calls():
    assert energy_metrics([USE], 4) == {"energy_per_step": 30.0 / (1000 * 4), "energy_power": 20.0}


def test_a_devices_seconds_are_shared_by_the_steps_of_a_call():
    assert device_metrics(0.5, 4) == {"device_time_per_step": 0.125}


def test_of_several_processes_the_median_counts():
    uses = [EnergyUse(joules, 1.0, 100) for joules in (10.0, 40.0, 20.0)]
    assert energy_metrics(uses, 1) == {"energy_per_step": 0.2, "energy_power": 20.0}


def test_without_a_reading_there_is_no_metric_of_energy():
    assert energy_metrics([], 1) == {}


def test_open_files_are_counted(tmp_path):
    before = read_metrics("loaded")["open_files"]
    with (tmp_path / "file").open("w"):
        assert read_metrics("loaded")["open_files"] == before + 1
