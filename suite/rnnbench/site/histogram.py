"""The histogram of a latency's single samples, where the run's folder has kept them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rnnbench.reports import seconds
from rnnbench.results import SAMPLE_COLUMNS, Run, StoreError
from rnnbench.site.anatomy import Mark

MOST_BINS, LEAST_BINS = 48, 8
BODY = 0.9
"""Share of the samples that fill half of the axis. The slowest can take a hundred times as long as the
median: drawn, they would press all others into one bar. They are counted instead."""
HEIGHT, WIDTH = 100, 1000
"""Units of the drawing."""
TICKS = 4
NOT_KEPT = "No histogram: the single samples of this run were not kept."
UNREADABLE = "No histogram: the file of its samples cannot be read, or has other samples."
_SECONDS, _DISTURBED = SAMPLE_COLUMNS.index("seconds"), SAMPLE_COLUMNS.index("disturbed")


@dataclass(frozen=True)
class Histogram:
    """Samples by seconds per call, on a linear axis from the smallest one."""

    kept: int
    """Samples in the file."""
    beyond: int
    """Samples right of the axis."""
    largest: float
    """The largest sample, in seconds per call."""
    end: float
    """Right end of the axis, in seconds per call."""
    bin_width: float
    """Seconds per call."""
    tallest: int
    """Samples in the bin with the most."""
    bars: str
    """Path of all samples' outline."""
    disturbed: str
    """The same of those in disturbed blocks; empty where there is none, and where all are."""
    disturbed_samples: int
    ticks: tuple[Mark, ...]


def read_histogram(run: Run, trial: str, path: str) -> Histogram | str:
    """The histogram of a trial and path of a run; or a sentence that says why there is none."""
    try:
        rows = run.samples(trial, path)
    except StoreError as error:
        is_missing = isinstance(error.__cause__, FileNotFoundError)
        return NOT_KEPT if is_missing else UNREADABLE
    return histogram(rows) or "No histogram: its samples have no spread, or impossible values."


def histogram(rows: npt.NDArray[np.float64]) -> Histogram | None:
    """The histogram of rows of SAMPLE_COLUMNS. None where nothing can be drawn."""
    values, disturbed = rows[:, _SECONDS], rows[:, _DISTURBED] > 0
    if len(values) < 2 or not np.isfinite(values).all() or values.min() <= 0:
        return None
    low, end = float(values.min()), float(values.max())
    end = min(end, 2 * float(np.quantile(values, BODY)) - low)
    if end <= low:
        return None
    bins = max(LEAST_BINS, min(MOST_BINS, 2 * math.isqrt(len(values))))
    edges = np.linspace(low, end, bins + 1)
    counts = np.histogram(values, edges)[0]
    of_disturbed = np.histogram(values[disturbed], edges)[0]
    tallest = int(counts.max())
    ticks = np.linspace(low, end, TICKS)
    return Histogram(
        kept=len(values),
        beyond=int((values > end).sum()),
        largest=float(values.max()),
        end=end,
        bin_width=(end - low) / bins,
        tallest=tallest,
        bars=_outline(counts, tallest),
        disturbed=_outline(of_disturbed, tallest) if 0 < disturbed.sum() < len(values) else "",
        disturbed_samples=int(disturbed.sum()),
        ticks=tuple(Mark(seconds(value), float(value), 100 * k / (TICKS - 1)) for k, value in enumerate(ticks)),
    )


def _outline(counts: npt.NDArray[np.intp], tallest: int) -> str:
    """The bars as one closed path, from the left."""
    tops = (HEIGHT - HEIGHT * counts / tallest).round(1)
    steps = "".join(f"V{top:g}H{WIDTH * (k + 1) / len(tops):.4g}" for k, top in enumerate(tops))
    return f"M0 {HEIGHT}{steps}V{HEIGHT}Z"
