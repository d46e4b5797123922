"""What the suite asks of a trial's worker, and what it answers. `trial_worker` carries the commands out.

A worker is told what it is (`Start`), imports its framework, and then takes commands for any trial of its backend.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import PlainSerializer, PlainValidator

from rnnbench.cases import Trial
from rnnbench.measure import Block, BlockPlan, GrowthStep, Served
from rnnbench.results import CheckResult
from rnnbench.stages import BuildFigures, CheckResults, ImportFigures, LoadFigures, WorkerState
from rnnbench.worker.kept_programs import CacheUse
from rnnbench.worker.protocol import Command, Done


def _decoded(text: str | np.ndarray) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), np.float64) if isinstance(text, str) else text


def _encoded(seconds: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(seconds, np.float64).tobytes()).decode()


@dataclass(frozen=True)
class SentBlock(Block):
    """A block on the line: its seconds as base64, eight bytes each."""

    seconds: Annotated[np.ndarray, PlainValidator(_decoded), PlainSerializer(_encoded)]

    @classmethod
    def of(cls, block: Block) -> SentBlock:
        return cls(**vars(block))


@dataclass(frozen=True)
class SentServed(Served):
    """Work that was due, on the line."""

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
    """Digest of the backend's sources, where the worker has the suite's own interpreter. Otherwise it reads its own."""
    kept: CacheUse | None = None
    """The programs of earlier runs, where this run uses them."""


@dataclass(frozen=True)
class Build(Command[BuildFigures]):
    """Compile into the cache, in a forked child: what a compiler leaves in memory is gone before the program runs."""

    trial: Trial


@dataclass(frozen=True)
class Restore(Command[Done]):
    """Verify the artifact's files, and build it again where they are not what its build left."""

    trial: Trial


@dataclass(frozen=True)
class Load(Command[LoadFigures]):
    """Load the artifact, call it, and read what it occupies."""

    trial: Trial


@dataclass(frozen=True)
class ReferenceFigures:
    """What a trial's reference cost."""

    seconds: float
    """0 where its trajectories were in files."""


@dataclass(frozen=True)
class ComputeReference(Command[ReferenceFigures]):
    """Compute the reference trajectories that are not in files yet, so that checks need not wait for them."""

    trial: Trial


@dataclass(frozen=True)
class RunChecks(Command[CheckResults]):
    """Run the conformance checks."""

    trial: Trial
    reuse: bool = False
    """Whether results of an earlier run of the same checks will do."""
    seconds: float | None = None
    """How long the checks may take. The process is killed then, so none begins when half of it is over."""


@dataclass(frozen=True)
class ComparedBlocks:
    """Seconds of a bound call, the median of each block, of two programs in turn."""

    first: tuple[float, ...]
    second: tuple[float, ...]


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
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    """Why figures that its case asks for cannot be measured in this process."""


@dataclass(frozen=True)
class Prepare(Command[Prepared]):
    """Load and bind a program that is going to be sampled, and check its timed path."""

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

    streams: int


@dataclass(frozen=True)
class OpenStreams(Command[OpenedStreams]):
    """Open sessions of a prepared program until so many are open, or memory or time is spent."""

    trial: Trial
    streams: int
    room: int
    """Bytes that they may make resident."""


@dataclass(frozen=True)
class ServeFrames(Command[SentServed]):
    """Serve so many frames of so many open streams, one every `period` seconds."""

    trial: Trial
    streams: int
    frames: int
    period: float


@dataclass(frozen=True)
class ServeRequests(Command[SentServed]):
    """Serve requests to the first open stream, which arrive at random, `rate` a second, as `seed` says."""

    trial: Trial
    rate: float
    requests: int
    seed: int
    longest: float
    """Seconds after which it ends, however many were served."""


@dataclass(frozen=True)
class CloseStreams(Command[CheckResult]):
    """Check what the calls of the streams led to, and close them."""

    trial: Trial


@dataclass(frozen=True)
class Verified:
    """What sampling led to: the check of the timed calls, and what the process was seen to have."""

    timed: CheckResult
    state: WorkerState
    busy_threads: int | None
    growth: Mapping[str, tuple[GrowthStep, ...]] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Verify(Command[Verified]):
    """Check what the timed calls led to."""

    trial: Trial


@dataclass(frozen=True)
class Fork(Command[Done]):
    """Import these modules, and let a forked child carry out the commands up to `EndFork`."""

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
