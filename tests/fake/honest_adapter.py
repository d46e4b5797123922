"""An honest adapter for tests of the harness: the reference, evaluated in the dtype. Faulty ones are made from it."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from rnnbench.backends.base import Arrays, Artifact, Program, Request
from rnnbench.backends.shared import ChunkedProgram, ChunkedSession
from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.reference import run_in


class HonestProgram(ChunkedProgram):
    def __init__(self, request: Request, digest: str, cached: bool, build_tail: Callable[[], Program]) -> None:
        artifact = Artifact(
            source_digest=digest,
            operations={"input": {"step": 1}},
            lowered="looped 1",
            origin="authored",
            math="exact",
        )
        super().__init__(request, artifact, cached, build_tail)

    def open(self) -> HonestSession:
        return HonestSession(self)


class HonestSession(ChunkedSession):
    arithmetic: type[Arithmetic] = Arithmetic

    def __init__(self, program: HonestProgram) -> None:
        super().__init__(program)
        self.request = program.request
        self.model = program.request.model
        self.weights = program.request.weights
        self.dtype = self.request.precision.int8 or self.request.precision.compute
        self.state: dict[str, np.ndarray] = {}
        self.reset()

    def _advance(self, x: np.ndarray) -> np.ndarray:
        return self.compute(x)

    def compute(self, x: np.ndarray) -> np.ndarray:
        """One call, for the public and the timed path alike."""
        state = self.state if self._streams else None
        run = run_in(self.arithmetic(self.dtype), self.model, self.weights, x, state)
        if self._streams:
            self.state = dict(run.final)
        return run.y

    def _advance_ragged(self, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        return self.compute_ragged(x, lengths)

    def compute_ragged(self, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        arithmetic = self.arithmetic(self.dtype)
        return run_in(arithmetic, self.model, self.weights, x, None, lengths).y

    def _read_state(self) -> dict[str, np.ndarray]:
        return {name: array.copy() for name, array in self.state.items()}

    def _write_state(self, state: Arrays) -> None:
        self.state = {name: array.copy() for name, array in state.items()}

    def _bind(self, ring: list[np.ndarray]) -> HonestBound:
        return HonestBound(self, ring)

    def _bind_ragged(self, ring: list[tuple[np.ndarray, np.ndarray]]) -> RaggedBound:
        return RaggedBound(self, ring)


class HonestBound:
    def __init__(self, session: HonestSession, ring: list[np.ndarray]) -> None:
        self.session = session
        self.ring = ring
        self.calls = 0
        self.y = np.zeros(0, np.float32)
        self._next = itertools.cycle(self.copied(ring)).__next__

    @staticmethod
    def copied(ring: list[np.ndarray]) -> list[np.ndarray]:
        return [x.copy() for x in ring]

    def __call__(self) -> None:
        self.calls += 1
        self.y = self.session.compute(self._next())

    def sync(self) -> None:
        """Every call is complete when it returns."""

    def output(self) -> Arrays:
        return {"y": self.y.copy()}


class RaggedBound(HonestBound):
    """Of chunks whose rows have lengths of their own."""

    @staticmethod
    def copied(ring: list[tuple[np.ndarray, np.ndarray]]) -> list[tuple[np.ndarray, np.ndarray]]:
        return [(x.copy(), lengths.copy()) for x, lengths in ring]

    def __call__(self) -> None:
        self.calls += 1
        self.y = self.session.compute_ragged(*self._next())
