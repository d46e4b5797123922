"""The values that a trial passes through: Trial → Examined → Built → Checked → Sampled → Record.

Each is frozen, holds the one before it, and adds what its stage found out. A trial that failed goes through the rest of
the line as it is: `failure` says at which stage it ended and why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rnnbench.backends import Allocated, Probe, Support
from rnnbench.cases import Trial
from rnnbench.conformance import TIMED
from rnnbench.measure import Block, EnergyUse, GrowthStep, Roof, Served
from rnnbench.results import Anchor, Artifact, CheckResult, Finding, Outcome, Warmup

StoppedBy = Literal["precision", "budget"]
Stage = Literal["probe", "support", "import", "build", "load", "check", "sample"]


@dataclass(frozen=True)
class Failure:
    """Where and how a trial ended before its time."""

    stage: Stage
    outcome: Outcome
    reason: str


@dataclass(frozen=True)
class Examined:
    """A trial, and what its backend says of it. No framework was imported for that."""

    trial: Trial
    probe: Probe
    support: Support
    failure: Failure | None = None

    @property
    def on_software_device(self) -> bool:
        """Whether the processor plays the device: its times are in no ranking, verdict or floor."""
        device = self.probe.device(self.trial.device)
        return device is not None and device.software

    @property
    def waits_for_device(self) -> bool:
        """Whether the work is done elsewhere, so that the threads on the host mostly wait. They need no core each, and
        several cores where a driver has threads."""
        return self.trial.device != "cpu" and not self.on_software_device


@dataclass(frozen=True)
class ImportFigures:
    """A worker that has imported its framework. Memory is resident bytes, time is seconds."""

    harness: int
    """Before the import: Python, NumPy and the suite."""
    imported: int
    """After it."""
    import_s: float


@dataclass(frozen=True)
class BuildFigures:
    """One build. Seconds and bytes are None if the artifact was found ready and its build is not known."""

    origin: Literal["cold", "cached"]
    build_s: float | None = None
    import_s: float | None = None
    """Seconds of the imports that the build made. They are not part of `build_s`."""
    peak: int | None = None
    """Resident bytes of the building process, and of the largest of its children."""
    modules: tuple[str, ...] = ()
    """Modules that the build imported."""
    built: str = ""
    """UTC, ISO 8601: when an earlier run built it, whose figures these are. Empty if this run did."""


@dataclass(frozen=True)
class Built:
    """A trial whose artifact is in the cache."""

    examined: Examined
    imports: ImportFigures | None = None
    figures: BuildFigures | None = None
    worker_s: float = 0.0
    """Seconds that its worker has had, counted against the trial's limit."""
    findings: tuple[Finding, ...] = ()
    """What was found while the worker imported and built."""
    failure: Failure | None = None

    @property
    def trial(self) -> Trial:
        return self.examined.trial


@dataclass(frozen=True)
class LoadFigures:
    """A program that was loaded from the cache and called."""

    load_s: float | None
    """None if the program cannot be loaded without being built."""
    import_s: float
    """Seconds of the imports from the start of the load to the end of the first call, in neither of the two."""
    first_call_s: float
    run_peak: int
    """Most resident bytes so far."""
    steady: int
    """Resident bytes after some calls."""
    artifact: Artifact
    metrics: dict[str, float] = field(default_factory=dict)
    open_s: float = 0.0
    """Seconds to open a session, without imports."""
    bind_s: float = 0.0
    """Seconds to bind the ring, without imports."""
    close_s: float = 0.0
    """Seconds to close the session."""
    allocated: Allocated | None = None
    """What the runtime counted on the device, less what it had there before the load; its peak is that of the load
    and of the first calls. None on the processor, and where the runtime does not count."""
    not_counted: str = ""
    """Why it failed to count. Empty if it did not fail."""

    @property
    def seconds(self) -> Mapping[str, float | None]:
        """All of its times, which came one after the other."""
        return {
            "the load": self.load_s,
            "imports": self.import_s,
            "open": self.open_s,
            "bind": self.bind_s,
            "the first call": self.first_call_s,
            "close": self.close_s,
        }


@dataclass(frozen=True)
class WorkerState:
    """What a worker's process was seen to have."""

    threads: int
    affinity: tuple[int, ...]


@dataclass(frozen=True)
class CheckResults:
    """The result of every conformance check, by name, in their order."""

    results: dict[str, CheckResult]
    tail_build_s: float | None
    """Seconds to build the program of one step for ragged rests; None if none was needed."""
    reference_s: float
    """Seconds that the reference took."""
    state: WorkerState
    checked: str = ""
    """UTC, ISO 8601: when an earlier run made the checks, whose results these are. Empty if this run did."""


