"""The samples of one latency path of one trial, and when to stop sampling it.

The budget is shared by the paths of the trial, and by `measure.processes` processes. In each process a path has a
warm-up and then ROUNDS blocks. Once LEAST_ROUNDS of them give the median of that process precisely enough, the process
is done. With the medians of `measure.processes` processes, and again after each further one, the interval of the median
is looked at: sampling stops where it is precise enough. What was saved buys further processes, twice as many at most,
since more calls in one process do not make the scatter between processes smaller.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnnbench.cases import Measure
from rnnbench.measure import (
    WARMUP_SHARE,
    Block,
    BlockPlan,
    LatencyPath,
    WarmUp,
    half_width,
    interval_of,
    process_medians,
    requested,
)
from rnnbench.results import Warmup
from rnnbench.stages import PathSamples, StoppedBy

ROUNDS = 8
"""Blocks of one process. They are short, so that drift hits all trials alike."""
LEAST_ROUNDS = 4
"""Blocks after which the median of a process is looked at: half of its time, so that the rest buys another process."""
PROCESS_SHARE = 0.5
"""Share of the precision that the median of one process must have: the scatter between processes comes on top."""


class PathBlocks:
    """Blocks and warm-ups of one path, by process."""

    def __init__(self, path: LatencyPath, setting: float = 0.0) -> None:
        self.path = path
        self.setting = setting
        self.processes: list[list[Block]] = []
        self.warmups: list[WarmUp] = []
        """One a process, where the path has warm-ups."""
        self.stopped_by: StoppedBy | None = None

    @property
    def calls_per_sample(self) -> int:
        """As the first process measured it, for all of them."""
        return self.warmups[0].calls_per_sample if self.warmups else 1

    def begin_process(self, warmup: WarmUp | None) -> None:
        self.processes.append([])
        if warmup is not None:
            self.warmups.append(warmup)

    def add(self, block: Block) -> None:
        self.processes[-1].append(block)

    def plan(self, seconds: float) -> BlockPlan:
        """A block of the present process."""
        return BlockPlan(seconds, self.calls_per_sample, setting=self.setting)

    def samples(self) -> PathSamples:
        return PathSamples(
            tuple(tuple(blocks) for blocks in self.processes),
            _total(self.warmups),
            self.stopped_by,
            self.setting,
        )


class PathSampling(PathBlocks):
    """One path on its way to the precision that is asked for, or to the end of its budget."""

    def __init__(self, measure: Measure, path: LatencyPath) -> None:
        super().__init__(path, path.value(measure.settings))
        self._least_processes = measure.processes
        self._precision = measure.precision
        self._budget = measure.budget / len(requested(measure.settings))

    @property
    def process_s(self) -> float:
        """Seconds of one process."""
        return self._budget / self._least_processes

    @property
    def block_s(self) -> float:
        """Seconds of one block."""
        return max(self.process_s / ROUNDS, self.path.least_block_s(self.setting))

    def begin(self) -> WarmUp | None:
        """Begin a further process. Returns the warm-up that comes before its blocks, if any."""
        warmup = WarmUp(WARMUP_SHARE * self.process_s, self._precision * PROCESS_SHARE) if self.path.warms_up else None
        self.begin_process(warmup)
        return warmup

    @property
    def process_is_done(self) -> bool:
        """Whether this process has had its blocks: its time is spent, or its own median is precise enough."""
        blocks = self.processes[-1]
        warmup_s = self.warmups[-1].seconds if self.warmups else 0.0
        if blocks and _seconds(blocks) + warmup_s >= self.process_s:
            return True
        if len(blocks) >= ROUNDS:
            return True
        if self._least_processes == 1 or len(blocks) < LEAST_ROUNDS:
            return False
        medians = [float(np.median(block.seconds)) for block in blocks]
        return self._is_precise(medians, self._precision * PROCESS_SHARE)

    def end_process(self) -> None:
        """Decide whether another process follows. A single one has no interval: it has the whole budget."""
        if len(self.processes) < self._least_processes:
            return
        spent = sum(map(_seconds, self.processes)) + sum(warmup.seconds for warmup in self.warmups)
        if self._is_precise(process_medians(self.processes), self._precision):
            self.stopped_by = "precision"
        elif self._budget - spent < self.process_s * LEAST_ROUNDS / ROUNDS:
            self.stopped_by = "budget"

    @staticmethod
    def _is_precise(medians: Sequence[float], precision: float) -> bool:
        interval = interval_of(medians)
        return interval is not None and half_width(interval) <= precision


def _seconds(blocks: Sequence[Block]) -> float:
    return sum(block.elapsed for block in blocks)


def _total(warmups: Sequence[WarmUp]) -> Warmup | None:
    """The warm-ups of all processes; None if there was none."""
    if not any(warmup.windows for warmup in warmups):
        return None
    return Warmup(
        calls=sum(warmup.calls for warmup in warmups),
        seconds=sum(warmup.seconds for warmup in warmups),
        stationary=sum(warmup.is_stationary for warmup in warmups),
    )
