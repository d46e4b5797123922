"""A metric is declared once, and read at the moment that it names."""

from __future__ import annotations

import pytest

from rnnbench.measure.metrics import METRICS, read_metrics


@pytest.mark.parametrize("when", ["loaded", "sampled"])
def test_every_metric_of_a_moment_is_read_then(when):
    assert read_metrics(when).keys() == {name for name, metric in METRICS.items() if metric.when == when}


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_metric_has_a_title_a_meaning_and_a_figure(metric):
    assert METRICS[metric.name] is metric
    assert metric.title
    assert metric.meaning.endswith(".")
    assert metric.read() >= 0


def test_open_files_are_counted(tmp_path):
    before = read_metrics("loaded")["open_files"]
    with (tmp_path / "file").open("w"):
        assert read_metrics("loaded")["open_files"] == before + 1