@dataclass(frozen=True)
class Checked:
    """A trial whose program was loaded and put through the conformance checks."""

    built: Built
    loaded: LoadFigures | None = None
    figures: CheckResults | None = None
    findings: tuple[Finding, ...] = ()
    """What was found up to here, with that of the build."""
    failure: Failure | None = None
    worker_s: float = 0.0
    """Seconds that the suite waited for the build and the load."""
    device_memory: int | None = None
    """Bytes on the device with the program loaded and called, less those of an empty session."""
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    """Why figures could not be measured on this machine, by figure."""

    @property
    def examined(self) -> Examined:
        return self.built.examined

    @property
    def trial(self) -> Trial:
        return self.built.trial

    @property
    def results(self) -> Mapping[str, CheckResult]:
        return self.figures.results if self.figures else {}

    @property
    def reference_s(self) -> float:
        return self.figures.reference_s if self.figures else 0.0

    @property
    def artifact(self) -> Artifact | None:
        return self.loaded.artifact if self.loaded else None


@dataclass(frozen=True)
class PathSamples:
    """All samples of one latency path of one trial, by process."""

    processes: Sequence[Sequence[Block]]
    warmup: Warmup | None = None
    stopped_by: StoppedBy | None = None
    setting: float = 0.0
    """The value of the path's setting, where it has one."""


@dataclass(frozen=True)
class SampledState:
    """What a worker was seen to have once it had sampled."""

    worker: WorkerState
    busy_threads: int | None
    """None if the kernel's count saw no thread run."""
    load: float
    """One-minute load average of the machine."""
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class DispatchFloorSamples:
    """Bound calls of the smallest program with the same target and state."""

    strategy: str
    processes: Sequence[Sequence[Block]] = ()
    unmeasured: str = ""
    """Why there are no samples."""


@dataclass(frozen=True)
class TestedStreams:
    """One test of a number of streams."""

    streams: int
    served: Served


@dataclass(frozen=True)
class StreamProcess:
    """What one process holds."""

    held: int
    """The largest number of streams that a full test has held; 0 for none."""
    failed: int | None
    """The smallest number that was not held; None if no more could be opened."""
    tested: Sequence[TestedStreams]

    @property
    def deciding(self) -> TestedStreams | None:
        """The test that held most; the last one where none did."""
        counted = [one for one in self.tested if one.streams == max(1, self.held)]
        return counted[-1] if counted else None


@dataclass(frozen=True)
class StreamSamples:
    """How many real-time streams a trial holds, by process."""

    period: float
    """Seconds between two frames."""
    processes: Sequence[StreamProcess]


@dataclass(frozen=True)
class ServerSamples:
    """Requests that arrived at random, by process."""

    rate: float
    """Requests per second."""
    processes: Sequence[Served]


@dataclass(frozen=True)
class RoofReadings:
    """What the machine was seen to do beside the trial's processes."""

    processes: Sequence[Sequence[Roof]] = ()
    unmeasured: str = ""
    """Why it was not looked at."""


@dataclass(frozen=True)
class Sampled:
    """A trial at the end of the line, with all that its record needs."""

    checked: Checked
    paths: Mapping[str, PathSamples] = field(default_factory=dict)
    timed: CheckResult | None = None
    """The check that follows sampling: the worst result of its processes."""
    state: SampledState | None = None
    growth: Mapping[str, Sequence[Sequence[GrowthStep]]] = field(default_factory=dict)
    """Growth of memory over the blocks of a path, by process."""
    state_copies: Sequence[Block] = ()
    """The state's round trip through NumPy, a block of each process."""
    dispatch_floor: DispatchFloorSamples | None = None
    streams: StreamSamples | None = None
    server: ServerSamples | None = None
    energy: Sequence[EnergyUse] = ()
    """Of a long block of bound calls, by process."""
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    """Why figures could not be measured on this machine, by figure."""
    roof: RoofReadings = RoofReadings()
    anchor: Anchor | None = None
    findings: tuple[Finding, ...] = ()
    """All that was found, with that of the stages before."""
    failure: Failure | None = None

    @property
    def examined(self) -> Examined:
        return self.checked.examined

    @property
    def trial(self) -> Trial:
        return self.checked.trial

    @property
    def is_measured(self) -> bool:
        """Whether its samples are complete: no process died, though the check that follows them may have failed."""
        ended = self.failure is None or self.failure.outcome == "nonconforming"
        return ended and bool(self.paths)

    @property
    def results(self) -> dict[str, CheckResult]:
        """All check results, the one of the timed calls last."""
        return {**self.checked.results, **({TIMED: self.timed} if self.timed else {})}


def first_failure(results: Mapping[str, CheckResult]) -> str:
    """The first check that failed, with its detail. There must be one."""
    return next(f"{name}: {result.detail}" for name, result in results.items() if result.verdict == "fail")
