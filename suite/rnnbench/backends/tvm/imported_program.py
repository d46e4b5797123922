"""Routes `torch` and `onnx`: an imported module, compiled to a library for Relax's virtual machine, and its streams."""

from __future__ import annotations

from itertools import cycle
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.backends.base import Arrays, Bound, Request
from rnnbench.backends.shared import ChunkedSession, SynchronousBound, of_one_step
from rnnbench.backends.tvm.buffers import Buffer, as_numpy
from rnnbench.backends.tvm.imported_module import argument_shapes, imported_module
from rnnbench.backends.tvm.vm_program import VmProgram, compiled

NOTES = (
    "The module is the importer's, with constants folded, so that no step transposes torch's weights.",
    "The schedule is that of the route relax. TVM's default pipeline leaves scalar loops, which are 10 times slower.",
    "An operator that the schedule cannot take, such as a convolution, keeps TVM's loops.",
)


class ImportedProgram(VmProgram):
    def open(self) -> ImportedSession:
        return ImportedSession(self, self.machine()["main"])


def build_imported(request: Request, cache: Path) -> ImportedProgram:
    """The program of a supported request. Raises BuildError. Only a build that is not cached imports the framework."""
    stored = compiled(request, cache, imported_module, "imported", NOTES)
    return ImportedProgram(request, stored, lambda: build_imported(of_one_step(request), cache))


class ImportedSession(ChunkedSession):
    """The state is the tensors that the last call returned."""

    def __init__(self, program: ImportedProgram, main: Any) -> None:
        super().__init__(program)
        # A single output is a tensor from ONNX's importer, and a tuple of one tensor from torch's.
        self.main = main if self._states or program.request.route == "torch" else lambda x: (main(x),)
        self._x_shape, *self._state_shapes = argument_shapes(program.request)
        self._in = Buffer(prod(self._x_shape), self._x_shape, self._x.dtype)
        self.state: tuple[Any, ...] = ()
        self.reset()

    def to_y(self, result: Any) -> np.ndarray:
        return as_numpy(result[0]).reshape(*self._whole[:2], -1)

    def _advance(self, x: np.ndarray) -> np.ndarray:
        self._in.array[:] = x.ravel()
        result = self.main(self._in.tensor, *self.state)
        self.state = tuple(result[1:])
        return self.to_y(result)

    def _read_state(self) -> dict[str, np.ndarray]:
        tensors = zip(self._states, self.state, strict=True)
        return {spec.name: as_numpy(tensor).reshape(self._shape(spec)) for spec, tensor in tensors}

    def _write_state(self, state: Arrays) -> None:
        laid = zip(self._state_shapes, self._states, strict=True)
        buffers = [Buffer(prod(shape), shape, spec.dtype) for shape, spec in laid]
        for spec, buffer in zip(self._states, buffers, strict=True):
            buffer.array[:] = state[spec.name].ravel()
        self.state = tuple(buffer.tensor for buffer in buffers)

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        chunks = [Buffer(x.size, self._x_shape, self._x.dtype) for x in ring]
        for chunk, x in zip(chunks, ring, strict=True):
            chunk.array[:] = x.ravel()
        return ImportedBound(self, [chunk.tensor for chunk in chunks])


class ImportedBound(SynchronousBound):
    """Calls of `main` on each chunk in turn and on the state that the last call returned."""

    def __init__(self, session: ImportedSession, ring: list[Any]) -> None:
        self._session = session
        self._main = session.main
        self._next = cycle(ring).__next__
        self._result: Any = None

    def __call__(self) -> None:
        session = self._session
        self._result = result = self._main(self._next(), *session.state)
        session.state = tuple(result[1:])

    def output(self) -> Arrays:
        return {"y": self._session.to_y(self._result)}
