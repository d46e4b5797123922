"""The record of one trial: a JSON object, one a line in `records.jsonl`. Times are seconds, sizes are bytes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from rnnbench.results.artifact import Artifact
from rnnbench.results.part import Part
from rnnbench.results.timing import Timing

SCHEMA = 1
"""Version of the record. 1: the first."""

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


class Params(Part):
    """Where in its case's matrix a trial stands; with backend and route, what its id is made of."""

    model: dict[str, Any]
    time: str
    state: str
    chunk: int
    steps: int
    batch: int
    dtype: str
    device: str
    threads: int
    seed: int
    lengths: Literal["full", "ragged"] = "full"


class SupportFigure(Part):
    level: Literal["native", "emulated", "unsupported"]
    reason: str = ""
    upstream: str = ""


Verdict = Literal["pass", "fail", "chaotic", "not-applicable"]
"""`chaotic`: passed as far as comparing has a meaning, which is not to the end, since the reference itself diverges."""


class CheckFigure(Part):
    """The verdict of one conformance check. Figures are None where the check compares bits or raised an error."""

    verdict: Verdict
    detail: str = ""
    max_abs: float | None = None
    max_ulp: float | None = None
    rounding: float | None = None
    """Largest error, as a multiple of the rounding error expected at that step."""
    figures: dict[str, float] = Field(default_factory=dict)
    """Further figures by name (`steps`, `calls`, `growth`), of the checks that go on for long."""


class ExpectedFigure(Part):
    """A known failure that the expectations list for this trial, and whether it showed."""

    what: str
    """The check, or the outcome."""
    verdict: Literal["failed", "passed"]
    """`failed`: as expected. `passed`: mended upstream, it seems, and the expectations are out of date."""
    reason: str
    upstream: str


class Anchor(Part):
    """The trial that is sampled beside every part of a group whose trials do not fit in memory together."""

    trial: str
    part: int
    """Which of the `parts` this record's trial was sampled in, from 0."""
    parts: int
    bound: float | None
    """The anchor's median in that part, in seconds per call: trials of different parts compare as ratios to theirs."""


class Memory(Part):
    """Resident bytes of the trial's own processes, everything included; the headline is `run_peak`."""

    harness: int | None = None
    """Of the worker before the framework's import: Python, NumPy and the suite, a part of every figure below."""
    imported: int | None = None
    """After the framework's import, before any build."""
    build_peak: int | None = None
    """Peak of the building process, and of the largest of its children beside it."""
    run_peak: int | None = None
    """Peak of the process that loads the artifact and runs it, import included."""
    steady: int | None = None
    """With the program loaded and called, before any check."""
    growth: float | None = None
    """Bytes that 1,000 bound calls add to it: the median slope (Theil and Sen) between readings beside sampled blocks;
    None where too few were sampled."""
    growth_calls: int | None = None
    """Calls that this was seen over."""
    public_growth: float | None = None
    """The same of public calls."""
    public_growth_calls: int | None = None


class FloorFigure(Part):
    """What one call must read and do, and how far its bound latency lies above the least that this could take."""

    nbytes: int
    """Bytes that the call must read: weights as often as it needs them, inputs and state once."""
    operations: int
    weights: int
    """Bytes of all weights."""
    hoisted: int | None
    """Steps that share one reading of the input's weights, as the program declares; None: unknown, counted as all."""
    level: str
    """The smallest cache that holds the weights, or `memory`; empty where the kernel tells of no caches."""
    seconds: float | None = None
    limited_by: Literal["reading", "arithmetic"] | None = None
    """Whether reading or arithmetic takes the longer; both may go on at once."""
    ratio: float | None = None
    """Bound latency over `seconds`: the geometric mean of the processes' own ratios."""
    interval: tuple[float, float] | None = None
    """Its bounds at 95 %, the probe's variation included; None where less than two processes had a look beside them."""
    bandwidth: dict[str, float] = Field(default_factory=dict)
    """Bytes read a second, by working set in bytes: the fastest way that the probe found, beside the sampled calls."""
    rate: float | None = None
    """Operations a second; None for a dtype whose rate cannot be measured, which leaves reading."""
    looks: int = 0
    """Times that the probe looked."""
    unmeasured: str = ""
    """Why there are no seconds, and what to do about it."""


class Environment(Part):
    """What was asked for and what was seen, while sampling where the trial got that far."""

    threads_asked: int
    threads_seen: int | None = None
    """Threads of the worker's process, idle ones included."""
    threads_busy: int | None = None
    """Those that took CPU time while bound calls were sampled: a twentieth of the busiest one's, or more."""
    affinity_asked: tuple[int, ...] = ()
    affinity: tuple[int, ...] = ()
    """Cores that the worker's process was held to, as seen from within."""
    load: float | None = None
    """One-minute load average when sampling ended."""
    variables: dict[str, str] = Field(default_factory=dict)


class Record(Part):
    schema_: int = Field(default=SCHEMA, alias="schema")
    trial: str
    case: str
    backend: str
    route: str
    version: dict[str, str]
    rnnbench: str
    params: Params
    support: SupportFigure
    outcome: Outcome
    stage: str = ""
    """Where it ended, for outcomes other than `ok`: probe, support, import, build, load, check, sample."""
    reason: str = ""
    same_as: str | None = None
    """The trial whose program and call plan are the same to the byte, and whose measurement this one shares."""
    conformance: dict[str, CheckFigure] = Field(default_factory=dict)
    expected: tuple[ExpectedFigure, ...] = ()
    """What was known to fail here, as far as the trial got to show it."""
    timing: Timing = Timing()
    anchor: Anchor | None = None
    """Where its group was sampled in more than one part."""
    memory: Memory = Memory()
    floor: FloorFigure | None = None
    artifact: Artifact | None = None
    environment: Environment

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    @property
    def target(self) -> str:
        return f"{self.backend}:{self.route}"

    @property
    def strategy(self) -> str:
        return f"{self.params.time}-{self.params.state}"

    @property
    def fails_as_expected(self) -> bool:
        """Whether the trial fails, and all that fails of it is known to."""
        failed = {name for name, figure in self.conformance.items() if figure.verdict == "fail"}
        if self.outcome in FAILURES:
            failed.add(self.outcome)
        return bool(failed) and failed <= {figure.what for figure in self.expected if figure.verdict == "failed"}

    @property
    def passes_unexpectedly(self) -> bool:
        """Whether something that was known to fail did not."""
        return any(figure.verdict == "passed" for figure in self.expected)
