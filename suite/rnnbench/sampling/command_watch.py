"""The suite's own clocks around every command of a sampling worker, and what they say about the worker's.

A program runs in the worker's process and may change what is read there. It cannot change the suite's clock, nor the
CPU time that the kernel tells the suite. The worker is stopped between commands.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass

from rnnbench.measure import (
    Block,
    Served,
    cpu_seconds_beyond,
    exceeds_wait,
    family_cpu_seconds,
    family_tasks,
    impossible_block,
    impossible_served,
    in_most_blocks,
    outside_wall_clock,
)
from rnnbench.results import Finding, FindingKind

HIDDEN_SHARE = 1.0
"""Of a block's seconds: CPU time of this size beyond it was used outside of it. The suite's own work there, which is
setting states, reading results and sending samples, is below 0.3."""
HIDDEN_S = 0.025
"""What it may be in any case. Blocks are as short as 4 ms."""
UNSEEN_FACTOR = 4.0
"""How many times longer than its block the suite may wait for it, where no CPU time is used: the machine is busy."""
UNSEEN_S = 0.5
CORES_SHARE = 1.25
"""CPU seconds a second and core that a worker is held to. An honest one cannot have more than 1. What is above is work
of the kernel, which it counts too."""
BETWEEN_SHARE = 0.1
"""Of the blocks' seconds: CPU time that the stopped worker and its children may use between commands."""
SLACK_S = 0.05


@dataclass(frozen=True)
class CommandTimes:
    """One command by the clocks of the suite, in seconds."""

    began: float
    """By the wall clock, since the epoch."""
    ended: float
    waited: float
    cpu: float
    """Of the worker and its descendants, during the command."""
    cpu_before: float
    """The same since the command before, while they should have been stopped."""


@dataclass(frozen=True)
class WatchedBlock:
    elapsed: float
    """As the worker says."""
    times: CommandTimes

    def hidden(self, cores: int) -> float:
        """CPU seconds that were used outside of the block, beyond what is allowed."""
        outside = min(self.times.waited - self.elapsed, self.times.cpu - cores * self.elapsed)
        return outside - HIDDEN_SHARE * self.elapsed - HIDDEN_S

    @property
    def unseen(self) -> float:
        """Seconds outside of the block, beyond what is allowed."""
        return self.times.waited - (1 + UNSEEN_FACTOR) * self.elapsed - UNSEEN_S


class CommandWatch:
    """Around the commands of one worker process."""

    def __init__(self, pid: int, cores: Set[int]) -> None:
        """`cores` are those that the worker is held to."""
        self._pid = pid
        self._cores = cores
        self._started_by = dict.fromkeys(family_tasks(pid), "")
        """The trial in whose commands a thread of the worker or of its descendants was first seen; empty if none."""
        self._trial = ""
        self._cpu = family_cpu_seconds(pid)
        self._cpu_before = self._started = self._began = 0.0
        self._times: CommandTimes | None = None
        self._blocks: defaultdict[str, list[WatchedBlock]] = defaultdict(list)

    def begin(self, trial: str) -> None:
        """A command for a trial is going to be sent."""
        self._trial = trial
        cpu = family_cpu_seconds(self._pid)
        self._cpu_before, self._cpu, self._times = cpu - self._cpu, cpu, None
        self._began, self._started = time.time(), time.monotonic()

    def end(self) -> None:
        """Its reply has come, and the worker is stopped."""
        waited = time.monotonic() - self._started
        cpu = family_cpu_seconds(self._pid)
        self._times = CommandTimes(self._began, time.time(), waited, cpu - self._cpu, self._cpu_before)
        self._cpu = cpu
        for task in family_tasks(self._pid):
            self._started_by.setdefault(task, self._trial)

    def contradiction(self, trial: str, block: Block, calls_per_sample: int) -> str:
        """Why the times of a block, the last command's reply, cannot be; empty if they can. It is remembered."""
        times = self._times
        assert times is not None, "the command has ended"
        self._blocks[trial].append(WatchedBlock(block.elapsed, times))
        return (
            impossible_block(block, calls_per_sample)
            or exceeds_wait({"a block of calls": block.elapsed}, times.waited)
            or outside_wall_clock(block.start, times.began, times.ended)
        )

    def contradiction_of_served(self, served: Served) -> str:
        """Why the times of work that was due, the last command's reply, cannot be; empty if they can."""
        times = self._times
        assert times is not None, "the command has ended"
        return (
            impossible_served(served)
            or exceeds_wait({"its calls": served.elapsed}, times.waited)
            or outside_wall_clock(served.start, times.began, times.ended)
        )

    def findings(self, trial: str, cores: int) -> list[Finding]:
        """What the blocks of a trial show, since the last call of this method. It was held to so many cores."""
        blocks = self._blocks.pop(trial, [])
        own = [task for task, started_by in self._started_by.items() if started_by == trial]
        beyond = beyond_cores(blocks, cpu_seconds_beyond(self._cores, own))
        details = [*moved_outside(blocks, cores), *beyond]
        return [Finding(kind=FindingKind.TIME, detail=detail, disbelieved=True) for detail in details]


def moved_outside(blocks: Sequence[WatchedBlock], cores: int) -> list[str]:
    """What blocks of one process show that their own clock does not, a sentence each; none of an honest program."""
    found = []
    elapsed, waited = sum(b.elapsed for b in blocks), sum(b.times.waited for b in blocks)
    cpu, between = sum(b.times.cpu for b in blocks), sum(b.times.cpu_before for b in blocks)
    if in_most_blocks(b.hidden(cores) for b in blocks):
        found.append(
            f"the worker says that its blocks took {elapsed:.3g} s; the suite waited {waited:.3g} s for them, in which "
            f"it used {cpu:.3g} s of CPU time: work was done outside of them, or its clock is slow"
        )
    elif in_most_blocks(b.unseen for b in blocks):
        found.append(
            f"the worker says that its blocks took {elapsed:.3g} s; the suite waited {waited:.3g} s for them: "
            f"something waited outside of them, or its clock is slow"
        )
    if cpu > CORES_SHARE * cores * waited + SLACK_S:
        found.append(
            f"the program used {cpu / waited:.2g} cores; it was held to {cores}: further threads or processes worked"
        )
    if between > BETWEEN_SHARE * elapsed + SLACK_S:
        found.append(
            f"processes of the program used {between:.3g} s of CPU time while its worker was stopped between blocks, "
            f"which took {elapsed:.3g} s"
        )
    return found


def beyond_cores(blocks: Sequence[WatchedBlock], cpu: float) -> list[str]:
    """What it shows that threads and processes, which may run on further cores, used CPU time. None if it is little.

    On a busy machine nothing else shows it: the program gets no more than one core of it.
    """
    elapsed = sum(b.elapsed for b in blocks)
    if cpu <= BETWEEN_SHARE * elapsed + SLACK_S:
        return []
    return [
        f"threads or processes that the program started used {cpu:.3g} s of CPU time and may run on further cores than "
        f"the trial is held to; its blocks took {elapsed:.3g} s"
    ]
