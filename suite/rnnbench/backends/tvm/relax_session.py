"""Streams through Relax's virtual machine. Every argument is a TVM tensor: a NumPy array would crash the process."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np

from rnnbench.backends.base import Arrays, Bound
from rnnbench.backends.shared import ChunkedProgram, ChunkedSession, SynchronousBound
from rnnbench.backends.tvm.buffers import DEFAULT_STREAM, Buffer, DeviceBuffer, memory_on


class RelaxSession(ChunkedSession):
    """A stitched state is the result of the last call, (y, (h, c)). A stateful one is in buffers that calls write."""

    def __init__(self, program: ChunkedProgram, machine: Any) -> None:
        super().__init__(program)
        request = program.request
        self.memory = memory_on(request.device)
        self._machine = machine
        self._saved = 0
        self._stitched = request.strategy.state == "stitched"
        self._shape_y = (self._chunk, request.batch, request.model.width)
        self.main = machine["main"]
        self._buffers = self._new_buffers()
        self.last = self._as_returned()
        shape = (self._chunk, request.batch, request.model.input)
        self._in = self.memory.new(shape)
        self._call = None if self._stitched else self.saved(self._in)

    def saved(self, x: Buffer | DeviceBuffer) -> Any:
        """A function of no arguments: `main` on x and, where the session keeps a state, on its buffers."""
        name = f"saved_{self._saved}"
        self._saved += 1
        state = tuple(buffer.tensor for buffer in self._buffers)
        self._machine.save_function("main", name, x.tensor, *([state] if state else []))
        return self._machine[name]

    def _new_buffers(self) -> list[Buffer | DeviceBuffer]:
        return [self.memory.new(self._shape(spec)) for spec in self._states]

    def _as_returned(self) -> Any:
        """The buffers, in the form in which `main` returns its results and a stitched `main` takes them back."""
        y = self.memory.new(self._shape_y)
        return y.tensor, tuple(buffer.tensor for buffer in self._buffers)

    def _advance(self, x: np.ndarray) -> np.ndarray:
        self._in.write(x)
        if self._call is None:
            self.last = self.main(self._in.tensor, self.last)
            return self.memory.read(self.last[0])
        return self.memory.read(self._call()[0])

    def _read_state(self) -> dict[str, np.ndarray]:
        return {spec.name: self.memory.read(tensor) for spec, tensor in zip(self._states, self.last[1], strict=True)}

    def _write_state(self, state: Arrays) -> None:
        if self._stitched:
            # The state that the last call returned may share memory with its y.
            self._buffers = self._new_buffers()
            self.last = self._as_returned()
        for spec, buffer in zip(self._states, self._buffers, strict=True):
            buffer.write(state[spec.name])

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        chunks = [self.memory.new(x.shape) for x in ring]
        for chunk, x in zip(chunks, ring, strict=True):
            chunk.write(x)
        on_host = isinstance(self._in, Buffer)
        if self._stitched:
            stitched = StitchedBound if on_host else QueuedStitchedBound
            return stitched(self, [chunk.tensor for chunk in chunks])
        saved = SavedBound if on_host else QueuedSavedBound
        return saved(self, [self.saved(chunk) for chunk in chunks])


class SavedBound(SynchronousBound):
    """Calls of functions without arguments, one for each chunk. A state is in the buffers that they hold."""

    def __init__(self, session: RelaxSession, ring: list[Any]) -> None:
        self._session = session
        self._next = cycle(ring).__next__
        self._result: Any = None

    def __call__(self) -> None:
        self._result = self._next()()

    def output(self) -> Arrays:
        return {"y": self._session.memory.read(self._result[0])}


class StitchedBound(SavedBound):
    """Calls of `main` on each chunk in turn and on the result of the last call."""

    def __init__(self, session: RelaxSession, ring: list[Any]) -> None:
        super().__init__(session, ring)
        self._main = session.main

    def __call__(self) -> None:
        session = self._session
        self._result = session.last = self._main(self._next(), session.last)


class QueuedSavedBound(SavedBound):
    """On a GPU, where a call only queues its kernels."""

    stream = DEFAULT_STREAM

    def sync(self) -> None:
        self._session.memory.device.sync()


class QueuedStitchedBound(StitchedBound):
    """On a GPU, where a call only queues its kernels."""

    stream = DEFAULT_STREAM

    def sync(self) -> None:
        self._session.memory.device.sync()
