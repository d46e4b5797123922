"""One latency of one trial on its way to the precision that is asked for, or to the end of its budget.

The budget is shared by the latencies of the trial, and by `measure.processes` processes. In each process a latency has
a warm-up and then ROUNDS blocks; once LEAST_ROUNDS of them give the median of that process precisely enough, the rest
are saved. With the medians of `measure.processes` processes, and again after each further one, the interval of the
median is looked at: sampling stops where it is precise enough. What was saved buys further processes, twice as many at
most, since the scatter between processes is what no number of calls in one of them makes smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from rnnbench.cases.trial import LatencyPath, Measure, paths
from rnnbench.measure.interval import half_width, interval_of
from rnnbench.measure.sampling import Block, measure_clock
from rnnbench.measure.warmup import WARMUP_SHARE, WINDOWS, at_rest

ROUNDS = 8
"""Blocks of one process, short so that drift hits all trials alike."""
LEAST_ROUNDS = 4
"""Blocks after which the median of a process is looked at; half of its time, so that the rest buys another process."""
OWN_SHARE = 0.5
"""Of the precision, for the median of one process: the scatter between processes comes on top."""
WARMED: frozenset[LatencyPath] = frozenset({"bound", "public"})
"""Latencies that have a warm-up: a cold call has none, and a paced one follows a bound one that had."""

StoppedBy = Literal["precision", "budget"]


class Course:
    def __init__(self, measure: Measure, path: LatencyPath) -> None:
        self.path = path
        self.period = measure.period if path == "paced" else None
        self.processes: list[list[Block]] = []
        """Blocks that count, by process."""
        self.warmups: list[list[Block]] = []
        """Blocks that do not, by process."""
        self.stopped_by: StoppedBy | None = None
        self._least = measure.processes
        self._precision = measure.precision
        self._budget = measure.budget / len(paths(measure))
        self._samples_of = 1

    @property
    def share(self) -> float:
        """Seconds of one process."""
        return self._budget / self._least

    @property
    def block_s(self) -> float:
        """Seconds of one block; of a paced one time enough for a second call."""
        return max(self.share / ROUNDS, 1.5 * (self.period or 0.0))

    @property
    def window_s(self) -> float:
        """Seconds of one window of the warm-up."""
        return WARMUP_SHARE * self.share / WINDOWS

    @property
    def calls_per_sample(self) -> int:
        return self._samples_of

    def begin_process(self) -> None:
        self.processes.append([])
        self.warmups.append([])

    def add_warmup(self, window: Block) -> None:
        """The first window of all also says how many calls must be timed at once."""
        if not any(self.warmups):
            self._samples_of = measure_clock().calls_per_sample(float(np.median(window.seconds)))
        self.warmups[-1].append(window)

    def add(self, block: Block) -> None:
        self.processes[-1].append(block)

    @property
    def is_warm(self) -> bool:
        """Whether this process's warm-up is over: at rest, or its time spent."""
        windows = self.warmups[-1]
        if self.path not in WARMED or self.is_at_rest(windows):
            return True
        return _seconds(windows) >= WARMUP_SHARE * self.share

    def is_at_rest(self, windows: Sequence[Block]) -> bool:
        return at_rest(windows, self._precision * OWN_SHARE)

    @property
    def process_is_done(self) -> bool:
        """Whether this process has had its blocks: its time is spent, or its own median precise enough."""
        blocks = self.processes[-1]
        if blocks and _seconds(blocks) + _seconds(self.warmups[-1]) >= self.share:
            return True
        if len(blocks) >= ROUNDS:
            return True
        if self._least == 1 or len(blocks) < LEAST_ROUNDS:
            return False
        return self._precise([float(np.median(block.seconds)) for block in blocks], self._precision * OWN_SHARE)

    def end_process(self) -> None:
        """Look whether another process is to follow. One alone has no interval, and no precision: it has the budget."""
        if len(self.processes) < self._least:
            return
        spent = sum(_seconds(blocks) for blocks in (*self.processes, *self.warmups))
        if self._precise(medians(self.processes), self._precision):
            self.stopped_by = "precision"
        elif self._budget - spent < self.share * LEAST_ROUNDS / ROUNDS:
            self.stopped_by = "budget"

    @staticmethod
    def _precise(of: Sequence[float], precision: float) -> bool:
        interval = interval_of(of)
        return interval is not None and half_width(interval) <= precision


def medians(processes: Sequence[Sequence[Block]]) -> list[float]:
    """The median of each process over all of its calls."""
    return [float(np.median(np.concatenate([block.seconds for block in blocks]))) for blocks in processes]


def _seconds(blocks: Sequence[Block]) -> float:
    return sum(block.elapsed for block in blocks)
