"""The record of one trial: one JSON object, one line of `records.jsonl`. Times are seconds, sizes are bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator

from rnnbench.devices import Device
from rnnbench.outside_text import OutsideText
from rnnbench.results.artifact import Artifact
from rnnbench.results.finding import Finding, not_believed
from rnnbench.results.frozen_model import FrozenModel
from rnnbench.results.timing import Latency, Timing

SCHEMA = 3
"""Version of the record and of `run.json`. `results/migrations.py` upgrades older ones, and tells what changed.

1. The first, up to rnnbench 0.1.0.
2. Latencies by path; how each was sampled stands apart; an origin `kernel`; two stages of operation counts; one name
   for each idea (`expected_failures`, `threads_requested`, `dispatch_floor`); metrics; the declared baseline.
3. The device that the program ran on, and why figures are not measured there.
"""

Outcome = Literal[
    "ok",
    "nonconforming",
    "unsupported",
    "unavailable",
    "build-failed",
    "run-failed",
    "crashed",
    "timed-out",
    "out-of-memory",
]
FAILURES: frozenset[Outcome] = frozenset({"build-failed", "run-failed", "crashed", "timed-out", "out-of-memory"})
"""Outcomes for which a command exits with 3."""


class Params(FrozenModel):
    """The point of the case's matrix. Its trial's id is made of it, of the backend and of the route."""

    model: dict[str, Any]
    time: str
    state: str
    chunk: int
    launch: Literal["stream", "graph"] = "stream"
    """`graph`: a call replays work that was recorded once. In records of earlier versions none was."""
    steps: int
    batch: int
    dtype: str
    device: str
    threads: int
    seed: int
    lengths: Literal["full", "ragged"] = "full"
    pinned: str = ""
    """The requirements of an anchor's own environment, whose versions `Record.version` has; empty for other trials."""


class SupportResult(FrozenModel):
    """The backend's answer to whether it supports the trial."""

    level: Literal["native", "emulated", "unsupported"]
    reason: str = ""
    upstream: str = ""


CheckVerdict = Literal["pass", "fail", "chaotic", "not-applicable", "too-short"]
"""`chaotic`: passed up to the step from which the reference itself diverges. `too-short`: nothing was wrong until the
check's time was over, and that was too soon to mean anything: it has neither passed nor failed."""
NO_ANSWER: frozenset[CheckVerdict] = frozenset({"not-applicable", "too-short"})
"""Verdicts of checks that did not answer their question."""


class CheckResult(FrozenModel):
    """The result of one conformance check. The errors are None where the check compares bits or raised an error."""

    verdict: CheckVerdict
    detail: OutsideText = ""
    max_abs: float | None = None
    max_ulp: float | None = None
    rounding: float | None = None
    """The largest error, as a multiple of the rounding error expected at that step."""
    figures: dict[str, float] = Field(default_factory=dict)
    """Further figures by name (`steps`, `calls`, `growth`), of the checks of endurance; `decided` and `compared` of a
    network that decides."""

    @property
    def not_begun(self) -> bool:
        """Whether the time of all checks was over before it."""
        return self.verdict == "too-short" and "planned" not in self.figures


def worst_rounding(results: Iterable[CheckResult]) -> float | None:
    """The largest error of some results, as a multiple of the expected rounding error; None where none has an error.

    NaN, which a record of another program may have, is larger than any number.
    """
    errors = (result.rounding for result in results if result.rounding is not None)
    return max(errors, key=lambda error: math.inf if math.isnan(error) else error, default=None)


class ExpectedFailureResult(FrozenModel):
    """A failure that the expectations list for this trial, and whether it happened."""

    what: str
    """The check, or the outcome."""
    verdict: Literal["failed", "passed"]
    """`failed`: as expected. `passed`: the defect seems to be corrected, and the expectations are out of date."""
    reason: str
    upstream: str


class CommonTrial(FrozenModel):
    """The trial that is sampled with every group of trials, where all trials do not fit in memory together."""

    trial: str
    group: int
    """Group in which the record's trial was sampled, from 0 to `groups` - 1."""
    groups: int
    bound: float | None
    """The common trial's median in that group, in seconds per call. Ratios to it compare trials of different groups."""


