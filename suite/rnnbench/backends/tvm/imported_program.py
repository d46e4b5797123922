"""Routes `torch` and `onnx`: an imported module, compiled to a library for Relax's virtual machine; and its streams."""

from __future__ import annotations

import hashlib
from itertools import cycle
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.backends.base import Arrays, Artifact, Bound, Request
from rnnbench.backends.chunked import ChunkedProgram, ChunkedSession, of_one_step
from rnnbench.backends.tvm import store
from rnnbench.backends.tvm.buffers import Buffer
from rnnbench.backends.tvm.framework import import_tvm, lanes, target
from rnnbench.backends.tvm.imported_module import argument_shapes, imported_module
from rnnbench.backends.tvm.relax_counting import operations
from rnnbench.backends.tvm.relax_session import as_numpy
from rnnbench.backends.tvm.schedule import pipeline
from rnnbench.rnn.spec import Model


class ImportedProgram(ChunkedProgram):
    def __init__(self, request: Request, artifact: Artifact, cached: bool, folder: Path) -> None:
        super().__init__(request, artifact, cached, lambda: build_imported(of_one_step(request), folder.parent))
        self.library = import_tvm().runtime.load_module(str(folder / store.LIBRARY))

    def open(self) -> ImportedSession:
        """A stream with a virtual machine of its own."""
        tvm = import_tvm()
        return ImportedSession(self, tvm.relax.VirtualMachine(self.library, tvm.cpu())["main"])


def build_imported(request: Request, cache: Path) -> ImportedProgram:
    """The program of a request that `support` takes. Raises BuildError. What imports it is imported in a cold build."""
    digest = hashlib.sha256()
    for name, array in request.weights.named(request.model):
        digest.update(name.encode() + array.tobytes())
    folder = cache / f"tvm-{store.key(request, str(target()), digest.hexdigest())}"
    artifact = store.find(folder)
    cached = artifact is not None
    if artifact is None:
        artifact = _compile(request, folder, digest.hexdigest())
    return ImportedProgram(request, artifact, cached, folder)


def _compile(request: Request, folder: Path, weights: str) -> Artifact:
    module = imported_module(request)
    final: list[Any] = []
    executable = import_tvm().compile(module, target=target(), relax_pipeline=pipeline(target(), lanes(), final.append))

    def describe(library: bytes) -> Artifact:
        return Artifact(
            source_digest=hashlib.sha256(f"{module.script()}{weights}".encode()).hexdigest(),
            digest=hashlib.sha256(library).hexdigest(),
            nbytes=len(library),
            operations={"input": operations(module), "compiled": operations(final[0])},
            lowered=f"unrolled {_copies(final[0], request.model)}",
            origin="imported",
            math="exact",
            flags=(str(target()),),
            notes=(
                "The module is the importer's own, with constants folded: no step transposes torch's weights.",
                "Scheduled as the route relax is: TVM's default pipeline leaves scalar loops, ten times slower.",
            ),
        )

    return store.keep(folder, lambda path: store.export(executable, path), describe)


def _copies(module: Any, model: Model) -> int:
    """Copies of the cell, by its activations (a counter's: sums), which the names of fused kernels tell of.

    Not by its products: the first one of a state of zeros is folded.
    """
    name = "add" if model.cell == "counter" else model.activation
    found = sum(count * kernel.count(name) for kernel, count in operations(module).items())
    return found // (2 if model.cell == "lstm" else 1)


class ImportedSession(ChunkedSession):
    """The state is the tensors that the last call returned."""

    def __init__(self, program: ImportedProgram, main: Any) -> None:
        super().__init__(program)
        # ONNX's importer makes of a single output a tensor, torch's a tuple of one.
        self.main = main if self._states or program.request.route == "torch" else lambda x: (main(x),)
        self._x_shape, *self._state_shapes = argument_shapes(program.request)
        self._in = Buffer(prod(self._x_shape), self._x_shape)
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
        held = zip(self._states, self.state, strict=True)
        return {spec.name: as_numpy(tensor).reshape(self._shape(spec)) for spec, tensor in held}

    def _write_state(self, state: Arrays) -> None:
        buffers = [Buffer(prod(shape), shape) for shape in self._state_shapes]
        for spec, buffer in zip(self._states, buffers, strict=True):
            buffer.array[:] = state[spec.name].ravel()
        self.state = tuple(buffer.tensor for buffer in buffers)

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        chunks = [Buffer(x.size, self._x_shape) for x in ring]
        for chunk, x in zip(chunks, ring, strict=True):
            chunk.array[:] = x.ravel()
        return ImportedBound(self, [chunk.tensor for chunk in chunks])


class ImportedBound:
    """`main` on each chunk in turn, and on the state that the last call returned."""

    def __init__(self, session: ImportedSession, ring: list[Any]) -> None:
        self._session = session
        self._main = session.main
        self._next = cycle(ring).__next__
        self._result: Any = None

    def __call__(self) -> None:
        session = self._session
        self._result = result = self._main(self._next(), *session.state)
        session.state = tuple(result[1:])

    def sync(self) -> None:
        """Nothing is left to wait for: TVM's calls on a CPU return when they are done."""

    def output(self) -> Arrays:
        return {"y": self._session.to_y(self._result)}
