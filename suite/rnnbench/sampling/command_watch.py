"""The suite's own clocks around every command of a sampling worker, which the worker's times are compared with.

A program runs in the worker's process and can change the clocks there. It cannot change the suite's clock, nor the CPU
time that the kernel reports to the suite. The worker is stopped between commands.
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
"""CPU time outside of a block, as a share of its seconds, that is allowed. The suite's own work there (setting states,
reading results, sending samples) is below 0.3."""
HIDDEN_S = 0.025
"""Seconds that are allowed in addition. Blocks are as short as 4 ms."""
UNSEEN_FACTOR = 4.0
"""How many times a block's seconds the suite may wait for it beyond the block, without CPU time: on a busy machine."""
UNSEEN_S = 0.5
"""Seconds that are allowed in addition."""
CORES_SHARE = 1.25
"""CPU seconds that are allowed per second and core of a worker. An honest worker uses at most 1, and the kernel counts
some of its own work too."""
BETWEEN_SHARE = 0.1
"""CPU time between commands, as a share of the blocks' seconds, that the stopped worker and its children may use."""
SLACK_S = 0.05
"""Seconds that are allowed in addition to CORES_SHARE and to BETWEEN_SHARE."""


@dataclass(frozen=True)
class CommandTimes:
    """One command, timed by the suite, in seconds."""

    began: float
    """The wall clock at the start, since the epoch."""
    ended: float
    """The wall clock at the end, since the epoch."""
    waited: float
    cpu: float
    """CPU time of the worker and its descendants during the command."""
    cpu_before: float
    """Their CPU time since the previous command, while they should have been stopped."""


@dataclass(frozen=True)
class WatchedBlock:
    """One block, timed by the worker and by the suite."""

    elapsed: float
    """The block's seconds, as the worker reports them."""
    times: CommandTimes

    def hidden(self, cores: int) -> float:
        """CPU seconds outside of the block, less those that are allowed."""
        outside = min(self.times.waited - self.elapsed, self.times.cpu - cores * self.elapsed)
        return outside - HIDDEN_SHARE * self.elapsed - HIDDEN_S

    @property
    def unseen(self) -> float:
        """Seconds outside of the block, less those that are allowed."""
        return self.times.waited - (1 + UNSEEN_FACTOR) * self.elapsed - UNSEEN_S


class CommandWatch:
    """Times the commands of one worker process."""

    def __init__(self, pid: int, cores: Set[int]) -> None:
        """`cores` are those that the worker is bound to."""
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
        """Call this before a command for a trial is sent."""
        self._trial = trial
        cpu = family_cpu_seconds(self._pid)
        self._cpu_before, self._cpu, self._times = cpu - self._cpu, cpu, None
        self._began, self._started = time.time(), time.monotonic()

    def end(self) -> None:
        """Call this after the reply, when the worker is stopped."""
        waited = time.monotonic() - self._started
        cpu = family_cpu_seconds(self._pid)
        self._times = CommandTimes(self._began, time.time(), waited, cpu - self._cpu, self._cpu_before)
        self._cpu = cpu
        for task in family_tasks(self._pid):
            self._started_by.setdefault(task, self._trial)

    def contradiction(self, trial: str, block: Block, calls_per_sample: int) -> str:
        """Why the times of a block are impossible; empty if they are not. The block is the last command's reply.

        It is kept for `findings`.
        """
        times = self._times
        assert times is not None, "the command has ended"
        self._blocks[trial].append(WatchedBlock(block.elapsed, times))
        return (
            impossible_block(block, calls_per_sample)
            or exceeds_wait({"a block of calls": block.elapsed}, times.waited)
            or outside_wall_clock(block.start, times.began, times.ended)
        )

    def contradiction_of_served(self, served: Served) -> str:
        """Why the times of served work, the last command's reply, are impossible; empty if they are not."""
        times = self._times
        assert times is not None, "the command has ended"
        return (
            impossible_served(served)
            or exceeds_wait({"its calls": served.elapsed}, times.waited)
            or outside_wall_clock(served.start, times.began, times.ended)
        )

    def findings(self, trial: str, cores: int) -> list[Finding]:
        """Findings from the trial's blocks since the last call of this method. The trial was bound to `cores` cores."""
        blocks = self._blocks.pop(trial, [])
        started = [task for task, started_by in self._started_by.items() if started_by == trial]
        beyond = beyond_cores(blocks, cpu_seconds_beyond(self._cores, started))
        details = [*moved_outside(blocks, cores), *beyond]
        return [Finding(kind=FindingKind.TIME, detail=detail, disbelieved=True) for detail in details]


def moved_outside(blocks: Sequence[WatchedBlock], cores: int) -> list[str]:
    """Signs that a process worked outside of its blocks, a sentence each. An honest program gives none."""
    findings = []
    elapsed, waited = sum(b.elapsed for b in blocks), sum(b.times.waited for b in blocks)
    cpu, between = sum(b.times.cpu for b in blocks), sum(b.times.cpu_before for b in blocks)
    if in_most_blocks(b.hidden(cores) for b in blocks):
        findings.append(
            f"the worker says that its blocks took {elapsed:.3g} s; the suite waited {waited:.3g} s for them, in which "
            f"it used {cpu:.3g} s of CPU time: work was done outside of them, or its clock is slow"
        )
    elif in_most_blocks(b.unseen for b in blocks):
        findings.append(
            f"the worker says that its blocks took {elapsed:.3g} s; the suite waited {waited:.3g} s for them: "
            f"something waited outside of them, or its clock is slow"
        )
    if cpu > CORES_SHARE * cores * waited + SLACK_S:
        findings.append(
            f"the program used {cpu / waited:.2g} cores; it was held to {cores}: further threads or processes worked"
        )
    if between > BETWEEN_SHARE * elapsed + SLACK_S:
        findings.append(
            f"processes of the program used {between:.3g} s of CPU time while its worker was stopped between blocks, "
            f"which took {elapsed:.3g} s"
        )
    return findings


def beyond_cores(blocks: Sequence[WatchedBlock], cpu: float) -> list[str]:
    """A sentence if threads or processes that may run on further cores used much CPU time; otherwise none.

    On a busy machine no other check notices this: the program gets no more than one core.
    """
    elapsed = sum(b.elapsed for b in blocks)
    if cpu <= BETWEEN_SHARE * elapsed + SLACK_S:
        return []
    return [
        f"threads or processes that the program started used {cpu:.3g} s of CPU time and may run on further cores than "
        f"the trial is held to; its blocks took {elapsed:.3g} s"
    ]
