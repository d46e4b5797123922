"""Streams through a kernel: buffers that each session owns, and calls whose arguments are prepared beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np

from rnnbench.backends.base import Arrays, Bound
from rnnbench.backends.shared import ChunkedProgram, ChunkedSession, SynchronousBound
from rnnbench.backends.tvm.buffers import Buffer, StateBuffer

Call = Callable[[], object]


class TirSession(ChunkedSession):
    """A stitched state goes from one of two buffers to the other. `turn` is the number of the buffer that holds it."""

    def __init__(self, program: ChunkedProgram, function: Any, params: Buffer) -> None:
        super().__init__(program)
        request = program.request
        self._function = function
        self._params = params
        self._shape_y = (request.strategy.chunk, request.batch, request.model.width)
        shapes = {spec.name: self._shape(spec) for spec in self._states}
        count = {"none": 0, "stateful": 1, "stitched": 2}[request.strategy.state]
        self._buffers = [StateBuffer(shapes) for _ in range(count)]
        self.turn = 0
        self._in = Buffer(self._chunk * request.batch * request.model.input)
        self._out = Buffer(int(np.prod(self._shape_y)))
        self._calls = self.calls(self._in, self._out)

    def calls(self, x: Buffer, y: Buffer) -> tuple[Call, ...]:
        """A prepared call for each turn."""
        tensors = [buffer.tensor for buffer in self._buffers]
        if len(tensors) < 2:
            return (partial(self._function, self._params.tensor, x.tensor, *tensors, y.tensor),)
        return tuple(
            partial(self._function, self._params.tensor, x.tensor, before, after, y.tensor)
            for before, after in (tensors, tensors[::-1])
        )

    def _advance(self, x: np.ndarray) -> np.ndarray:
        self._in.array[:] = x.ravel()
        self._calls[self.turn]()
        self.turn = (self.turn + 1) % len(self._calls)
        return self._out.array.reshape(self._shape_y).copy()

    def _read_state(self) -> dict[str, np.ndarray]:
        return {name: part.copy() for name, part in self._buffers[self.turn].parts.items()}

    def _write_state(self, state: Arrays) -> None:
        for name, part in self._buffers[self.turn].parts.items():
            part[...] = state[name]

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        y = Buffer(self._out.array.size)
        chunks = [self.calls(Buffer.filled(x), y) for x in ring]
        if len(self._calls) == 1:
            return InPlaceBound([calls[0] for calls in chunks], y, self._shape_y)
        return StitchedBound(self, chunks, y, self._shape_y)


class InPlaceBound(SynchronousBound):
    """Prepared calls, one for each chunk. They stay valid when something else advances the stream.

    A pass over large weights evicts the interpreter from the cache, so all that can be prepared is prepared.
    """

    __slots__ = ("_next", "_shape", "_y")

    def __init__(self, ring: Sequence[Any], y: Buffer, shape: tuple[int, ...]) -> None:
        self._next = cycle(ring).__next__
        self._y = y
        self._shape = shape

    def __call__(self) -> None:
        self._next()()

    def output(self) -> Arrays:
        return {"y": self._y.array.reshape(self._shape).copy()}


class StitchedBound(InPlaceBound):
    """Pairs of prepared calls, one for each turn of the session's state."""

    __slots__ = ("_session",)

    def __init__(self, session: TirSession, ring: Sequence[Any], y: Buffer, shape: tuple[int, ...]) -> None:
        super().__init__(ring, y, shape)
        self._session = session

    def __call__(self) -> None:
        session = self._session
        turn = session.turn
        session.turn = 1 - turn
        self._next()[turn]()
