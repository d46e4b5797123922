"""What a record has of time, all in seconds: builds, loads, and latencies with how they were sampled."""

from __future__ import annotations

from typing import Literal

from rnnbench.results.part import Part


class Warmup(Part):
    """Calls before the first that counts, over all processes."""

    calls: int
    seconds: float
    stationary: int
    """Processes in which their distribution was seen to have come to rest before warm-up's share of time was spent."""


class Latency(Part):
    """Seconds per call, from individual calls of all processes."""

    count: int
    kept: int
    """Calls whose samples are in the run's `samples/`; the figures here are from all `count`."""
    min: float
    median: float
    mean: float
    p90: float
    p99: float
    max: float
    per_step: float
    """The median per time step."""
    process_medians: tuple[float, ...]
    """The median of each sampled process: what a comparison of two runs rests on."""
    interval: tuple[float, float] | None = None
    """Bounds, at 95 %, of the median that a fresh process is expected to have; None for a single process."""
    stopped_by: Literal["precision", "budget"] | None = None
    """Whether that interval became as narrow as was asked, or the budget came to its end first."""
    calls_per_sample: int = 1
    """Calls that were timed as one, where one alone comes near what reading the clock costs; `count` counts samples."""
    warmup: Warmup | None = None
    blocks: int = 0
    disturbed_blocks: int | None = None
    """Blocks during which another process, or the machine's host, had the core; None where that cannot be read."""
    drift: float | None = None
    """By how much, relative to itself, it grew from the first block to the last (the slope of Theil and Sen)."""
    steps_per_s: float | None = None
    """Time steps of all streams of a batch above 1, in a second."""


class PacedLatency(Latency):
    """Seconds per call of a stream that leaves time between its calls."""

    period: float
    """Seconds between the beginnings of calls."""
    real_time_factor: float
    """The median over the period: below 1 the program keeps up."""
    deadline_misses: int
    """Calls that were not complete when the next one was due."""


class Beside(Part):
    """What was timed beside a trial's latencies, in the same processes."""

    seconds: float | None = None
    """The median of the processes' medians."""
    interval: tuple[float, float] | None = None
    """At 95 %, between processes; None for a single one."""
    count: int = 0
    """Samples."""
    unmeasured: str = ""
    """Why there are no seconds."""


class DispatchFloor(Beside):
    """A bound call of the least program that the runtime can be given: a counter of one unit, one step a call."""

    strategy: str = ""
    """Which one was asked for; its state is the trial's."""


class Timing(Part):
    build_s: float | None = None
    """Seconds of a cold build; None where the artifact was found ready. Imports are in none of these figures."""
    build_import_s: float | None = None
    """Seconds that modules took which the build imported: a compiler, or an importer's framework."""
    build_origin: Literal["cold", "cached"] | None = None
    load_s: float | None = None
    """Seconds to load the artifact from the cache."""
    load_import_s: float | None = None
    """Seconds that modules took which were imported between the start of the load and the end of the first call."""
    first_call_s: float | None = None
    tail_build_s: float | None = None
    """Seconds to build the program of size 1 for a ragged rest, where one was needed."""
    bound: Latency | None = None
    public: Latency | None = None
    cold: Latency | None = None
    """Bound, with caches evicted before each call."""
    paced: PacedLatency | None = None
    """Bound, at the pace of a stream."""
    state_copy: Beside | None = None
    """The state's round trip through NumPy: `get_state`, and `set_state` with what it gave."""
    dispatch: DispatchFloor | None = None
    """Sampled in the same processes and rounds, and shared by the trials of one target and state."""
