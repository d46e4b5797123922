"""The times of a record: builds, loads and latencies, with how they were sampled. All in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from rnnbench.results.frozen_model import FrozenModel

MANY_DISTURBED = 0.1
"""Share of the blocks from which readers are warned: fewer hardly move a median over blocks."""
StoppedBy = Literal["precision", "budget"]
"""`precision`: the interval became as narrow as requested. `budget`: the time was spent first."""


class Warmup(FrozenModel):
    """The calls before the first one that counts, over all processes."""

    calls: int
    seconds: float
    stationary: int
    """Processes whose latencies became stationary before the time for warm-up was spent."""


class Sampling(FrozenModel):
    """How a latency was sampled."""

    stopped_by: StoppedBy | None = None
    calls_per_sample: int = 1
    """Calls that were timed as one sample, where one call is too short for the clock."""
    warmup: Warmup | None = None
    """None where the path has no warm-up."""
    blocks: int = 0
    """Blocks of samples, over all processes."""
    disturbed_blocks: int | None = None
    """Blocks during which another process, or the machine's host, used the core, or the device was disturbed
    (`Record.device_state`); None where this cannot be read."""
    drift: float | None = None
    """Relative change from the first block to the last, by the slope of Theil and Sen."""


class Latency(FrozenModel):
    """Seconds per call, from the samples of all processes."""

    count: int
    """Number of samples."""
    kept: int
    """Samples that are in the run's `samples/`. The figures here come from all `count` samples."""
    min: float
    median: float
    mean: float
    p90: float
    p99: float
    max: float
    per_step: float
    """The median per time step."""
    process_medians: tuple[float, ...]
    """The median of each sampled process. Comparisons of runs use these."""
    interval: tuple[float, float] | None = None
    """95 % interval of the median that a fresh process is expected to have; None for a single process."""
    sampling: Sampling = Sampling()
    figures: dict[str, float] = Field(default_factory=dict)
    """Figures of this path alone, under the names that `measure/paths.py` declares (`period`, `real_time_factor`,
    `deadline_misses`); and `steps_per_s`, the time steps of all streams in a second, for a batch above 1."""


STEPS_PER_S = "steps_per_s"
"""Name of the figure that a latency of any path has for a batch above 1."""


class SideLatency(FrozenModel):
    """A latency that was measured beside the trial's own, in the same processes."""

    seconds: float | None = None
    """Median of the processes' medians, per call."""
    interval: tuple[float, float] | None = None
    """95 % interval between processes; None for a single process."""
    count: int = 0
    """Number of samples."""
    unmeasured: str = ""
    """Why there are no seconds."""


class DispatchFloor(SideLatency):
    """A bound call of the smallest program that the runtime accepts: a counter of one unit, one step a call."""

    strategy: str = ""
    """Strategy of that program; its state is the trial's."""


class StreamTest(FrozenModel):
    """One test of a number of streams."""

    process: int
    streams: int
    frames: int
    """Frames that were served. A test ends early where too many miss their deadline."""
    missed: int
    """Frames that were complete after the next one was due."""
    median: float
    """Median latency of a frame, from its due time until the last stream is served."""
    p99: float | None = None
    """None for a test of few frames, which only finds where to look."""


class Streams(FrozenModel):
    """How many real-time streams are held: at most 1 % of their frames miss the deadline."""

    period: float
    """Between two frames: the time of a step by the steps of a call."""
    held: int
    """The median of what the processes hold; 0 where one stream is too many."""
    held_by_all: int
    """What every process holds."""
    failed: int | None = None
    """The smallest number above what each process held; None where a process could open no more."""
    frames: int
    """Over which the next three figures are: those of the test that held most, in each process."""
    missed: int
    median: float
    p99: float | None = None
    """None where no number of streams was held: a test that fails has few frames."""
    tests: tuple[StreamTest, ...] = ()
    """Every test, in the order in which they were made."""


class Server(FrozenModel):
    """Requests that arrive at random and wait in one queue for one core."""

    rate: float
    """Requests a second, on average."""
    requests: int
    """Requests that were served, over all processes."""
    unserved: int
    """Requests whose turn had not come when serving ended. It takes at most three times as long as its schedule."""
    median: float
    """Median latency of a request, from its arrival to its result."""
    p99: float
    utilisation: float
    """Share of the time in which the core was in calls."""


class Timing(FrozenModel):
    """All times of one trial."""

    build_s: float | None = None
    """Seconds of a cold build, without imports: of the earlier run's that `built` dates, where there is one. None where
    the artifact was found ready, and its build is not known."""
    build_import_s: float | None = None
    """Seconds of the imports that the build made: a compiler, or an importer's framework."""
    build_origin: Literal["cold", "cached"] | None = None
    built: str = ""
    """When an earlier run built the artifact, UTC, ISO 8601; empty where this run did."""
    load_s: float | None = None
    """Seconds to load the artifact from the cache, without imports."""
    load_import_s: float | None = None
    """Seconds of the imports between the start of the load and the end of the first call."""
    open_s: float | None = None
    """Seconds to open a session, without imports."""
    bind_s: float | None = None
    """Seconds to bind a ring of 8 chunks, without imports."""
    first_call_s: float | None = None
    """Seconds of the first bound call, without imports."""
    close_s: float | None = None
    """Seconds to close the session after 16 calls."""
    tail_build_s: float | None = None
    """Seconds to build the program of size 1 for a ragged rest, where one was needed."""
    latency: dict[str, Latency] = Field(default_factory=dict)
    """By the name of the path in `measure/paths.py`: `bound`, `public`, `cold`, `paced`."""
    state_copy: SideLatency | None = None
    """The state's round trip through NumPy: `get_state`, then `set_state` with what it returned."""
    dispatch_floor: DispatchFloor | None = None
    """Sampled in the same processes and rounds, once for all trials of one target and state."""
    streams: Streams | None = None
    """How many real-time streams are held, where the case asks for it."""
    server: Server | None = None
    """What became of requests that arrive at random, where the case asks for it."""

    @property
    def own_build_s(self) -> float | None:
        """The seconds of a build of this run. An earlier run's are no new measurement: no comparison uses them."""
        return None if self.built else self.build_s


def disturbed_share(latencies: Sequence[Latency]) -> float | None:
    """Share of disturbed blocks; None where it could not be read."""
    watched = [latency for latency in latencies if latency.sampling.disturbed_blocks is not None]
    blocks = sum(latency.sampling.blocks for latency in watched)
    return sum(latency.sampling.disturbed_blocks or 0 for latency in watched) / blocks if blocks else None
