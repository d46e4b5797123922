"""Program, session and bound call of the NumPy backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from itertools import cycle
from typing import cast

import numpy as np

from rnnbench.backends.base import Arrays, Artifact, Bound, Program, ProgramFiles, Request
from rnnbench.backends.numpy.network import Network
from rnnbench.backends.numpy.recorder import Call
from rnnbench.backends.shared import ChunkedProgram, ChunkedSession, SynchronousBound
from rnnbench.rnn import Weights


class NumpyProgram(ChunkedProgram):
    """Weights in the layout that the products read. Every session has arrays of its own."""

    def __init__(
        self,
        request: Request,
        weights: Weights,
        artifact: Artifact,
        files: ProgramFiles,
        cached: bool,
        build_tail: Callable[[], Program],
    ) -> None:
        super().__init__(request, artifact, cached, build_tail)
        self.files = files
        self._weights = weights

    def open(self) -> NumpySession:
        return NumpySession(self, self.network())

    def network(self) -> Network:
        """The calls of one session, with arrays of their own."""
        x = self.signature.of("input")[0]
        return Network(self.request, self._weights, np.dtype(x.dtype))


class NumpySession(ChunkedSession):
    def __init__(self, program: NumpyProgram, network: Network) -> None:
        super().__init__(program)
        self._network = network
        # NumPy keeps its error state in a context variable. It is set there once, and no call pays for it.
        quiet = copy_context()
        quiet.run(np.seterr, over="ignore")
        self._run: Callable[[], None] = partial(cast("Callable[..., None]", quiet.run), network)

    def _advance(self, x: np.ndarray) -> np.ndarray:
        np.copyto(self._network.x, x)
        self._run()
        return self._network.y.copy()

    def _advance_ragged(self, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        np.copyto(self._beyond(), _beyond(len(x), lengths))
        return self._advance(x)

    def _bind_ragged(self, ring: list[tuple[np.ndarray, np.ndarray]]) -> Bound:
        beyond = self._beyond()
        ends = [partial(np.copyto, beyond, _beyond(len(x), lengths)) for x, lengths in ring]
        return NumpyBound(self._network, self._run, [x for x, _ in ring], ends)

    def _beyond(self) -> np.ndarray:
        assert self._network.beyond is not None, "a session with lengths has a network with lengths"
        return self._network.beyond

    def _read_state(self) -> dict[str, np.ndarray]:
        return {name: array.copy() for name, array in self._network.state.items()}

    def _write_state(self, state: Arrays) -> None:
        for name, array in self._network.state.items():
            np.copyto(array, state[name])

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        return NumpyBound(self._network, self._run, ring)


class NumpyBound(SynchronousBound):
    def __init__(
        self, network: Network, run: Callable[[], None], ring: list[np.ndarray], ends: Sequence[Call] = ()
    ) -> None:
        """`ends` has, where rows have lengths, a call for each chunk that puts its lengths in place."""
        self._network = network
        self._run = run
        self._next_end = cycle(ends).__next__ if ends else None
        self._next_chunk = cycle([partial(np.copyto, network.x, chunk.copy()) for chunk in ring]).__next__

    def __call__(self) -> None:
        if self._next_end is not None:
            self._next_end()()
        self._next_chunk()()
        self._run()

    def output(self) -> Arrays:
        return {"y": self._network.y.copy()}


def _beyond(steps: int, lengths: np.ndarray) -> np.ndarray:
    """Which steps are beyond their row's length, [steps, batch, 1]."""
    beyond: np.ndarray = (np.arange(steps)[:, None] >= lengths)[..., None]
    return beyond