class MemoryUse(FrozenModel):
    """Resident bytes of the trial's own processes, everything included. The main figure is `run_peak`."""

    harness: int | None = None
    """Before the framework's import: Python, NumPy and the suite. It is part of every figure below."""
    imported: int | None = None
    """After the framework's import, before any build."""
    build_peak: int | None = None
    """Peak of the building process, plus that of the largest of its children."""
    run_peak: int | None = None
    """Peak of the process that loads the artifact and runs it, import included."""
    steady: int | None = None
    """With the program loaded and called, before any check."""
    growth: float | None = None
    """Bytes that 1,000 bound calls add: the median slope (Theil and Sen) between readings at sampled blocks; None
    where there were too few blocks."""
    growth_calls: int | None = None
    """Calls over which this growth was seen."""
    public_growth: float | None = None
    """The same for public calls."""
    public_growth_calls: int | None = None
    device: int | None = None
    """Bytes of the process on its device with the program loaded and called, less those of an empty session; None on
    the processor, and where the driver does not tell."""
    allocated: int | None = None
    """Bytes of the program on its device by the runtime's own count, loaded and called; None on the processor, and
    where the runtime does not count."""
    allocated_peak: int | None = None
    """The most of these at one time, from the start of the load."""


Limit = Literal["reading", "arithmetic", "launch"]
"""What a latency floor consists of. `launch`: starting a program that does nothing, and waiting for it."""


class DeviceState(FrozenModel):
    """Readings of the device's driver around the sampled blocks: the least and the greatest, None where it has none."""

    clock: tuple[float, float] | None = None
    """In Hz, of its multiprocessors."""
    temperature: tuple[float, float] | None = None
    """In °C."""
    power: tuple[float, float] | None = None
    """In W."""
    moved_blocks: int = 0
    """Blocks from whose beginning to whose end the clock changed."""
    throttled: tuple[str, ...] = ()
    """Why the clock was held down."""
    throttled_blocks: int = 0
    others: tuple[OutsideText, ...] = ()
    """Processes that are not of the suite, with their PIDs."""
    shared_blocks: int = 0
    """Blocks during which there were such processes."""


class EnergyReading(FrozenModel):
    """The blocks of calls whose energy was read, one a process."""

    source: OutsideText
    """The counter, and what it counts."""
    blocks: int
    disturbed_blocks: int
    """Blocks during which other processes used the core or the device: the energy is theirs too."""


class LatencyFloor(FrozenModel):
    """What one call must read and compute, and the ratio of its bound latency to the least time for that."""

    nbytes: int
    """Bytes that the call must read: weights as often as it needs them, inputs and state once."""
    operations: int
    weights: int
    """Bytes of all weights."""
    hoisted: int | None
    """Steps that share one reading of the input weights, as the program declares; None: unknown, counted as all."""
    level: str
    """The smallest cache that holds the weights, or `memory`; empty where the kernel does not tell its caches."""
    seconds: float | None = None
    limited_by: Limit | None = None
    """Which of them takes longest; all may happen at once."""
    ratio: float | None = None
    """Bound latency over `seconds`: the geometric mean of the processes' ratios."""
    interval: tuple[float, float] | None = None
    """Its 95 % interval, the probe's variation included; None where less than two processes were probed."""
    bandwidth: dict[str, float] = Field(default_factory=dict)
    """Bytes read per second by working set in bytes: the fastest way that the probe knows, beside the sampled calls."""
    rate: float | None = None
    """Operations per second; None for a dtype whose rate cannot be measured. The floor is then that of reading."""
    launch: float | None = None
    """Seconds to start a program that does nothing on the device, and to wait for it; None for the processor."""
    looks: int = 0
    """Number of times that the probe measured."""
    unmeasured: str = ""
    """Why there are no seconds, and what to do about it."""


class Environment(FrozenModel):
    """What was requested of the worker's process, and what was seen while it was sampled."""

    threads_requested: int
    threads_seen: int | None = None
    """Threads of the worker's process, idle ones included."""
    threads_busy: int | None = None
    """Threads that used CPU time while bound calls were sampled: at least a twentieth of the busiest one's.

    None where the kernel's count, in ticks of 10 ms on some machines, saw none of them run.
    """
    affinity_requested: tuple[int, ...] = ()
    affinity: tuple[int, ...] = ()
    """Cores that the worker's process could use, as seen from within."""
    load: float | None = None
    """One-minute load average when sampling ended."""
    variables: dict[str, str] = Field(default_factory=dict)

    @field_validator("threads_busy")
    @classmethod
    def _none_seen(cls, threads: int | None) -> int | None:
        """Some records of schema 3 have 0 where no count was seen."""
        return threads or None


