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

from rnnbench.cases.trial import Measure
from rnnbench.measure.interval import half_width, interval_of
from rnnbench.measure.paths import requested
from rnnbench.measure.sampling import Block
from rnnbench.measure.warmup import WARMUP_SHARE, WarmUp

ROUNDS = 8
"""Blocks of one process, short so that drift hits all trials alike."""
LEAST_ROUNDS = 4
"""Blocks after which the median of a process is looked at; half of its time, so that the rest buys another process."""
OWN_SHARE = 0.5
"""Of the precision, for the median of one process: the scatter between processes comes on top."""
WARMED: frozenset[str] = frozenset({"bound", "public"})
"""Latencies that have a warm-up: a cold call has none, and a paced one follows a bound one that had."""

StoppedBy = Literal["precision", "budget"]


class Course:
    def __init__(self, measure: Measure, path: str) -> None:
        self.path = path
        self.period = measure.settings.get("period") if path == "paced" else None
        self.processes: list[list[Block]] = []
        """Blocks that count, by process."""
        self.warmups: list[WarmUp] = []
        """What came before them, by process; nothing where the path has none."""
        self.stopped_by: StoppedBy | None = None
        self._least = measure.processes
        self._precision = measure.precision
        self._budget = measure.budget / len(requested(measure.settings))

    @property
    def share(self) -> float:
        """Seconds of one process."""
        return self._budget / self._least

    @property
    def block_s(self) -> float:
        """Seconds of one block; of a paced one time enough for a second call."""
        return max(self.share / ROUNDS, 1.5 * (self.period or 0.0))

    @property
    def calls_per_sample(self) -> int:
        """As the first process says, for all of them."""
        return self.warmups[0].calls_per_sample if self.warmups else 1

    def begin_process(self) -> WarmUp | None:
        """What is to come before the blocks of a further process, if anything."""
        self.processes.append([])
        if self.path not in WARMED:
            return None
        self.warmups.append(WarmUp(WARMUP_SHARE * self.share, self._precision * OWN_SHARE))
        return self.warmups[-1]

    def add(self, block: Block) -> None:
        self.processes[-1].append(block)

    @property
    def process_is_done(self) -> bool:
        """Whether this process has had its blocks: its time is spent, or its own median precise enough."""
        blocks = self.processes[-1]
        warmup_s = self.warmups[-1].seconds if self.warmups else 0.0
        if blocks and _seconds(blocks) + warmup_s >= self.share:
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
        spent = sum(map(_seconds, self.processes)) + sum(warmup.seconds for warmup in self.warmups)
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
