"""The contract between the suite and a backend: Backend, Program, Session, Bound, and the values that they exchange.

An adapter imports its framework in `load` and `build`; `probe` and `support` import none. Arrays are NumPy arrays and
are passed by name: an RNN uses `x` and `y`, and for its state `h` (an LSTM also `c`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from rnnbench.cases import Precision, Strategy, Trial
from rnnbench.devices import KINDS, Device
from rnnbench.model_files import FileNetwork
from rnnbench.results import Artifact as Artifact
from rnnbench.results import Math as Math
from rnnbench.results import OperationStage as OperationStage
from rnnbench.results import Origin as Origin
from rnnbench.rnn import Model, Network, Weights

Arrays = Mapping[str, np.ndarray]
Level = Literal["native", "emulated", "unsupported"]
ACTIVATIONS, LENGTHS = "activations", "lengths"
"""Extras of requests: an LSTM or GRU with other activations than the standard ones; rows shorter than their call."""
Role = Literal["input", "output", "state"]


class BuildError(RuntimeError):
    """A compiler refused or failed. The message ends with the compiler's own message."""


class ArrayError(ValueError):
    """An array does not fit the signature. The message names the argument, what was expected and what was given."""


@dataclass(frozen=True)
class Request:
    """What to build. `weights` may be empty in a request to `support`, which reads none."""

    route: str
    model: Network
    weights: Weights
    strategy: Strategy
    batch: int
    precision: Precision
    device: str = "cpu"
    threads: int = 1
    ragged: bool = False
    """Whether each row of a call has its own length, in a second input: `lengths`, int32 [batch], 1 to n each.
    Beyond its length y is zero and x may be anything. A direction that runs backwards starts at the end of the row."""

    @property
    def file(self) -> FileNetwork | None:
        """The model file that is requested, if it is one. Only for a route that `Probe.reads` names."""
        return self.model if isinstance(self.model, FileNetwork) else None

    @property
    def stack(self) -> Model:
        """The stack of cells that is requested. Only for a route that `Probe.authors` does not name."""
        assert isinstance(self.model, Model), "other networks are refused of this route"
        return self.model

    @property
    def facts(self) -> dict[str, object]:
        """All of the request, for a digest: the weights by theirs."""
        return {
            "route": self.route,
            "model": self.model.params,
            "strategy": asdict(self.strategy),
            "batch": self.batch,
            "precision": asdict(self.precision),
            "device": self.device,
            "threads": self.threads,
            "ragged": self.ragged,
            "weights": self.weights.digest(self.model),
        }

    @property
    def extras(self) -> dict[str, str]:
        """What is requested beyond what every adapter is written for: a description by the name of the extra."""
        extras = dict[str, str]()
        if self.model.other_activations:
            extras[ACTIVATIONS] = self.model.other_activations
        if self.ragged:
            extras[LENGTHS] = "sequence lengths by row"
        return extras


def request_of(trial: Trial, weights: Weights) -> Request:
    """What a backend is asked to build for a trial."""
    return Request(
        route=trial.target.route,
        model=trial.model,
        weights=weights,
        strategy=trial.strategy,
        batch=trial.batch,
        precision=Precision.of(trial.dtype),
        device=trial.device,
        threads=trial.threads,
        ragged=trial.lengths == "ragged",
    )


@dataclass(frozen=True)
class Lack:
    """Why something is unavailable, and the command that installs it; empty where the reason says what to do."""

    reason: str
    install: str

    @property
    def message(self) -> str:
        return f"{self.reason}; install it with: {self.install}" if self.install else self.reason


def processor() -> dict[str, Device | Lack]:
    """The devices of a backend whose programs run on the processor alone."""
    return {name: kind.describe() for name, kind in KINDS.items() if kind.everywhere and kind.describe}


@dataclass(frozen=True)
class Probe:
    """What is installed. Where the backend is unavailable, `reason` says why and `install` is the command to run."""

    routes: tuple[str, ...]
    """The backend's routes. The first is the default."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions by distribution name, from package metadata."""
    reason: str = ""
    install: str = ""
    lacking: Mapping[str, Lack] = field(default_factory=dict)
    """What single routes lack, where the backend is installed and they need more packages."""
    slow: tuple[str, ...] = ()
    """Routes whose builds take tens of seconds. A check that names no backend runs them on a few trials only."""
    compilers: Mapping[str, str] = field(default_factory=dict)
    """What compiles or runs the programs of routes, a name by route, where several routes have it in common. Such a
    check shares its pairs of values out among them."""
    devices: Mapping[str, Device | Lack] = field(default_factory=processor)
    """Devices that the backend's programs run on, by the name of their kind: the device that is here, or what is
    missing for one. A request for any other is unsupported. A driver is asked in a process of its own."""
    not_on: Mapping[str, str] = field(default_factory=dict)
    """Why the backend has no programs for a kind of device, a sentence by the kind's name, where a user would ask."""
    authors: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Routes whose programs are written over the primitives of `rnn.Primitives`, so that they have any network, each
    with the further primitives (`rnn.MorePrimitives`) that it has. Other routes have stacks of cells."""
    reads: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Routes that read a user's model file (`Request.file`), each with the formats that it reads."""
    graphs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Routes that can record a call and replay it (`launch: graph`), each with the kinds of devices on which they can.
    The suite refuses the launch of others."""
    baseline: bool = False
    """Whether every table compares with this backend: a run adds its default route to the backends that are named."""

    @property
    def available(self) -> bool:
        return not self.reason

    def lack(self, route: str) -> Lack | None:
        """What a route lacks; None where it can be used."""
        return self.lacking.get(route) if self.available else Lack(self.reason, self.install)

    def device(self, name: str) -> Device | None:
        """The device of this kind; None where there is none."""
        device = self.devices.get(name)
        return device if isinstance(device, Device) else None

    def device_lack(self, name: str) -> Lack | None:
        """What is missing for a device of this kind; None where it is here, and for a kind that is unsupported."""
        lack = self.devices.get(name)
        return lack if isinstance(lack, Lack) else None


@dataclass(frozen=True)
class Support:
    """Whether a request can be met. `reason` says what stands in (`emulated`), or why it cannot (`unsupported`)."""

    level: Level
    reason: str = ""
    upstream: str = ""
    """An upstream issue, as `owner/repository#number`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the environment of its worker must have before the interpreter starts."""
    covers: frozenset[str] = frozenset()
    """The extras (`Request.extras`) that the answer holds for. An extra that is not named here is unsupported."""
    interpreter: str = ""
    """The path of another Python for its worker; empty for the Python that runs the suite."""


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
        """Compile, or load what an earlier build left under `cache`.

        Raises BuildError, also for what is unsupported (`shared.require_support`).
        """
        ...


@dataclass(frozen=True)
class ProgramFiles:
    """The files under `cache` that a program is loaded from. The suite hashes them and adds up their sizes."""

    program: tuple[Path, ...]
    """What is loaded and run: machine code, a model, weights. Their size is the artifact's size."""
    identity: tuple[Path, ...] = ()
    """Files whose bytes are the same in every build of this program, and others for another program. Their digest is
    the artifact's, together with that of the weights. Empty where those of `program` are such files. Needed where a
    build puts a number or a path of its own into its files, and where Python runs the program: then the text of the IR
    that it runs is such a file."""


