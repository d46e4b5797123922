"""A trial: one point of a case's matrix on one backend, and the names it is known by."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Literal

from rnnbench.rnn.spec import Model

ENDURANCE_S = 1.0
"""Seconds for each check that goes on for long, where trials are only checked."""
Lengths = Literal["full", "ragged"]
State = Literal["none", "stitched", "stateful"]
LatencyPath = Literal["bound", "public", "cold", "paced"]
"""What is timed of a trial: the least that its runtime needs from Python; NumPy in, NumPy out; the former with evicted
caches, and at a stream's pace."""


@dataclass(frozen=True, order=True)
class Target:
    """A backend with one of its routes, written `name:route`."""

    backend: str
    route: str

    def __str__(self) -> str:
        return f"{self.backend}:{self.route}"


@dataclass(frozen=True)
class Strategy:
    """How time advances inside one call, who carries the state between calls, and how many steps a call has."""

    time: str
    """`fused`, `looped`, `unrolled`, or `unrolled:k` (a loop over k copies)."""
    state: State
    chunk: int

    @property
    def copies(self) -> int | None:
        """Copies of the cell in one pass of the loop over time; None where there is no loop."""
        if self.time == "looped":
            return 1
        _, _, k = self.time.partition(":")
        return int(k) if k else None

    def __str__(self) -> str:
        return f"{self.time}-{self.state}"


@dataclass(frozen=True)
class Precision:
    weights: str
    compute: str
    accumulate: str
    state: str

    @classmethod
    def of(cls, dtype: str) -> Precision:
        return cls(dtype, dtype, dtype, dtype)

    @property
    def uniform(self) -> str | None:
        """The one dtype of all four, or None where they differ."""
        dtypes = {self.weights, self.compute, self.accumulate, self.state}
        return dtypes.pop() if len(dtypes) == 1 else None


@dataclass(frozen=True)
class Limits:
    """What one trial may take: seconds for its build, seconds in all, resident bytes of its processes."""

    build: float = 120.0
    trial: float = 300.0
    memory: int = 4 << 30
    endurance: float = 0.0
    """Seconds for each check that goes on for long; without any, those checks are left out."""


@dataclass(frozen=True)
class Measure:
    """How one trial is sampled: seconds in all (processes, rounds and latencies), and at least so many processes."""

    budget: float = 2.0
    processes: int = 3
    precision: float = 0.02
    """Half the confidence interval of a median, relative to it, at which sampling stops before its budget is spent."""
    cold: bool = False
    """Whether calls are timed with evicted caches too."""
    period: float | None = None
    """Seconds between the beginnings of calls of a stream, which is then timed too."""


def paths(measure: Measure) -> tuple[LatencyPath, ...]:
    """The latencies that are asked for; the budget is theirs in equal shares."""
    asked: list[LatencyPath] = ["bound", "public"]
    if measure.cold:
        asked.append("cold")
    if measure.period is not None:
        asked.append("paced")
    return tuple(asked)


@dataclass(frozen=True)
class Trial:
    """What is built, checked, timed and recorded."""

    case: str
    target: Target
    model: Model
    strategy: Strategy
    steps: int
    """Steps of the whole workload: the stream that conformance feeds."""
    batch: int
    dtype: str
    device: str
    threads: int
    seed: int
    limits: Limits
    measure: Measure
    lengths: Lengths = "full"
    """Whether every row of a batch has all steps of a call, or each its own number of them."""

    @property
    def params(self) -> dict[str, object]:
        """The canonical parameters: all that decides what is computed and how, and nothing of how it is measured."""
        return {
            "model": self.model.model_dump(exclude_defaults=True),
            "time": self.strategy.time,
            "state": self.strategy.state,
            "chunk": self.strategy.chunk,
            "steps": self.steps,
            "batch": self.batch,
            "dtype": self.dtype,
            "device": self.device,
            "threads": self.threads,
            "seed": self.seed,
            **({"lengths": self.lengths} if self.lengths != "full" else {}),
        }

    @property
    def digest(self) -> str:
        """8 hex digits of the canonical parameters with case, backend and route."""
        canonical = json.dumps([self.case, str(self.target), self.params], sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:8]

    @property
    def id(self) -> str:
        """Readable and unique: `case/backend:route/time-state/h128-b1-c16-float32-cpu-t1-3f9a01c2`."""
        sizes = f"h{self.model.hidden}-b{self.batch}-c{self.strategy.chunk}"
        where = f"{self.dtype}-{self.device}-t{self.threads}"
        return f"{self.case}/{self.target}/{self.strategy}/{sizes}-{where}-{self.digest}"
