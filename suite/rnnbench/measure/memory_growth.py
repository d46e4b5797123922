"""The growth of a process's memory with its calls, read between blocks of timed calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations
from statistics import median

from rnnbench.measure import memory

LEAST_BLOCKS = 4
"""The least blocks for a slope. With fewer, a single page looks like growth."""

GrowthStep = tuple[int, int]
"""Calls of one block, and the bytes by which the process grew over it."""


@dataclass(frozen=True)
class Growth:
    """The growth of resident memory with calls."""

    per_1000_calls: float | None
    """Bytes per 1,000 calls; None if there were too few blocks."""
    calls: int
    """The number of calls that were watched."""


class GrowthLog:
    """Growth of a process, block by block, for each kind of call.

    Memory is read before a block, and again before the next one: by then the samples of the first are gone.
    """

    def __init__(self) -> None:
        self._steps: defaultdict[Hashable, list[GrowthStep]] = defaultdict(list)
        self._current: tuple[Hashable, int] | None = None
        self._before = 0

    def begin(self) -> None:
        """Read memory before a block, or before anything else that follows a block."""
        now = memory.resident()
        if self._current is not None:
            kind, calls = self._current
            self._steps[kind].append((calls, now - self._before))
        self._current, self._before = None, now

    def called(self, kind: Hashable, calls: int) -> None:
        """Note that the work since `begin` was a block of `calls` calls of this kind."""
        self._current = kind, calls

    def steps(self, kind: Hashable) -> list[GrowthStep]:
        return self._steps[kind]


def growth_of(processes: Sequence[Sequence[GrowthStep]]) -> Growth:
    """The median of the slopes between any two readings of one process (Theil and Sen), over all processes."""
    slopes = []
    for steps in processes:
        readings = list(accumulate(steps, lambda a, b: (a[0] + b[0], a[1] + b[1]), initial=(0, 0)))
        slopes += [(after[1] - before[1]) / (after[0] - before[0]) for before, after in combinations(readings, 2)]
    blocks = sum(map(len, processes))
    calls = sum(calls for steps in processes for calls, _ in steps)
    return Growth(1_000 * median(slopes) if blocks >= LEAST_BLOCKS else None, calls)
