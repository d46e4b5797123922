"""A trial: one point of a case's matrix on one target, with its id. Workers import only this module of the package."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rnnbench.rnn import INT8_FORMS, Activations, AnyNetwork

ENDURANCE_S = 1.0
"""Default seconds of each long-running check in `rnnbench check`."""
Lengths = Literal["full", "ragged"]
State = Literal["none", "stitched", "stateful"]
Launch = Literal["stream", "graph"]
STREAM: Launch = "stream"
"""The default launch. Every trial on the processor has it."""


@dataclass(frozen=True, order=True)
class Target:
    """A backend with one of its routes, written `name:route`."""

    backend: str
    route: str

    def __str__(self) -> str:
        return f"{self.backend}:{self.route}"


@dataclass(frozen=True)
class Strategy:
    """How time advances inside one call, who carries the state between calls, how many steps a call has, and how its
    work reaches the device."""

    time: str
    """`fused`, `looped`, `unrolled`, `unrolled:k` (a loop over k copies), `parallel` (a scan over all steps), or
    `chunked:k` (a loop over blocks of k steps)."""
    state: State
    chunk: int
    launch: Launch = STREAM
    """`stream`: a call submits its operations one by one. `graph`: they were recorded once, and a call submits them
    as one: a CUDA graph, or a command buffer that is used again."""

    @property
    def copies(self) -> int | None:
        """Steps per pass of the loop over time, as copies of the cell or as one block; None without a loop."""
        if self.time == "looped":
            return 1
        _, _, k = self.time.partition(":")
        return int(k) if k else None

    def __str__(self) -> str:
        """The strategy without its chunk: `looped-stitched`, `looped-stitched-graph`."""
        launched = f"-{self.launch}" if self.launch != STREAM else ""
        return f"{self.time}-{self.state}{launched}"


@dataclass(frozen=True)
class Precision:
    """The types of a program's numbers. `workload.dtype` names them: a type for all, or a form of int8."""

    weights: str
    compute: str
    """The type of both operands of a product."""
    accumulate: str
    """The type of a product's sums."""
    state: str
    """The type of x, y and the state between calls, and of all arithmetic that is no product of weights."""
    activations: Activations = ""
    """The range by which x and h enter a product of int8 operands: `dynamic` is the one that they have in the call,
    `static` the one in `Layer.ranges`."""

    @classmethod
    def of(cls, dtype: str) -> Precision:
        if form := INT8_FORMS.get(dtype):
            return cls("int8", form.compute, form.accumulate, "float32", form.activations)
        return cls(dtype, dtype, dtype, dtype)

    @property
    def int8(self) -> str | None:
        """The name of the form of int8, or None if it is none."""
        return next((name for name in INT8_FORMS if Precision.of(name) == self), None)

    @property
    def uniform(self) -> str | None:
        """The one dtype of all four, or None if they differ."""
        dtypes = {self.weights, self.compute, self.accumulate, self.state}
        return dtypes.pop() if len(dtypes) == 1 else None


@dataclass(frozen=True)
class Limits:
    """What one trial may take: seconds for its build, seconds in all, resident bytes of its processes."""

    build: float = 120.0
    trial: float = 300.0
    memory: int = 4 << 30
    endurance: float = 0.0
    """Seconds for each long-running check; with 0, these checks are left out."""
    reference: float = 600.0
    """Seconds for the trajectories of the reference. They do not count as the trial's."""
    enough: float | None = None
    """Seconds after which a long-running check ends, if it has the calls that its verdict needs. No check then repeats
    anything more often than the known faults need to show. None: each check has all of its time."""


@dataclass(frozen=True)
class Measure:
    """How one trial is sampled."""

    budget: float = 2.0
    """Seconds of sampling in all, over every process, round and latency path."""
    processes: int = 3
    """Number of processes at least."""
    precision: float = 0.02
    """Half the confidence interval of a median, relative to the median, at which sampling stops within its budget."""
    settings: Mapping[str, float] = field(default_factory=dict, hash=False)
    """The keys of latency paths and scenarios in the case file (`measure.paths`, `measure.scenarios`), if it has them:
    `{"cold": 1.0, "period": 0.01}`. A flag is 1, a duration is in seconds."""


@dataclass(frozen=True)
class Trial:
    """What is built, checked, timed and recorded."""

    case: str
    target: Target
    model: AnyNetwork
    strategy: Strategy
    steps: int
    """Steps of the whole workload. Conformance feeds a stream of this length."""
    batch: int
    dtype: str
    device: str
    threads: int
    seed: int
    limits: Limits
    measure: Measure
    lengths: Lengths = "full"
    """Whether every row of a batch has all steps of a call, or each its own number of them."""
    thresholds: Mapping[str, float] = field(default_factory=dict, hash=False)
    """The case file's `compare:`: the smallest change that matters, by kind of measure."""
    pinned: str = ""
    """The requirements of an anchor's environment. Empty if the trial is no anchor."""

    @property
    def params(self) -> dict[str, object]:
        """The canonical parameters: all that decides what is computed and how, and nothing about how it is measured."""
        return {
            "model": self.model.params,
            "time": self.strategy.time,
            "state": self.strategy.state,
            "chunk": self.strategy.chunk,
            "steps": self.steps,
            "batch": self.batch,
            "dtype": self.dtype,
            "device": self.device,
            "threads": self.threads,
            "seed": self.seed,
            **({"launch": self.strategy.launch} if self.strategy.launch != STREAM else {}),
            **({"lengths": self.lengths} if self.lengths != "full" else {}),
            **({"pinned": self.pinned} if self.pinned else {}),
        }

    @property
    def digest(self) -> str:
        """8 hex digits of the canonical parameters with case, backend and route."""
        canonical = json.dumps([self.case, str(self.target), self.params], sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:8]

    @property
    def id(self) -> str:
        """Readable and unique: `case/backend:route/time-state/h128-b1-c16-float32-cpu-t1-3f9a01c2`."""
        sizes = f"{self.model.label}-b{self.batch}-c{self.strategy.chunk}"
        where = f"{self.dtype}-{self.device}-t{self.threads}"
        return f"{self.case}/{self.target}/{self.strategy}/{sizes}-{where}-{self.digest}"
