"""Compound networks (`rnn.CompoundNetwork`) on any backend: it builds each part, and the suite joins the programs.

The loop between the programs is the network's own, in Python, over the parts' public calls. Both the public and the
bound call of the compound make those calls.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import TypeVar

import numpy as np

from rnnbench.backends.base import (
    Allocated,
    Arrays,
    Artifact,
    Backend,
    Bound,
    BuildError,
    CountsAllocations,
    PreparesBuilds,
    Probe,
    Program,
    ProgramFiles,
    Request,
    Session,
    Support,
)
from rnnbench.backends.explanation import Explanation, IrStage, Unreadable
from rnnbench.backends.shared.sessions import ChunkedProgram, ChunkedSession, SynchronousBound, of_one_step
from rnnbench.cases import Strategy
from rnnbench.rnn import CompoundNetwork, joined

T = TypeVar("T")

NOTE = "A loop in Python calls the parts' programs, with NumPy arrays in and out of each call."


class JoiningBackend:
    """A backend that is asked for the parts of a compound network, and for other networks as they are."""

    def __init__(self, name: str, adapter: Backend) -> None:
        self.name = name
        self._adapter = adapter

    def probe(self) -> Probe:
        return self._adapter.probe()

    def load(self) -> None:
        self._adapter.load()

    def allocated(self, device: str) -> Allocated | None:
        """None where the adapter counts nothing."""
        return self._adapter.allocated(device) if isinstance(self._adapter, CountsAllocations) else None

    def prepare_builds(self, route: str, device: str) -> None:
        """Nothing where the adapter has nothing to prepare."""
        if isinstance(self._adapter, PreparesBuilds):
            self._adapter.prepare_builds(route, device)

    def support(self, request: Request) -> Support:
        """For a compound network, what holds for all of its parts."""
        if not _is_joined(request):
            return self._adapter.support(request)
        answers = {name: self._adapter.support(of_part) for name, of_part in requests_of_parts(request).items()}
        for name, answer in answers.items():
            if answer.level == "unsupported":
                return replace(answer, reason=f"{name}: {answer.reason}")
        emulated = [answer for answer in answers.values() if answer.level == "emulated"]
        first, *others = [*emulated, *answers.values()]
        environment = {name: value for answer in others for name, value in answer.environment.items()}
        return replace(first, environment={**environment, **first.environment})

    def build(self, request: Request, cache: Path) -> Program:
        if not _is_joined(request):
            return self._adapter.build(request, cache)
        answer = self.support(request)
        if answer.level == "unsupported":
            raise BuildError(answer.reason)
        requests = requests_of_parts(request)
        programs = {name: self._adapter.build(of_part, cache) for name, of_part in requests.items()}
        return CompoundProgram(request, requests, programs, lambda: self.build(of_one_step(request), cache))


def _is_joined(request: Request) -> bool:
    return isinstance(request.model, CompoundNetwork) and not request.model.in_program


def requests_of_parts(request: Request) -> dict[str, Request]:
    """The request of each part, by name. Where the loop decides about calls, it also has to set states: stitched."""
    network = request.model
    assert isinstance(network, CompoundNetwork)
    requests = {}
    for part in network.parts:
        strategy = request.strategy
        if part.rate:
            part_request = replace(request, strategy=replace(strategy, chunk=strategy.chunk * part.rate))
        else:
            part_request = of_one_step(replace(request, strategy=Strategy(strategy.time, "stitched", 1)))
        requests[part.name] = replace(
            part_request, model=part.network, weights=network.weights_of(part, request.weights)
        )
    return requests


class CompoundProgram(ChunkedProgram):
    """The programs of all parts, and the request of each."""

    def __init__(
        self,
        request: Request,
        requests: Mapping[str, Request],
        programs: Mapping[str, Program],
        build_tail: Callable[[], Program],
    ) -> None:
        parts, network = list(programs.values()), request.model
        assert isinstance(network, CompoundNetwork)
        super().__init__(request, joined_artifact(network, parts), all(part.cached for part in parts), build_tail)
        self.network = network
        self.requests = requests
        self.programs = programs
        identity = [part.files.identity or part.files.program for part in parts]
        self.files = ProgramFiles(_once(part.files.program for part in parts), _once(identity))

    def open(self) -> CompoundSession:
        return CompoundSession(self)

    def close(self) -> None:
        with ExitStack() as programs:
            for program in self.programs.values():
                programs.enter_context(closing(program))
            super().close()


def joined_artifact(network: CompoundNetwork, parts: Sequence[Program]) -> Artifact:
    """The artifact of all parts together: operations are added up, and one approximate part makes it approximate."""
    artifacts = [part.artifact for part in parts]
    sources = json.dumps(
        [network.params, [artifact.source_digest for artifact in artifacts]], sort_keys=True, default=str
    )
    operations: dict[str, Counter[str]] = {}
    for artifact in artifacts:
        for stage, counts in artifact.operations.items():
            operations.setdefault(stage, Counter()).update(counts)
    return artifacts[0].model_copy(
        update={
            "source_digest": hashlib.sha256(sources.encode()).hexdigest(),
            "operations": {stage: dict(sorted(counts.items())) for stage, counts in operations.items()},
            "lowered": " + ".join(artifact.lowered for artifact in artifacts),
            "math": "exact" if all(artifact.math == "exact" for artifact in artifacts) else "approximate",
            "flags": _once(artifact.flags for artifact in artifacts),
            "notes": (*_once(artifact.notes for artifact in artifacts), NOTE),
            "hoisted": None,
        }
    )


class _Stream:
    """A session of a part in the hands of the loop (`rnn.Stream`)."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.get_state = session.get_state
        self.set_state = session.set_state

    def step(self, x: np.ndarray) -> np.ndarray:
        return self.session.step({"x": x})["y"]


