"""What a trial does for many callers: the figures of the scenarios of `measure.scenarios`. All times in seconds."""

from __future__ import annotations

from rnnbench.results.model import FrozenModel


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
