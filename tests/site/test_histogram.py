"""A histogram counts every kept sample once: drawn, or beyond the axis."""

from __future__ import annotations

import re

import fake_records as fake
import numpy as np
import pytest
from made_site import DISTURBED, SAMPLES, samples

from rnnbench.results import SAMPLE_COLUMNS, read_run, samples_file, save_samples
from rnnbench.site.histogram import HEIGHT, NOT_KEPT, UNREADABLE, WIDTH, Histogram, histogram, read_histogram

SECONDS = SAMPLE_COLUMNS.index("seconds")


def of(values: list[float]) -> np.ndarray:
    rows = np.zeros((len(values), len(SAMPLE_COLUMNS)))
    rows[:, SECONDS] = values
    return rows


def bars(path: str) -> list[float]:
    """Heights of a path's bars, from the left."""
    return [HEIGHT - float(top) for top in re.findall(r"V([\d.]+)H", path)]


def test_every_sample_is_drawn_or_counted_beyond_the_axis():
    drawn = histogram(samples())
    assert drawn is not None
    counts = [height / HEIGHT * drawn.tallest for height in bars(drawn.bars)]
    assert sum(counts) == pytest.approx(SAMPLES - drawn.beyond, abs=0.5)
    assert drawn.beyond == 1
    assert drawn.largest == 5e-3
    assert drawn.end < 2e-4


def test_samples_of_disturbed_blocks_are_part_of_the_bars():
    drawn = histogram(samples())
    assert drawn is not None
    assert drawn.disturbed_samples == DISTURBED
    assert all(part <= whole for part, whole in zip(bars(drawn.disturbed), bars(drawn.bars), strict=True))


def test_the_axis_spans_the_bars():
    drawn = histogram(of([1e-6 * k for k in range(1, 101)]))
    assert drawn is not None
    assert drawn.bars.endswith(f"H{WIDTH}V{HEIGHT}Z")
    assert drawn.bin_width * len(bars(drawn.bars)) == pytest.approx(drawn.ticks[-1].value - drawn.ticks[0].value)
    assert drawn.ticks[0].name == "1.00 µs"
    assert drawn.beyond == 0


@pytest.mark.parametrize("values", [[1e-6], [1e-6, 1e-6], [1e-6, np.nan], [1e-6, np.inf], [0.0, 1e-6], [-1.0, 1.0]])
def test_samples_that_cannot_be_drawn_are_not(values):
    assert histogram(of(values)) is None


def test_a_run_without_samples_says_so_and_a_damaged_file_is_no_crash(tmp_path):
    record = fake.record()
    record = fake.with_latencies(record, bound=fake.of_samples(record.timing.latency["bound"], samples()))
    run = read_run(fake.write_run(tmp_path / "run", [record]))
    assert read_histogram(run, record.trial, "bound") == NOT_KEPT
    save_samples(run.path, record.trial[-8:], "bound", samples())
    assert isinstance(read_histogram(run, record.trial, "bound"), Histogram)
    save_samples(run.path, record.trial[-8:], "bound", 2 * samples())
    assert read_histogram(run, record.trial, "bound") == UNREADABLE, "they are of another trial"
    samples_file(run.path, record.trial[-8:], "bound").write_bytes(b"\x93NUMPY damaged")
    assert read_histogram(run, record.trial, "bound") == UNREADABLE