class Program(Protocol):
    """A compiled program with its weights inside."""

    signature: Signature
    artifact: Artifact
    """Without digest and size, which the suite computes of `files`."""
    files: ProgramFiles
    cached: bool
    """True where `build` found its artifact under `cache` and only loaded it."""
    tail_build_s: float | None
    """Seconds for building the program of one step, which runs the rest of a call; None until it was needed."""

    def open(self) -> Session:
        """A new stream, in its initial state, independent of all others."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Allocated:
    """Bytes on a device that a runtime counts as allocated, for all programs of this process."""

    now: int
    peak: int | None
    """Most at one time since the process began."""

    def since(self, before: Allocated) -> Allocated | None:
        """What was added after `before`; None where more was given back meanwhile.

        The peak is None where it was no higher than an earlier one.
        """
        if self.now < before.now:
            return None
        is_new = self.peak is not None and before.peak is not None and self.peak > before.peak
        return Allocated(self.now - before.now, self.peak - before.now if is_new and self.peak is not None else None)


@runtime_checkable
class CountsAllocations(Protocol):
    """An adapter whose runtime counts what it allocates on devices. What a driver takes for itself is not in it."""

    def allocated(self, device: str) -> Allocated | None:
        """On the device of this kind that its programs use; None where this build of the runtime does not count.

        Called in the process of the programs, once one of them is loaded.
        """
        ...


@runtime_checkable
class PreparesBuilds(Protocol):
    """An adapter whose compiler finds out the same things in every process that builds."""

    def prepare_builds(self, route: str, device: str) -> None:
        """Find them out here, in a process that forks children which build. An earlier child has built on this route.

        Builds nothing and starts no thread. A route or device for which there is nothing to find out is no error.
        """
        ...


@runtime_checkable
class InStream(Protocol):
    """A bound call that says in which stream of its device it queues its work. The device's own events can time it."""

    stream: int
    """The stream's handle, as the device's driver knows it. 0 is CUDA's default stream."""


@runtime_checkable
class TakesStream(Protocol):
    """A bound call whose runtime can queue its work in a stream that the suite has made.

    The device's own events can then time it too.
    """

    def in_stream(self, stream: int) -> AbstractContextManager[Callable[[], object]]:
        """The call on the stream with this handle, for a `with`, at whose end the runtime frees what it was given.

        It goes on with the session's state and ring, and may return before the work is done.

        Asked for once all other calls were timed: it may load the program once more. Raises UnmeasuredError.
        """
        ...


class Session(Protocol):
    """One stream. Used by one thread at a time. What it returns is a copy that the caller owns."""

    def reset(self) -> None:
        """Set the state to zeros, the initial state."""
        ...

    def get_state(self) -> Arrays:
        """Copies of the state, [layers·directions, batch, size] each; empty where the strategy's state is `none`."""
        ...

    def set_state(self, state: Arrays) -> None: ...
    def step(self, inputs: Arrays) -> Arrays:
        """The public call: x [n, batch, input] to y [n, batch, width], NumPy in and out, for any n ≥ 1.

        With state `none` every call starts from zeros, so n must be the chunk of the program.
        """
        ...

    def bind(self, ring: Sequence[Arrays]) -> Bound:
        """The fast call: all arrays are allocated and converted here. Runs no step. Each entry is one chunk.

        The ring's arrays are the caller's again when it returns.
        """
        ...

    def close(self) -> None:
        """Free what the stream holds. A second call does nothing."""
        ...


class Bound(Protocol):
    """Calling it advances the stream by the next chunk of the ring, and may return before the work is done."""

    def __call__(self) -> None: ...
    def sync(self) -> None:
        """Returns once the work is done."""
        ...

    def output(self) -> Arrays:
        """A copy of the last call's output, as long as its session makes no other call. Synchronises first."""
        ...
