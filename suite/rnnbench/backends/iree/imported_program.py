"""An imported module, compiled, and streams through it. The state is in as many arrays as the framework has."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.backends.base import Arrays, Artifact, Bound, Program, Request, Session
from rnnbench.backends.iree.compile import compile_module, flags_of
from rnnbench.backends.iree.hal_devices import device_notes
from rnnbench.backends.iree.imported import Imported, Shape, encloses, imported, is_apart
from rnnbench.backends.iree.imported_apart import NOTE
from rnnbench.backends.iree.runtime import EnclosedSession, IreeProgram, StitchedBound, StitchedSession
from rnnbench.backends.shared import of_one_step, onnx_graphs


def build_imported(request: Request, cache: Path) -> Program:
    """Raises BuildError."""
    program = imported(request, cache)
    flags = flags_of(request)
    compiled = compile_module(program.text, flags, cache, request.strategy.time)
    artifact = Artifact(
        source_digest=hashlib.sha256(program.text.encode()).hexdigest(),
        operations=compiled.operations,
        lowered=onnx_graphs.lowered_or_given(request, compiled.lowered),
        origin="imported",
        math="exact",
        flags=flags,
        notes=(*_notes(request), *device_notes(request)),
    )
    tail = partial(build_imported, of_one_step(request), cache)
    return ImportedProgram(request, artifact, compiled.path, compiled.cached, tail, program)


def _notes(request: Request) -> tuple[str, ...]:
    if request.route == "stablehlo" and request.file is not None:
        return _notes_of_file(request)
    if request.route == "torch" and request.file is not None:
        return ("The module is torch-mlir's of the file, traced again with its states as arguments and results.",)
    if request.route != "tensorflow":
        return ("The module is the importer's; only its function is renamed, and copies of the cell are marked.",)
    notes = ["The module is TensorFlow's; globals are put before functions, and copies of the cell are marked."]
    if encloses(request):
        notes.append("The state is in globals, one for each variable.")
    return (*notes, NOTE) if is_apart(request) else tuple(notes)


def _notes_of_file(request: Request) -> tuple[str, ...]:
    note = "The functions are the file's own, between operations that lay arrays out; they are renamed."
    kept = "The state is in globals around them, one for each array; globals of the file are their arguments."
    return (note, kept) if encloses(request) else (note,)


class ImportedProgram(IreeProgram):
    def __init__(
        self,
        request: Request,
        artifact: Artifact,
        path: Path,
        cached: bool,
        build_tail: Callable[[], Program],
        program: Imported,
    ) -> None:
        super().__init__(request, artifact, path, cached, build_tail)
        self.imported = program

    def open(self) -> Session:
        if encloses(self.request) and self.request.route == "stablehlo":
            return GlobalsSession(self)
        if encloses(self.request):
            return VariablesSession(self)
        session = RowsSession if self.request.route == "tensorflow" else ImportedSession
        return session(self, self.imported.x, self.imported.state)


class VariablesSession(EnclosedSession):
    """The state is in globals of the module, one for each variable of the framework, layer by layer."""

    def _read_state(self) -> dict[str, np.ndarray]:
        outputs = self._call("get_state")
        return self._state_of_rows([self.to_host(outputs, i, dtype) for i, dtype in enumerate(self._row_types())])

    def _write_state(self, state: Arrays) -> None:
        self._call("set_state", *map(self.state_to_device, self._state_by_row(state)))


class GlobalsSession(EnclosedSession):
    """The state is in globals of the module, one for each array of the suite."""

    def _read_state(self) -> dict[str, np.ndarray]:
        outputs = self._call("get_state")
        return {spec.name: self.to_host(outputs, index, spec.dtype) for index, spec in enumerate(self._states)}

    def _write_state(self, state: Arrays) -> None:
        self._call("set_state", *(self.state_to_device(np.ascontiguousarray(state[s.name])) for s in self._states))


class ImportedSession(StitchedSession):
    """The state is the list of buffers that the last call returned; it is empty where each call starts from zeros."""

    def __init__(self, program: IreeProgram, x: Shape, shapes: tuple[Shape, ...]) -> None:
        self._x_shape = x
        self._shapes = shapes
        super().__init__(program)
        self.state: list[Any] = self.state or []

    def to_input(self, x: np.ndarray) -> Any:
        return self.to_device(x.reshape(self._x_shape))

    def to_output(self, outputs: Any) -> np.ndarray:
        return self.to_host(outputs, 0).reshape(*self._whole[:2], -1)

    def _advance(self, x: np.ndarray) -> np.ndarray:
        outputs = self.invoke(self._function, [self.to_input(x), *self.state], 1 + len(self.state))
        self.state = [outputs.get_as_ref(1 + index) for index in range(len(self.state))]
        return self.to_output(outputs)

    def _read_state(self) -> dict[str, np.ndarray]:
        buffers = self.packed(self.state)
        if len(self._shapes) == len(self._states):
            read = {s.name: self.to_host(buffers, index, s.dtype) for index, s in enumerate(self._states)}
            return {s.name: read[s.name].reshape(self._shape(s)) for s in self._states}
        parts = [self.to_host(buffers, index).ravel() for index in range(len(self.state))]
        return self._state_of_flat(np.concatenate(parts))

    def _write_state(self, state: Arrays) -> None:
        if len(self._shapes) == len(self._states):
            laid = zip(self._states, self._shapes, strict=True)
            self.state = [self.state_to_device(state[spec.name].reshape(shape)) for spec, shape in laid]
            return
        ends = np.cumsum([prod(shape) for shape in self._shapes])
        parts = np.split(self._flat_state(state), ends[:-1])
        self.state = [self.to_device(part.reshape(shape)) for part, shape in zip(parts, self._shapes, strict=True)]

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        return ImportedBound(self, self._invoke, self._function, [self.to_input(x) for x in ring])


class RowsSession(ImportedSession):
    """The buffers are those of the first layer, then of the next, and not all of h and then all of c."""

    def _read_state(self) -> dict[str, np.ndarray]:
        buffers = self.packed(self.state)
        return self._state_of_rows([self.to_host(buffers, i, dtype) for i, dtype in enumerate(self._row_types())])

    def _write_state(self, state: Arrays) -> None:
        self.state = [self.state_to_device(row) for row in self._state_by_row(state)]


class ImportedBound(StitchedBound):
    """Calls that pack x and every buffer of the state."""

    _session: ImportedSession

    def __call__(self) -> None:
        session = self._session
        state = session.state
        inputs = self._list(1 + len(state))
        inputs.push_ref(next(self._ring))
        for buffer in state:
            inputs.push_ref(buffer)
        outputs = self._outputs = self._list(1 + len(state))
        self._invoke(self._function, inputs, outputs)
        session.state = [outputs.get_as_ref(1 + index) for index in range(len(state))]

    def output(self) -> Arrays:
        return {"y": self._session.to_output(self._outputs)}