class CompoundSession(ChunkedSession):
    """A session of each part, and what the loop keeps."""

    def __init__(self, program: CompoundProgram) -> None:
        super().__init__(program)
        self._network = program.network
        self._streams_of_parts = {name: _Stream(part.open()) for name, part in program.programs.items()}
        batch = program.request.batch
        self._carried = {n: np.zeros((1, batch, size), self._dtype) for n, size in self._network.carried.items()}

    def _advance(self, x: np.ndarray) -> np.ndarray:
        if not self._streams:
            self._start_from_zeros()
        y, self._carried = self._network.advance(self._streams_of_parts, x, self._carried)
        return y

    def _start_from_zeros(self) -> None:
        """With state `none`, where sessions of most parts have no state."""
        self._carried = {name: np.zeros_like(array) for name, array in self._carried.items()}
        for part in self._network.parts:
            if part.rate is None:
                self._streams_of_parts[part.name].session.reset()

    def _read_state(self) -> dict[str, np.ndarray]:
        of_parts = joined([(part, self._streams_of_parts[part.name].get_state()) for part in self._network.parts])
        return {**of_parts, **{name: array.copy() for name, array in self._carried.items()}}

    def _write_state(self, state: Arrays) -> None:
        for part in self._network.parts:
            self._streams_of_parts[part.name].set_state(self._network.arrays_of(part, state))
        self._carried = {name: state[name].copy() for name in self._carried}

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        return CompoundBound(self._advance, [x.copy() for x in ring])

    def close(self) -> None:
        with ExitStack() as sessions:
            for stream in self._streams_of_parts.values():
                sessions.enter_context(closing(stream.session))
            super().close()


class CompoundBound(SynchronousBound):
    def __init__(self, advance: Callable[[np.ndarray], np.ndarray], ring: list[np.ndarray]) -> None:
        self._advance = advance
        self._next_chunk = cycle(ring).__next__
        self._y = np.empty(0)

    def __call__(self) -> None:
        self._y = self._advance(self._next_chunk())

    def output(self) -> Arrays:
        return {"y": self._y.copy()}


def joined_explanation(parts: Mapping[str, Explanation]) -> Explanation:
    """What is said of the parts, each under its name."""
    stages: Iterator[IrStage | Unreadable] = (
        replace(stage, name=f"{name}-{stage.name}") for name, part in parts.items() for stage in part.stages
    )
    return Explanation(
        tuple(f"{name}: {function}" for name, part in parts.items() for function in part.functions),
        " ".join((*(f"{name}: {part.state}" for name, part in parts.items() if part.state), NOTE)),
        stages,
    )


def _once(lists: Iterable[Sequence[T]]) -> tuple[T, ...]:
    """The items of all lists, each once."""
    return tuple(dict.fromkeys(item for values in lists for item in values))
