"""The commands of a trial's worker and their replies. `trial_worker` carries them out.

The first command, `Start`, names the backend. The worker imports its framework, and then takes commands for any trial
of this backend.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator

from rnnbench.cases import Trial
from rnnbench.measure import PATHS, Block, BlockPlan, Served
from rnnbench.results import MOST, CheckResult
from rnnbench.stages import BuildFigures, CheckResults, ImportFigures, LoadFigures, Seconds, Size, WorkerState
from rnnbench.worker.kept_programs import CacheUse
from rnnbench.worker.protocol import Command, Done


def _decoded(text: object) -> np.ndarray:
    if not isinstance(text, str):
        raise ValueError(f"expected float64 in base64, got {type(text).__name__}")
    return np.frombuffer(base64.b64decode(text), np.float64)


def _encoded(seconds: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(seconds, np.float64).tobytes()).decode()


def _beside_latencies(figure: str) -> str:
    if figure in PATHS and not PATHS[figure].figure:
        raise ValueError(f"every trial has {figure}")
    return figure


Unmeasured = Mapping[Annotated[str, AfterValidator(_beside_latencies)], str]
"""Each figure beside the latencies that cannot be measured in a process, and why."""
SentGrowthStep = tuple[Annotated[int, Field(ge=1, le=MOST)], Annotated[int, Field(ge=-MOST, le=MOST)]]
"""A `GrowthStep` as it is sent."""


@dataclass(frozen=True)
class SentBlock(Block):
    """A block as it is sent: its seconds are float64 in base64."""

    seconds: Annotated[np.ndarray, PlainValidator(_decoded), PlainSerializer(_encoded)]

    @classmethod
    def of(cls, block: Block) -> SentBlock:
        return cls(**vars(block))


@dataclass(frozen=True)
class SentServed(Served):
    """Served frames or requests as they are sent: their latencies are float64 in base64."""

    latencies: Annotated[np.ndarray, PlainValidator(_decoded), PlainSerializer(_encoded)]

    @classmethod
    def of(cls, served: Served) -> SentServed:
        return cls(**vars(served))


@dataclass(frozen=True)
class Start(Command[ImportFigures]):
    """The first command: import the framework, then hold every thread to `affinity`."""

    backend: str
    cache: Path
    """Folder of built artifacts."""
    references: Path
    """Folder of reference trajectories."""
    affinity: tuple[int, ...]
    sources: str = ""
    """Digest of the backend's sources. Empty if the worker has another interpreter: it then reads its own sources."""
    kept: CacheUse | None = None
    """The cache with the programs of earlier runs; None if this run does not use it."""


@dataclass(frozen=True)
class Build(Command[BuildFigures]):
    """Compile into the cache, in a forked child: its memory is freed before the program runs."""

    trial: Trial


@dataclass(frozen=True)
class Restore(Command[Done]):
    """Verify the artifact's files, and build it again if they differ from what its build left."""

    trial: Trial


@dataclass(frozen=True)
class Forget(Command[Done]):
    """Remove the artifact, and its checks where it is loaded, from the cache: they have times that mean nothing."""

    trial: Trial


@dataclass(frozen=True)
class Load(Command[LoadFigures]):
    """Load the artifact, call it, and read the memory that it uses."""

    trial: Trial


@dataclass(frozen=True)
class ReferenceFigures:
    """What a trial's reference cost."""

    seconds: Seconds
    """0 if its trajectories were read from files."""


@dataclass(frozen=True)
class ComputeReference(Command[ReferenceFigures]):
    """Compute the reference trajectories that are not in files yet, so that checks need not wait for them."""

    trial: Trial


@dataclass(frozen=True)
class RunChecks(Command[CheckResults]):
    """Run the conformance checks."""

    trial: Trial
    reuse: bool = False
    """Whether to reuse the results of the same checks in an earlier run."""
    seconds: float | None = None
    """Seconds after which the process is killed. No check begins in the second half of this time."""


BlockMedians = Annotated[tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...], Field(min_length=1)]
"""Seconds of a call, one median per block."""


@dataclass(frozen=True)
class ComparedBlocks:
    """Two programs whose bound calls were sampled in turn."""

    first: BlockMedians
    second: BlockMedians


@dataclass(frozen=True)
class Compare(Command[ComparedBlocks]):
    """Time some blocks of bound calls of two trials of this backend, in turn."""

    first: Trial
    second: Trial


@dataclass(frozen=True)
class Prepared:
    """A program that is ready to be sampled."""

    timed: CheckResult
    """The check of its first calls."""
    unmeasured: Unmeasured = field(default_factory=dict)
    """Each figure of the case that cannot be measured in this process, and why."""


@dataclass(frozen=True)
class Prepare(Command[Prepared]):
    """Load and bind a program for sampling, and check its timed path."""

    trial: Trial


@dataclass(frozen=True)
class SamplePath(Command[SentBlock]):
    """Time one block of calls of a latency path (`measure.paths`)."""

    trial: Trial
    path: str
    plan: BlockPlan


@dataclass(frozen=True)
class SampleStateCopy(Command[SentBlock]):
    """Time one block of round trips of the state through NumPy."""

    trial: Trial
    seconds: float


@dataclass(frozen=True)
class OpenedStreams:
    """How many streams of a trial are open."""

    streams: Size


@dataclass(frozen=True)
class OpenStreams(Command[OpenedStreams]):
    """Open sessions of a prepared program until `streams` are open, or until memory or time runs out."""

    trial: Trial
    streams: int
    room: int
    """Resident bytes that the sessions may add."""


@dataclass(frozen=True)
class ServeFrames(Command[SentServed]):
    """Serve `frames` frames, one every `period` seconds. A frame is one call of each of the first `streams` streams."""

    trial: Trial
    streams: int
    frames: int
    period: float


@dataclass(frozen=True)
class ServeRequests(Command[SentServed]):
    """Serve requests with the first open stream. They arrive at random, `rate` per second, from the seed."""

    trial: Trial
    rate: float
    requests: int
    seed: int
    longest: float
    """Seconds after which serving ends, even if requests are left."""


@dataclass(frozen=True)
class CloseStreams(Command[CheckResult]):
    """Check the outputs and states that the streams' calls led to, and close the streams."""

    trial: Trial


@dataclass(frozen=True)
class Verified:
    """The check of the timed calls, and the state and metrics of the process after sampling."""

    timed: CheckResult
    state: WorkerState
    busy_threads: Size | None
    growth: Mapping[str, tuple[SentGrowthStep, ...]] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Verify(Command[Verified]):
    """Check the outputs and states that the timed calls led to."""

    trial: Trial


@dataclass(frozen=True)
class DeviceTime:
    """The time of a bound call by the device's own events."""

    metrics: dict[str, float] = field(default_factory=dict)
    """Empty if it cannot be measured."""
    unmeasured: Unmeasured = field(default_factory=dict)
    """As in `Prepared`."""


@dataclass(frozen=True)
class TimeOnDevice(Command[DeviceTime]):
    """Time some bound calls by the device's own events, after the trial's results were verified."""

    trial: Trial


@dataclass(frozen=True)
class Fork(Command[Done]):
    """Import these modules, then fork a child that carries out the commands up to `EndFork`."""

    modules: tuple[str, ...]
    built: tuple[tuple[str, str], ...] = ()
    """Each route and device on which an earlier child has built."""


@dataclass(frozen=True)
class ImportedModules:
    """Modules that the builds of a forked child imported."""

    modules: tuple[str, ...]


@dataclass(frozen=True)
class EndFork(Command[ImportedModules]):
    """End the forked child."""
