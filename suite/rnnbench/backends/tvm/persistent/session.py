"""Streams through a persistent kernel: buffers on the GPU that each session owns, and calls prepared beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle

import numpy as np

from rnnbench.backends.base import Arrays, Bound
from rnnbench.backends.shared import ChunkedProgram, ChunkedSession
from rnnbench.backends.tvm.buffers import DEFAULT_STREAM, Buffer, DeviceBuffer, Memory
from rnnbench.backends.tvm.persistent.layout import Plan

Call = Callable[[], object]
OnDevice = Buffer | DeviceBuffer


class PersistentSession(ChunkedSession):
    """A stitched state goes from one of two buffers to the other. `turn` is the number of the buffer that holds it.

    `function` takes tensors: x, the state, y and scratch memory.
    """

    def __init__(self, program: ChunkedProgram, plan: Plan, function: Callable[..., object], memory: Memory) -> None:
        super().__init__(program)
        self.memory = memory
        self.turn = 0
        self._function = function
        self._shape_y = (plan.chunk, plan.batch, plan.model.width)
        count = {"none": 0, "stateful": 1, "stitched": 2}[plan.state]
        self._buffers = [memory.new((plan.state_size,)) for _ in range(count)]
        self._scratch = memory.new((plan.scratch,))
        self._in = self._flat(self._whole)
        self._out = self._flat(self._shape_y)
        self._calls = self._prepared(self._in, self._out)

    def call(self, calls: Sequence[Call]) -> None:
        """One of prepared calls, by the turn, and the next turn."""
        calls[self.turn]()
        self.turn = (self.turn + 1) % len(calls)

    def read_y(self, y: OnDevice) -> np.ndarray:
        return self.memory.read(y.tensor).reshape(self._shape_y)

    def _flat(self, shape: tuple[int, ...]) -> OnDevice:
        return self.memory.new((int(np.prod(shape)),))

    def _prepared(self, x: OnDevice, y: OnDevice) -> tuple[Call, ...]:
        """A call for each turn."""
        tensors = [buffer.tensor for buffer in self._buffers]
        orders = [tensors] if len(tensors) < 2 else [tensors, tensors[::-1]]
        return tuple(partial(self._function, x.tensor, *order, y.tensor, self._scratch.tensor) for order in orders)

    def _advance(self, x: np.ndarray) -> np.ndarray:
        self._in.write(x)
        self.call(self._calls)
        return self.read_y(self._out)

    def _read_state(self) -> dict[str, np.ndarray]:
        return self._state_of_flat(self.memory.read(self._buffers[self.turn].tensor))

    def _write_state(self, state: Arrays) -> None:
        self._buffers[self.turn].write(self._flat_state(state))

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        y = self._flat(self._shape_y)
        chunks = [self._flat(self._whole) for _ in ring]
        for chunk, x in zip(chunks, ring, strict=True):
            chunk.write(x)
        return PersistentBound(self, [self._prepared(chunk, y) for chunk in chunks], y)


class PersistentBound:
    """Prepared calls, for each chunk one by turn. A call returns when its kernel is queued."""

    stream = DEFAULT_STREAM

    def __init__(self, session: PersistentSession, ring: Sequence[tuple[Call, ...]], y: OnDevice) -> None:
        self._call = session.call
        self._next = cycle(ring).__next__
        self._session = session
        self._y = y

    def __call__(self) -> None:
        self._call(self._next())

    def sync(self) -> None:
        self._session.memory.device.sync()

    def output(self) -> Arrays:
        return {"y": self._session.read_y(self._y)}
