"""The latency paths: which calls of a trial are timed, and how. A path is declared only here.

The keys of case files, the worker's sampler, the figures of records, and the columns and words of reports all come from
`PATHS`. To add a path, add one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rnnbench.measure.blocks import Block, sample_block, sample_cold, sample_paced


@dataclass(frozen=True)
class TimedCall:
    """The functions that a sampler calls."""

    call: Callable[[], object]
    sync: Callable[[], object]
    """Waits until the work of the last call is done. It is part of the latency."""
    evict: Callable[[], object]
    """Empties the device's caches."""


@dataclass(frozen=True)
class BlockPlan:
    """How one block of calls is timed."""

    seconds: float
    calls_per_sample: int = 1
    """Calls that are timed as one sample, if a single call is too short for the clock."""
    rewarm: bool = True
    """Whether the first calls of the block, which re-warm the caches, are left out."""
    setting: float = 0.0
    """The value of the path's key in the case file, if the path has one."""


@dataclass(frozen=True)
class Setting:
    """The key of `measure:` in a case file that asks for a path."""

    key: str
    kind: Literal["flag", "duration", "rate"]
    """`flag` is true or false. `duration` is a time in seconds, or null. `rate` is a number per second, or null."""
    description: str


@dataclass(frozen=True)
class PathFigure:
    """A figure that only this path has."""

    name: str
    """Key in the record."""
    title: str
    """Column in a table."""
    unit: Literal["seconds", "count", "ratio"]
    compute: Callable[[Sequence[Block], float, float], float]
    """Computes the figure from all blocks, the setting's value, and the median in seconds."""
    meaning: str = ""
    """A sentence for readers of a report, if the title needs one."""


@dataclass(frozen=True)
class LatencyPath:
    """One way to time a trial."""

    name: str
    """Name in records and tables."""
    meaning: str
    """A sentence for readers of a report."""
    entry: Literal["bound", "public"]
    """The call of a session that is timed: `Session.bind(...)()` or `Session.step`."""
    sample: Callable[[TimedCall, BlockPlan], Block]
    setting: Setting | None = None
    """The key that asks for the path; None for a path that every trial has."""
    warms_up: bool = False
    """Whether calls are left out until their distribution is stationary. Such a path chooses `calls_per_sample`."""
    compared: bool = False
    """Whether `ab` samples it and the history has a series of it. `compare` judges every path that two runs have."""
    watch_memory: bool = False
    """Whether the growth of memory over its calls is recorded."""
    evicts: bool = False
    """Whether its sampler calls `TimedCall.evict`, whose buffer takes memory."""
    least_block_s: Callable[[float], float] = lambda setting: 0.0
    """Least seconds of a block, from the setting."""
    least_process_s: Callable[[float], float] = lambda setting: 0.0
    """Least seconds that the budget must have for each process, from the setting."""
    figures: tuple[PathFigure, ...] = ()

    def value(self, settings: Mapping[str, float]) -> float:
        """The value of its setting; 0 if it has none, or is not asked for."""
        return settings.get(self.setting.key, 0.0) if self.setting else 0.0

    @property
    def figure(self) -> str:
        """Its name as a figure beside the latencies that every trial has; empty for one of these."""
        return self.name if self.setting else ""

    def is_requested(self, settings: Mapping[str, float]) -> bool:
        return self.setting is None or bool(self.value(settings))


def _sample_warm(timed: TimedCall, plan: BlockPlan) -> Block:
    return sample_block(
        timed.call, timed.sync, plan.seconds, calls_per_sample=plan.calls_per_sample, rewarm=plan.rewarm
    )


PATHS: Mapping[str, LatencyPath] = {
    path.name: path
    for path in (
        LatencyPath(
            name="bound",
            meaning="The least that the runtime needs from Python. Everything is allocated and converted beforehand.",
            entry="bound",
            sample=_sample_warm,
            warms_up=True,
            compared=True,
            watch_memory=True,
        ),
        LatencyPath(
            name="public",
            meaning="NumPy arrays in, NumPy arrays out.",
            entry="public",
            sample=_sample_warm,
            warms_up=True,
            compared=True,
            watch_memory=True,
        ),
        LatencyPath(
            name="cold",
            meaning="A bound call after the device's caches were emptied.",
            entry="bound",
            sample=lambda timed, plan: sample_cold(timed.call, timed.sync, timed.evict, plan.seconds),
            setting=Setting("cold", "flag", "Whether to time calls with empty caches too."),
            evicts=True,
        ),
        LatencyPath(
            name="paced",
            meaning="Bound calls that begin one period apart, as a stream's calls do.",
            entry="bound",
            sample=lambda timed, plan: sample_paced(timed.call, timed.sync, plan.setting, plan.seconds),
            setting=Setting(
                "period",
                "duration",
                "Time between the starts of two calls of a stream, which is then timed too; null for none.",
            ),
            least_block_s=lambda period: 1.5 * period,
            least_process_s=lambda period: 4 * period,
            figures=(
                PathFigure("period", "period", "seconds", lambda blocks, period, median: period),
                PathFigure(
                    "real_time_factor",
                    "real-time factor",
                    "ratio",
                    lambda _, period, median: median / period,
                    "The median over the period. Below 1 the program keeps up.",
                ),
                PathFigure(
                    "deadline_misses",
                    "deadlines missed",
                    "count",
                    lambda blocks, *_: sum(block.missed for block in blocks),
                    "Calls that were not complete when the next one was due.",
                ),
            ),
        ),
    )
}


def requested(settings: Mapping[str, float]) -> tuple[LatencyPath, ...]:
    """The paths that a case's settings ask for. The sampling budget is theirs in equal shares."""
    return tuple(path for path in PATHS.values() if path.is_requested(settings))
