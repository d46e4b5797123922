"""The values between the stages of a trial: Trial → Examined → Built → Checked → Sampled → Record.

Each is frozen, contains the one before it, and adds the results of its stage. A failed trial goes through the remaining
stages unchanged: its `failure` has the stage at which it ended and the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from rnnbench.backends import Allocated, Probe, Support
from rnnbench.cases import Trial
from rnnbench.conformance import TIMED
from rnnbench.measure import Block, EnergyUse, GrowthStep, Roof, Served
from rnnbench.results import MOST, Artifact, CheckResult, CommonTrial, Finding, Outcome, Warmup

Size = Annotated[int, Field(ge=0, le=MOST)]
"""Bytes or a count that a worker sends."""
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""Seconds that a worker sends. Others are compared with the suite's own clock, which refuses what is no time."""
StoppedBy = Literal["precision", "budget"]
Stage = Literal["probe", "support", "import", "build", "load", "check", "sample"]


@dataclass(frozen=True)
class Failure:
    """The stage at which a trial failed, its outcome and the reason."""

    stage: Stage
    outcome: Outcome
    reason: str


@dataclass(frozen=True)
class Examined:
    """A trial, and the answers of its backend's adapter. No framework was imported for them."""

    trial: Trial
    probe: Probe
    support: Support
    failure: Failure | None = None

    @property
    def on_software_device(self) -> bool:
        """Whether the processor emulates the device: its times are in no ranking, verdict or floor."""
        device = self.probe.device(self.trial.device)
        return device is not None and device.software

    @property
    def waits_for_device(self) -> bool:
        """Whether another device than the processor does the work, so that the host's threads mostly wait.

        Its worker is not bound to one core per thread: the threads need no core each, and the driver has threads too.
        """
        return self.trial.device != "cpu" and not self.on_software_device


@dataclass(frozen=True)
class ImportFigures:
    """The cost of importing a framework in a worker. Memory is resident bytes, time is seconds."""

    harness: Size
    """Bytes before the import: Python, NumPy and the suite."""
    imported: Size
    """Bytes after the import."""
    import_s: float


@dataclass(frozen=True)
class BuildFigures:
    """The cost of one build. Seconds and bytes are None if the artifact was there already and its build is unknown."""

    origin: Literal["cold", "cached"]
    build_s: float | None = None
    import_s: float | None = None
    """Seconds of the imports that the build made. They are not part of `build_s`."""
    peak: Size | None = None
    """Resident bytes of the building process, and of the largest of its children."""
    modules: tuple[str, ...] = ()
    """Modules that the build imported."""
    built: str = ""
    """When an earlier run made the build with these figures (UTC, ISO 8601). Empty if this run did."""
    stopped: bool = False
    """Whether its process was stopped from outside, and went on. Its seconds contain that."""


@dataclass(frozen=True)
class Built:
    """A trial whose artifact is in the cache."""

    examined: Examined
    imports: ImportFigures | None = None
    figures: BuildFigures | None = None
    worker_s: float = 0.0
    """Seconds that its worker has used of the trial's limit."""
    findings: tuple[Finding, ...] = ()
    """The findings of the import and the build."""
    failure: Failure | None = None

    @property
    def trial(self) -> Trial:
        return self.examined.trial


@dataclass(frozen=True)
class LoadFigures:
    """The cost of loading a program from the cache and calling it."""

    load_s: float | None
    """None if the program cannot be loaded without being built."""
    import_s: float
    """Seconds of imports from the start of the load to the end of the first call. No other time contains them."""
    first_call_s: float
    run_peak: Size
    """Most resident bytes so far."""
    steady: Size
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
    """Bytes that the runtime counted on the device, less those before the load. The peak is over the load and the first
    calls. None on the processor, and if the runtime does not count."""
    not_counted: str = ""
    """Why the runtime failed to count. Empty if it did not fail."""

    @property
    def seconds(self) -> Mapping[str, float | None]:
        """All of its times. None of them overlap."""
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
    """The threads and cores of a worker's process."""

    threads: Size
    affinity: tuple[Size, ...]


@dataclass(frozen=True)
class CheckResults:
    """The result of every conformance check, by name, in their order."""

    results: dict[str, CheckResult]
    tail_build_s: Seconds | None
    """Seconds to build the program of one step for ragged rests; None if none was needed."""
    reference_s: Seconds
    """Seconds to compute the reference."""
    state: WorkerState
    checked: str = ""
    """When an earlier run made these checks (UTC, ISO 8601). Empty if this run did."""


@dataclass(frozen=True)
class Checked:
    """A trial whose program was loaded and put through the conformance checks."""

    built: Built
    loaded: LoadFigures | None = None
    figures: CheckResults | None = None
    findings: tuple[Finding, ...] = ()
    """All findings so far, those of the build included."""
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
    """The value of the path's setting, if it has one."""


@dataclass(frozen=True)
class SampledState:
    """The state of a worker and of the machine after sampling."""

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
    """The number of real-time streams that one process holds, and the tests that showed it."""

    held: int
    """The largest number of streams that passed a full test; 0 for none."""
    failed: int | None
    """The smallest number that failed its test; None if no more could be opened."""
    tested: Sequence[TestedStreams]

    @property
    def deciding(self) -> TestedStreams | None:
        """The last full test of the number that is held, or of one stream if none is held; None if there is none."""
        counted = [test for test in self.tested if test.streams == max(1, self.held)]
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
    """Measurements of the machine's roof beside the trial's processes."""

    processes: Sequence[Sequence[Roof]] = ()
    unmeasured: str = ""
    """Why there are none."""


@dataclass(frozen=True)
class Sampled:
    """A trial after its last stage but one, with everything that its record needs."""

    checked: Checked
    paths: Mapping[str, PathSamples] = field(default_factory=dict)
    timed: CheckResult | None = None
    """The check that follows sampling: the worst result of its processes."""
    state: SampledState | None = None
    growth: Mapping[str, Sequence[Sequence[GrowthStep]]] = field(default_factory=dict)
    """Growth of memory over the blocks of a path, by process."""
    state_copies: Sequence[Block] = ()
    """Blocks of the state's round trip through NumPy, one per process."""
    dispatch_floor: DispatchFloorSamples | None = None
    streams: StreamSamples | None = None
    server: ServerSamples | None = None
    energy: Sequence[EnergyUse] = ()
    """The energy of a long block of bound calls, one per process."""
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    """Each figure that could not be measured on this machine, and why."""
    roof: RoofReadings = RoofReadings()
    common_trial: CommonTrial | None = None
    findings: tuple[Finding, ...] = ()
    """All findings, those of the earlier stages included."""
    failure: Failure | None = None

    @property
    def examined(self) -> Examined:
        return self.checked.examined

    @property
    def trial(self) -> Trial:
        return self.checked.trial

    @property
    def is_measured(self) -> bool:
        """Whether its samples are complete: no process died. The check after sampling may have failed."""
        ended = self.failure is None or self.failure.outcome == "nonconforming"
        return ended and bool(self.paths)

    @property
    def results(self) -> dict[str, CheckResult]:
        """All check results, the one of the timed calls last."""
        return {**self.checked.results, **({TIMED: self.timed} if self.timed else {})}


def first_failure(results: Mapping[str, CheckResult]) -> str:
    """The first check that failed, with its detail. There must be one."""
    return next(f"{name}: {result.detail}" for name, result in results.items() if result.verdict == "fail")