class Record(FrozenModel):
    """Everything that is known of one trial."""

    schema_: int = Field(default=SCHEMA, alias="schema", strict=True)
    trial: str
    case: str
    backend: str
    route: str
    version: dict[str, str]
    rnnbench: str
    params: Params
    step_seconds: float | None = None
    """Seconds of the signal that a step of the network stands for; None where its steps have no rate."""
    device: Device | None = None
    """The device of the kind `params.device` that is here, as its driver describes it. None where there is none, and in
    records of schema 1 and 2, which were all made on the processor that `run.json` names."""
    unmeasured: dict[str, str] = Field(default_factory=dict)
    """Why the suite cannot measure a figure on this device: `latency_floor`, `cold`, `device_memory`,
    `device_conditions`, `energy`, `device_time`."""
    device_state: DeviceState | None = None
    """The device while the trial was sampled; None where its kind does not tell, and on the processor."""
    support: SupportResult
    baseline: bool = False
    """Whether the backend declares itself the baseline that others are compared with."""
    outcome: Outcome
    stage: str = ""
    """The stage at which it ended, for outcomes other than `ok`: probe, support, import, build, load, check, sample."""
    reason: str = ""
    same_as: str | None = None
    """The trial whose program and call plan are the same to the byte. This record shares its measurement."""
    conformance: dict[str, CheckResult] = Field(default_factory=dict)
    checked: str = ""
    """When an earlier run made these checks, except `timed`, UTC, ISO 8601; empty where this run did."""
    expected_failures: tuple[ExpectedFailureResult, ...] = ()
    """The known failures that the trial was tested for."""
    timing: Timing = Timing()
    common_trial: CommonTrial | None = Field(default=None, validation_alias="anchor", serialization_alias="anchor")
    """Written as `anchor`, its name in all records. None where the trials of its workload were sampled in one group."""
    memory: MemoryUse = MemoryUse()
    floor: LatencyFloor | None = None
    metrics: dict[str, float] = Field(default_factory=dict)
    """Further figures, under the names that `measure/metrics.py` declares."""
    energy: EnergyReading | None = None
    """The source of the metrics of energy; None where the case asks for none, and where there is no counter."""
    artifact: Artifact | None = None
    findings: tuple[Finding, ...] = ()
    """What the suite saw that contradicts the adapter or the program."""
    environment: Environment
    node: str = ""
    """The node of a cluster that measured it, as in `RunInfo.nodes`; empty: the run's own machine."""
    run_seed: int | None = None
    """`RunInfo.seed` of its run, by which a line of another run is known. None in records of earlier versions."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    @property
    def target(self) -> str:
        return f"{self.backend}:{self.route}"

    @property
    def strategy(self) -> str:
        """Without the chunk, as in the trial's id."""
        launched = f"-{self.params.launch}" if self.params.launch != "stream" else ""
        return f"{self.params.time}-{self.params.state}{launched}"

    def latency(self, path: str) -> Latency | None:
        """The latency of the path with this name; None where it was not sampled."""
        return self.timing.latency.get(path)

    @property
    def real_time_factor(self) -> float | None:
        """The bound latency of a call over the length of the signal in it; None where either is missing."""
        bound = self.latency("bound")
        return bound.per_step / self.step_seconds if bound and self.step_seconds else None

    @property
    def not_believed(self) -> str:
        """Why its figures are not believed; empty where they are."""
        return not_believed(self.findings)

    @property
    def is_anchor(self) -> bool:
        """Whether its trend over the runs is the machine's: of the baseline, or of pinned versions."""
        return self.baseline or bool(self.params.pinned)

    @property
    def on_software_device(self) -> bool:
        """Whether the processor emulated the device: its times are in no ranking, verdict or floor."""
        return self.device is not None and self.device.software

    @property
    def device_model(self) -> str:
        """Which device it is. Empty for the processor, which is the machine's, and where no driver told."""
        return f"{self.device.name} ({self.device.capability})" if self.device and self.device.driver else ""

    @property
    def failed_checks(self) -> tuple[str, ...]:
        """Names of the checks that failed."""
        return tuple(name for name, check in self.conformance.items() if check.verdict == "fail")

    @property
    def too_short_checks(self) -> tuple[str, ...]:
        """Names of the checks whose time was over too soon to mean anything: they have neither passed nor failed."""
        return tuple(name for name, check in self.conformance.items() if check.verdict == "too-short")

    def not_answered_again(self, failed: Iterable[str]) -> tuple[str, ...]:
        """Which of some checks that failed earlier did not run or were too short: their faults may still be there."""
        ran = self.conformance.keys() - self.too_short_checks
        return tuple(name for name in failed if name not in ran)

    @property
    def fails_as_expected(self) -> bool:
        """Whether the trial fails, and every failure of it is an expected one."""
        failed = set(self.failed_checks)
        if self.outcome in FAILURES:
            failed.add(self.outcome)
        expected = {failure.what for failure in self.expected_failures if failure.verdict == "failed"}
        return bool(failed) and failed <= expected

    @property
    def passes_unexpectedly(self) -> bool:
        """Whether an expected failure did not happen."""
        return any(failure.verdict == "passed" for failure in self.expected_failures)
