"""The samples of one latency path of one trial, and when to stop sampling it.

The trial's paths share the budget, and so do `measure.processes` processes. In each process a path has a warm-up and
then ROUNDS blocks. The process ends early once at least LEAST_ROUNDS blocks give its median precisely enough.

After `measure.processes` processes, and after each further one, sampling stops if the interval of the median is precise
enough. Saved time is spent on further processes, at most twice as many. More calls in one process would not reduce the
scatter between processes.
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
"""The most blocks of one process. They are short, so that drift affects all trials alike."""
LEAST_ROUNDS = 4
"""The least blocks of one process: half of its time, so that the saved half can buy another process."""
PROCESS_SHARE = 0.5
"""The half width of one process's interval, as a share of the precision: the scatter between processes adds to it."""


class PathBlocks:
    """The blocks and warm-ups of one path, by process."""

    def __init__(self, path: LatencyPath, setting: float = 0.0) -> None:
        self.path = path
        self.setting = setting
        self.processes: list[list[Block]] = []
        self.warmups: list[WarmUp] = []
        """One per process, if the path has warm-ups."""
        self.stopped_by: StoppedBy | None = None

    @property
    def calls_per_sample(self) -> int:
        """The calls of one sample. The first process measures it for all."""
        return self.warmups[0].calls_per_sample if self.warmups else 1

    def begin_process(self, warmup: WarmUp | None) -> None:
        self.processes.append([])
        if warmup is not None:
            self.warmups.append(warmup)

    def add(self, block: Block) -> None:
        self.processes[-1].append(block)

    def plan(self, seconds: float) -> BlockPlan:
        """The plan of a block of the current process."""
        return BlockPlan(seconds, self.calls_per_sample, setting=self.setting)

    def samples(self) -> PathSamples:
        return PathSamples(
            tuple(tuple(blocks) for blocks in self.processes),
            _total(self.warmups),
            self.stopped_by,
            self.setting,
        )


class PathSampling(PathBlocks):
    """One path that is sampled until it is precise enough or its budget is spent."""

    def __init__(self, measure: Measure, path: LatencyPath) -> None:
        super().__init__(path, path.value(measure.settings))
        self._least_processes = measure.processes
        self._precision = measure.precision
        self._budget = measure.budget / len(requested(measure.settings))

    @property
    def process_s(self) -> float:
        """Seconds of sampling in one process."""
        return self._budget / self._least_processes

    @property
    def block_s(self) -> float:
        """Seconds of one block."""
        return max(self.process_s / ROUNDS, self.path.least_block_s(self.setting))

    def begin(self) -> WarmUp | None:
        """Begin another process. Returns the warm-up before its blocks, if the path has one."""
        warmup = WarmUp(WARMUP_SHARE * self.process_s, self._precision * PROCESS_SHARE) if self.path.warms_up else None
        self.begin_process(warmup)
        return warmup

    @property
    def process_is_done(self) -> bool:
        """Whether this process needs no more blocks: its time is spent, or its median is precise enough."""
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
        """Decide whether sampling stops after this process. A single process has no interval, and the whole budget."""
        if len(self.processes) < self._least_processes:
            return
        spent = sum(map(_seconds, self.processes)) + sum(warmup.seconds for warmup in self.warmups)
        if self._is_precise(process_medians(self.processes), self._precision):
            self.stopped_by = "precision"
        elif self._budget - spent < self.process_s * LEAST_ROUNDS / ROUNDS or self._has_twice_as_many:
            self.stopped_by = "budget"

    @property
    def _has_twice_as_many(self) -> bool:
        """Whether it has the most processes that its budget can pay for, whatever a worker says that they took."""
        return len(self.processes) * LEAST_ROUNDS >= self._least_processes * ROUNDS

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
