"""The contract between the suite and a backend: Backend, Program, Session, Bound, and the values they exchange.

A module that implements it imports its framework in `build` and below; `probe` and `support` import none. Arrays are
NumPy and travel by name: an RNN uses `x` and `y`, and for its state `h` (and `c`, for an LSTM).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from rnnbench.cases.trial import Precision, Strategy
from rnnbench.results.artifact import Artifact, Math, OperationStage, Origin
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights

__all__ = [
    "ACTIVATIONS",
    "LENGTHS",
    "ArrayError",
    "ArraySpec",
    "Arrays",
    "Artifact",
    "Backend",
    "Bound",
    "BuildError",
    "Lack",
    "Level",
    "Math",
    "OperationStage",
    "Origin",
    "Probe",
    "Program",
    "Request",
    "Role",
    "Session",
    "Signature",
    "Support",
]

Arrays = Mapping[str, np.ndarray]
Level = Literal["native", "emulated", "unsupported"]
ACTIVATIONS, LENGTHS = "activations", "lengths"
"""Extras of requests: an LSTM or GRU with other activations than its own; rows that end before their call does."""
Role = Literal["input", "output", "state"]


class BuildError(RuntimeError):
    """A compiler refused or failed. The message ends with what the compiler itself said."""


class ArrayError(ValueError):
    """An array is not what the signature says. Names the argument, what was expected and what came."""


@dataclass(frozen=True)
class Request:
    """What to build. `weights` may be empty in a request that is only asked about (`support`)."""

    route: str
    model: Model
    weights: Weights
    strategy: Strategy
    batch: int
    precision: Precision
    device: str = "cpu"
    threads: int = 1
    ragged: bool = False
    """Whether each row of a call has a length of its own, in a second input: `lengths`, int32 [batch], 1 to n each.
    Beyond it y is zero and x may be anything; a direction that runs backwards starts at the row's own end."""

    @property
    def extras(self) -> dict[str, str]:
        """What is asked beyond what every adapter is written for, by name, in words."""
        model, asked = self.model, dict[str, str]()
        if model.other_activations:
            asked[ACTIVATIONS] = f"{model.cell} with {model.recurrent_activation} and {model.activation}"
        if self.ragged:
            asked[LENGTHS] = "sequence lengths by row"
        return asked


@dataclass(frozen=True)
class Lack:
    """Why something is unavailable, and what to do about it."""

    reason: str
    install: str


@dataclass(frozen=True)
class Probe:
    """What is installed. Where the backend is unavailable, `reason` says why and `install` what to do about it."""

    routes: tuple[str, ...]
    """Its routes, the default one first."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Version by distribution name, as package metadata has it."""
    reason: str = ""
    install: str = ""
    lacking: Mapping[str, Lack] = field(default_factory=dict)
    """What single routes lack, where the backend is here and they want more."""
    slow: tuple[str, ...] = ()
    """Routes whose builds take tens of seconds: a check that names no backend has them on a few points only."""
    shared: tuple[str, ...] = ()
    """Routes into one compiler whose builds take seconds: such a check spreads its pairs of values over them."""
    devices: tuple[str, ...] = ("cpu",)
    """Devices that the backend's programs run on. The registry refuses a request for any other."""
    baseline: bool = False
    """Whether every table compares with this backend: a run adds its default route to the backends that are named."""

    @property
    def available(self) -> bool:
        return not self.reason

    def lack(self, route: str) -> Lack | None:
        """What keeps a route from being used; None where nothing does."""
        return self.lacking.get(route) if self.available else Lack(self.reason, self.install)


@dataclass(frozen=True)
class Support:
    """Whether a request can be met. `emulated` says in `reason` what stands in; `unsupported` says there why not."""

    level: Level
    reason: str = ""
    upstream: str = ""
    """An upstream issue, as `owner/repository#number`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables its worker's environment must have before the interpreter starts."""
    covers: frozenset[str] = frozenset()
    """What of `Request.extras` the answer has thought of. An adapter that says nothing of one does not support it."""
    interpreter: str = ""
    """Another Python for its worker; empty for the one that runs the suite."""


@dataclass(frozen=True)
class ArraySpec:
    """One array of a program. A dimension is a size, `n` (steps of a call) or `batch`."""

    name: str
    role: Role
    shape: tuple[int | str, ...]
    dtype: str


@dataclass(frozen=True)
class Signature:
    arrays: tuple[ArraySpec, ...]

    def of(self, role: Role) -> tuple[ArraySpec, ...]:
        return tuple(spec for spec in self.arrays if spec.role == role)


class Backend(Protocol):
    """A compiler or runtime."""

    name: str

    def probe(self) -> Probe: ...
    def support(self, request: Request) -> Support: ...
    def load(self) -> None:
        """Import the framework and do nothing else: what a worker does before its clock starts."""
        ...

    def build(self, request: Request, cache: Path) -> Program:
        """Compile, or load what an earlier build left under `cache`. Raises BuildError; for the unsupported, too."""
        ...


class Program(Protocol):
    """A compiled program with its weights inside."""

    signature: Signature
    artifact: Artifact
    cached: bool
    """True where `build` found its artifact under `cache` and only loaded it."""
    tail_build_s: float | None
    """Seconds that building the program of size 1 for ragged rests took; None until one was needed."""

    def open(self) -> Session:
        """A new stream, in its initial state, independent of all others."""
        ...

    def close(self) -> None: ...


class Session(Protocol):
    """One stream. Used by one thread at a time. What it returns is a copy that the caller owns."""

    def reset(self) -> None:
        """Back to the initial state: zeros."""
        ...

    def get_state(self) -> Arrays:
        """Copies of the state, [layers·directions, batch, size] each; empty where the strategy's state is `none`."""
        ...

    def set_state(self, state: Arrays) -> None: ...
    def step(self, inputs: Arrays) -> Arrays:
        """The public way: x [n, batch, input] to y [n, batch, width], NumPy in and out, for any n ≥ 1.

        With state `none` every call starts from zeros, so n must be the program's own chunk.
        """
        ...

    def bind(self, ring: Sequence[Arrays]) -> Bound:
        """The fast way: everything allocated and converted beforehand; runs no step. Each entry is one chunk."""
        ...

    def close(self) -> None:
        """Free what the stream holds. A second time does nothing."""
        ...


class Bound(Protocol):
    """Calling it advances the stream by the next chunk of the ring, and may return before the work is done."""

    def __call__(self) -> None: ...
    def sync(self) -> None:
        """Returns once the work is done."""
        ...

    def output(self) -> Arrays:
        """A copy of the last call's output. Synchronises first."""
        ...
