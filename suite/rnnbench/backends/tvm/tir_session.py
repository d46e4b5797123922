"""Streams through a kernel: buffers that each session owns, and calls whose arguments are prepared beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from operator import call, getitem
from typing import Any, Self

import numpy as np

from rnnbench.backends.base import Arrays, Bound
from rnnbench.backends.shared import ChunkedProgram, ChunkedSession, SynchronousBound
from rnnbench.backends.tvm.buffers import Buffer, StateBuffer

Call = Callable[[], None]


class TirSession(ChunkedSession):
    """A stitched state goes from one of two buffers to the other. Every call takes the next of the `_turns`."""

    def __init__(self, program: ChunkedProgram, function: Any, params: Buffer) -> None:
        super().__init__(program)
        request = program.request
        self._function = function
        self._params = params
        self._shape_y = (request.strategy.chunk, request.batch, request.model.width)
        shapes = {spec.name: self._shape(spec) for spec in self._states}
        count = {"none": 0, "stateful": 1, "stitched": 2}[request.strategy.state]
        self._buffers = [StateBuffer(shapes) for _ in range(count)]
        self._turns = cycle(range(max(count, 1)))
        self._in = Buffer(self._chunk * request.batch * request.model.input)
        self._out = Buffer(int(np.prod(self._shape_y)))
        self._calls = self.calls(self._in, self._out)

    @property
    def turn(self) -> int:
        """The number of the buffer that holds the state, which the next call reads."""
        turn = next(self._turns)
        for _ in self._calls[1:]:
            next(self._turns)
        return turn

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
        self._calls[next(self._turns)]()
        return self._out.array.reshape(self._shape_y).copy()

    def _read_state(self) -> dict[str, np.ndarray]:
        return {name: part.copy() for name, part in self._buffers[self.turn].parts.items()}

    def _write_state(self, state: Arrays) -> None:
        for name, part in self._buffers[self.turn].parts.items():
            part[...] = state[name]

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        y = Buffer(self._out.array.size)
        chunks = [self.calls(Buffer.filled(x), y) for x in ring]
        return KernelBound(chunks, self._turns, y, self._shape_y)


class KernelBound(SynchronousBound, partial[None]):
    """Prepared calls: of each chunk, one for each turn of its session. Other calls of the stream may come between.

    A pass over large weights evicts the interpreter from the cache, so all that can be prepared is prepared: a bound
    call runs no code in Python but the caller's.
    """

    _y: Buffer
    _shape: tuple[int, ...]

    def __new__(cls, ring: Sequence[Sequence[Call]], turns: Iterator[int], y: Buffer, shape: tuple[int, ...]) -> Self:
        bound = super().__new__(cls, map(call, map(getitem, cycle(ring), turns)).__next__)
        bound._y = y
        bound._shape = shape
        return bound

    def output(self) -> Arrays:
        return {"y": self._y.array.reshape(self._shape).copy()}
